"""The norm of all gradients, which a loop adds up to print it: PyTorch's own function gives it, and clips nothing.

``clip_grad_norm_(model.parameters(), float("inf"))`` leaves the gradients as they are. Where a file that has gaps adds
the squares of the parameters' norms, or stacks the norms, it is read as if it called that: in a loop, in one
expression, or in a function of its own, which goes then.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from t2j_lsp import symbols
from t2j_lsp.contract import Finding
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import Function, is_module
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.names import is_torch
from t2j_lsp.translate.source.rearranged import RearrangedText
from t2j_lsp.translate.training.program.gradient_forms import asks_for_gradient

from .left_out import ObjectLeftOut, Stays

_ROOTS = ("{0} ** 0.5", "{0} ** (1.0 / 2)", "{0} ** (1 / 2)", "{0} ** (1.0 / 2.0)")
_NUMBERS = ("math.sqrt({0})", "np.sqrt({0})", "numpy.sqrt({0})")
_TENSORS = ("{0}.sqrt()", "torch.sqrt({0})")
_NORMS = ("norm", "vector_norm")


@dataclass(frozen=True)
class _Norm:
    """The norm of the gradients of what ``walked`` yields."""

    walked: ast.expr
    is_number: bool


def with_norms_of_gradients_called(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which a function gives such norms; None if there are none, or everything converts."""
    source = inference.source
    imports = [a for n in source.nodes if isinstance(n, ast.Import) for a in n.names]
    bound = any(a.name == "torch" and a.asname is None for a in imports)
    asked = any(gap.code == "training-loop" or gap.name.endswith(".grad") for gap in gaps)
    if not bound or "grad" not in source.words or not asked:
        return None
    written = _LoggedNorms(inference)
    for node in source.nodes:
        match node:
            case ast.For() if (around := source.block_of(node)) is not None:
                written.of_loop(node, around)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if one := _of_expression(inference, value):
                written.put_call(node, name, one)
            case ast.FunctionDef():
                written.of_function(node)
    return RearrangedText.of(source.text, written.made_edits())


class _LoggedNorms(ObjectLeftOut):
    def of_loop(self, node: ast.For, block: Sequence[ast.stmt]) -> None:
        """``total = 0``, the loop, and the root of what it adds up."""
        at = block.index(node)
        if not 0 < at < len(block) - 1:
            return
        first, last = block[at - 1], block[at + 1]
        added = _adds_squares(self.inference, node)
        if added is None or not _is_zero(first, added[0]) or self._is_of_its_own(node):
            return
        name, is_number = added
        match last:
            case ast.Assign(targets=[ast.Name(id=given)], value=value) if _is_root(value, name, is_number):
                target = given
            case _:
                return
        if target != name and self._reads(name, node) > 1:
            return
        start, end = self.source.span(first)[0], self.source.span(last)[1]
        if self.source.starts_line(first) and "#" not in self.source.text[start:end]:
            self.instead[start, end] = self._call(first, target, _Norm(node.iter, is_number))

    def of_function(self, node: ast.FunctionDef) -> None:
        """A function that gives the norm of what it is given: it goes, and its calls are of PyTorch's."""
        one = _of_function(self.inference, node)
        if one is None or node.decorator_list or symbols.nearest(ast.ClassDef, node, self.parents):
            return
        parameter = node.args.args[0].arg
        calls: list[tuple[ast.Assign, str, ast.Call]] = []
        for name in self.source.names.get(node.name, ()):
            call = self.parents.get(name)
            match self.parents.get(call) if call is not None else None:
                case ast.Assign(targets=[ast.Name(id=target)], value=value) as given if value is call:
                    known = self.inference.fact(name)
                    if not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
                        return
                    if not isinstance(known, Function) or known.info.node is not node:
                        return
                    calls.append((given, target, call))
                case _:
                    return
        walked = self.source.segment(one.walked)
        plain = isinstance(one.walked, ast.Name) or walked == f"{parameter}.parameters()"
        if not calls or not plain or any(not self.source.starts_line(given) for given, _, _ in calls):
            return
        try:
            self.drop(node)
        except Stays:
            return
        for given, target, call in calls:
            passed = self.source.segment(call.args[0])
            text = passed if isinstance(one.walked, ast.Name) else f"{passed}.parameters()"
            self.instead[self.source.span(given)] = self._written(given, target, text, one.is_number)

    def put_call(self, node: ast.Assign, target: str, one: _Norm) -> None:
        """The call instead of an assignment of the norm in one expression."""
        if self.source.starts_line(node) and not self._is_of_its_own(node):
            self.instead[self.source.span(node)] = self._call(node, target, one)

    def _is_of_its_own(self, node: ast.AST) -> bool:
        """Whether it stands in a function that gives a norm and does nothing else."""
        function = symbols.nearest(ast.FunctionDef, node, self.parents)
        return isinstance(function, ast.FunctionDef) and _of_function(self.inference, function) is not None

    def _reads(self, name: str, loop: ast.For) -> int:
        """How often a variable is read behind a loop."""
        home = self.source.home(loop.target) if isinstance(loop.target, ast.Name) else None
        inside = set(symbols.walk(loop))
        named = (n for n in self.source.names.get(name, ()) if isinstance(n.ctx, ast.Load) and n not in inside)
        return sum(self.source.home(n) is home for n in named)

    def _call(self, statement: ast.stmt, target: str, one: _Norm) -> str:
        return self._written(statement, target, self.source.segment(one.walked), one.is_number)

    def _written(self, statement: ast.stmt, target: str, walked: str, is_number: bool) -> str:
        call = f'{target} = torch.nn.utils.clip_grad_norm_({walked}, float("inf"))'
        line = f"{self.source.newline}{self.source.indent(statement.lineno)}"
        return f"{call}{line}{target} = {target}.item()" if is_number else call


# --- the forms --------------------------------------------------------------------------------------------------------


def _of_function(inference: Inference, node: ast.FunctionDef) -> _Norm | None:
    """The norm that a function of one parameter gives, if it does nothing else."""
    arguments = node.args
    if len(arguments.args) != 1 or arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.posonlyargs:
        return None
    parameter, body = arguments.args[0].arg, node.body[ast.get_docstring(node) is not None :]
    match body:
        case [ast.Return(value=ast.expr() as value)]:
            one = _of_expression(inference, value, parameter)
        case [ast.Assign(targets=[ast.Name(id=name)], value=value), ast.Return(value=ast.Name(id=given))]:
            one = _of_expression(inference, value, parameter) if name == given else None
        case [first, ast.For() as loop, *others, ast.Return(value=ast.expr() as value)]:
            added = _adds_squares(inference, loop, parameter)
            match others:
                case [ast.Assign(targets=[ast.Name(id=root)], value=inner)] if ast.unparse(value) == root:
                    value = inner
                case [_, *_]:
                    return None
            fits = added is not None and _is_zero(first, added[0]) and _is_root(value, *added)
            one = _Norm(loop.iter, added[1]) if added is not None and fits else None
        case _:
            return None
    if one is None or isinstance(one.walked, ast.Name) and one.walked.id != parameter:
        return None
    return one


def _of_expression(inference: Inference, node: ast.expr, parameter: str = "") -> _Norm | None:
    """The norm that an expression is: ``torch.norm(torch.stack([p.grad.norm() for p in net.parameters()]))``."""
    match node:
        case ast.Call(func=ast.Attribute(attr="item", value=inner), args=[], keywords=[]):
            one = _of_expression(inference, inner, parameter)
            return _Norm(one.walked, is_number=True) if one is not None else None
        case ast.Call(func=func, args=[stacked, *order], keywords=[]) if _is_torchs(inference, func, *_NORMS):
            return _of_stack(inference, stacked, parameter) if _are_two(order) else None
        case ast.Call(func=ast.Attribute(attr="norm", value=stacked), args=order, keywords=[]):
            return _of_stack(inference, stacked, parameter) if _are_two(order) else None
        case _:
            return _of_sum(inference, node, parameter)


def _of_stack(inference: Inference, node: ast.expr, parameter: str) -> _Norm | None:
    match node:
        case ast.Call(func=func, args=[ast.ListComp(elt=norm, generators=[walk])], keywords=[]):
            if _is_torchs(inference, func, "stack") and _walks(inference, walk, parameter):
                fits = isinstance(walk.target, ast.Name) and _is_norm(inference, norm, walk.target.id)
                return _Norm(walk.iter, is_number=False) if fits else None
    return None


def _of_sum(inference: Inference, node: ast.expr, parameter: str) -> _Norm | None:
    """``sum(p.grad.pow(2).sum() for p in net.parameters()) ** 0.5``."""
    for inner in symbols.walk(node):
        match inner:
            case ast.Call(
                func=ast.Name(id="sum"),
                args=[ast.GeneratorExp(elt=square, generators=[walk]) | ast.ListComp(elt=square, generators=[walk])],
                keywords=[],
            ) if _walks(inference, walk, parameter) and isinstance(walk.target, ast.Name):
                number, text = _is_item(square), ast.unparse(inner)
                roots = (*_ROOTS, *_NUMBERS) if number else (*_ROOTS, *_TENSORS)
                if _is_square(inference, square, walk.target.id) and ast.unparse(node) in [
                    one.format(text) for one in roots
                ]:
                    return _Norm(walk.iter, is_number=number)
    return None


def _walks(inference: Inference, walk: ast.comprehension, parameter: str) -> bool:
    """Whether a comprehension goes over parameters, of which those without a gradient may be left out."""
    asked = all(map(asks_for_gradient, walk.ifs))
    return asked and not walk.is_async and _are_parameters(inference, walk.iter, parameter)


def _are_parameters(inference: Inference, node: ast.expr, parameter: str) -> bool:
    """``net.parameters()`` of a module, or of what a function is given, or what it is given itself."""
    match node:
        case ast.Call(func=ast.Attribute(attr="parameters", value=module), args=[], keywords=[]):
            return is_module(inference.fact(module)) or isinstance(module, ast.Name) and module.id == parameter
        case ast.Name(id=name):
            return name == parameter
    return False


def _adds_squares(inference: Inference, node: ast.For, parameter: str = "") -> tuple[str, bool] | None:
    """The variable to which a loop over a module's parameters adds the squares of their gradients' norms.

    And whether these are numbers of Python.
    """
    if not isinstance(node.target, ast.Name) or node.orelse or not _are_parameters(inference, node.iter, parameter):
        return None
    walked, body = node.target.id, node.body
    if len(body) == 1 and isinstance(body[0], ast.If) and not body[0].orelse and asks_for_gradient(body[0].test):
        body = body[0].body
    match body:
        case [
            ast.Assign(targets=[ast.Name(id=held)], value=norm),
            ast.AugAssign(op=ast.Add(), target=ast.Name(id=total), value=value),
        ] if _is_norm(inference, norm, walked):
            forms = {f"{held} ** 2": _is_item(norm), f"{held}.item() ** 2": True}
            is_number = forms.get(ast.unparse(value))
            return None if is_number is None else (total, is_number)
        case [ast.AugAssign(op=ast.Add(), target=ast.Name(id=total), value=value)]:
            return (total, _is_item(value)) if _is_square(inference, value, walked) else None
    return None


def _is_zero(node: ast.stmt, name: str) -> bool:
    match node:
        case ast.Assign(targets=[ast.Name(id=target)], value=ast.Constant(value=0)):
            return target == name
    return False


def _is_root(value: ast.expr, name: str, is_number: bool) -> bool:
    roots = (*_ROOTS, *(_NUMBERS if is_number else _TENSORS))
    return ast.unparse(value) in [root.format(name) for root in roots]


def _is_item(node: ast.expr) -> bool:
    """Whether a norm or a square is a number of Python."""
    match node:
        case ast.BinOp(op=ast.Pow(), left=left):
            return _is_item(left)
        case ast.Call(func=ast.Attribute(attr="item"), args=[]):
            return True
    return False


def _is_square(inference: Inference, node: ast.expr, name: str) -> bool:
    """The square of the norm of a parameter's gradient: ``p.grad.norm().item() ** 2``, ``(p.grad ** 2).sum()``."""
    match node:
        case ast.Call(func=ast.Attribute(attr="item", value=inner), args=[]):
            return _is_square(inference, inner, name)
        case ast.BinOp(op=ast.Pow(), left=left, right=ast.Constant(value=2)):
            return _is_norm(inference, left, name)
        case ast.Call(func=ast.Attribute(attr="sum", value=inner), args=[], keywords=[]):
            pass
        case ast.Call(func=func, args=[inner], keywords=[]) if _is_torchs(inference, func, "sum"):
            pass
        case _:
            return False
    match inner:
        case ast.BinOp(op=ast.Pow(), left=held, right=ast.Constant(value=2)):
            return _is_gradient(held, name)
        case ast.Call(func=ast.Attribute(attr="pow", value=held), args=[ast.Constant(value=2)], keywords=[]):
            return _is_gradient(held, name)
        case ast.Call(func=ast.Attribute(attr="square", value=held), args=[], keywords=[]):
            return _is_gradient(held, name)
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            return _is_gradient(left, name) and _is_gradient(right, name)
    return False


def _is_norm(inference: Inference, node: ast.expr, name: str) -> bool:
    """The norm of a parameter's gradient: ``p.grad.detach().data.norm(2)``, ``torch.norm(p.grad).item()``."""
    match node:
        case ast.Call(func=ast.Attribute(attr="item", value=inner), args=[]):
            return _is_norm(inference, inner, name)
        case ast.Call(func=func, args=[held, *order], keywords=[]) if _is_torchs(inference, func, *_NORMS):
            return _are_two(order) and _is_gradient(held, name)
        case ast.Call(func=ast.Attribute(attr="norm", value=held), args=order, keywords=[]):
            return _are_two(order) and _is_gradient(held, name)
        case ast.Call(func=ast.Attribute(attr="norm", value=held), args=[], keywords=[ast.keyword("p", order)]):
            return _are_two([order]) and _is_gradient(held, name)
    return False


def _is_torchs(inference: Inference, function: ast.expr, *names: str) -> bool:
    """Whether it is a function of PyTorch, of one of these names."""
    fact = inference.fact(function)
    return isinstance(fact, Qual) and is_torch(fact.name) and fact.name.rpartition(".")[2] in names


def _are_two(order: Sequence[ast.expr]) -> bool:
    """Whether the order of a norm is 2, or left at it."""
    return all(isinstance(one, ast.Constant) and one.value == 2 for one in order)


def _is_gradient(node: ast.expr, name: str) -> bool:
    """``p.grad``, also detached."""
    match node:
        case ast.Attribute(attr="data", value=inner):
            return _is_gradient(inner, name)
        case ast.Call(func=ast.Attribute(attr="detach" | "clone" | "float", value=inner), args=[], keywords=[]):
            return _is_gradient(inner, name)
    return ast.unparse(node) == f"{name}.grad"
