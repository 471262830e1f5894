"""Classes, methods and functions cut otherwise, or in another order."""

from __future__ import annotations

import ast
import builtins
import random

import libcst as cst
import libcst.matchers as m

from benchmarks.metamorphic.change import change
from benchmarks.metamorphic.source import Source


def _plain_method(node: cst.BaseStatement, name: str) -> cst.FunctionDef | None:
    """A method without decorators, keyword-only or starred parameters."""
    if not isinstance(node, cst.FunctionDef) or node.name.value != name or node.decorators or node.asynchronous:
        return None
    parameters = node.params
    star = isinstance(parameters.star_arg, cst.Param) or parameters.star_kwarg or parameters.kwonly_params
    return None if star or parameters.posonly_params or not parameters.params else node


def _words(node: cst.CSTNode) -> set[str]:
    return {n.value for n in m.findall(node, m.Name()) if isinstance(n, cst.Name)}


class _Modules(cst.CSTTransformer):
    """Base of transforms of the module classes at the top level."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.depth = 0

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self.depth += 1

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.depth += 1

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        self.depth -= 1
        return updated_node

    def leave_ClassDef(
        self, original_node: cst.ClassDef, updated_node: cst.ClassDef
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        self.depth -= 1
        if self.depth or not self.source.is_module_class(original_node):
            return updated_node
        if not isinstance(updated_node.body, cst.IndentedBlock):
            return updated_node
        return self.changed(updated_node, list(updated_node.body.body))

    def changed(
        self, node: cst.ClassDef, body: list[cst.BaseStatement]
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        """What stands for a module class."""
        raise NotImplementedError


def _with_body(node: cst.ClassDef, body: list[cst.BaseStatement]) -> cst.ClassDef:
    assert isinstance(node.body, cst.IndentedBlock)
    return node.with_changes(body=node.body.with_changes(body=body))


class _SplitClass(_Modules):
    def changed(
        self, node: cst.ClassDef, body: list[cst.BaseStatement]
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        forward = next((s for s in body if _plain_method(s, "forward")), None)
        code = cst.Module([]).code_for_node(node)
        private = m.findall(node, m.Name(value=m.MatchIfTrue(lambda v: v.startswith("__") and not v.endswith("__"))))
        if forward is None or "__class__" in code or "super" in _words(forward) or private or node.decorators:
            return node
        if m.findall(node, m.Call(func=m.Name("super"), args=[m.Arg(), m.ZeroOrMore()])) or len(body) < 2:
            return node
        if node.name.value in _words(node.body):
            return node
        name = self.source.fresh(f"{node.name.value}Layers")
        base = _with_body(node.with_changes(name=cst.Name(name)), [s for s in body if s is not forward])
        own = cst.ClassDef(
            node.name, cst.IndentedBlock([forward]), [cst.Arg(cst.Name(name))], leading_lines=[cst.EmptyLine()] * 2
        )
        return cst.FlattenSentinel([base, own])


@change("a class split into base and subclass")
def class_split(source: Source, rng: random.Random) -> cst.Module:
    """The layers in a base class, forward in a subclass of it."""
    return source.module.visit(_SplitClass(source))


class _Helper(_Modules):
    def changed(self, node: cst.ClassDef, body: list[cst.BaseStatement]) -> cst.BaseStatement:
        index = next((i for i, s in enumerate(body) if _plain_method(s, "forward")), None)
        if index is None:
            return node
        forward = _plain_method(body[index], "forward")
        assert forward is not None
        if m.findall(forward, m.Name("super") | m.Name("__class__")):
            return node
        name = self.source.fresh("_run")
        names = [p.name.value for p in forward.params.params]
        call = cst.parse_statement(f"return {names[0]}.{name}({', '.join(names[1:])})")
        own = forward.with_changes(body=cst.IndentedBlock([call]))
        helper = forward.with_changes(name=cst.Name(name), leading_lines=[cst.EmptyLine()])
        return _with_body(node, [*body[:index], own, helper, *body[index + 1 :]])


@change("forward through a method")
def forward_through_method(source: Source, rng: random.Random) -> cst.Module:
    """Forward hands its arguments to a method that has its body."""
    return source.module.visit(_Helper(source))


class _Super(_Modules):
    def changed(self, node: cst.ClassDef, body: list[cst.BaseStatement]) -> cst.BaseStatement:
        class Swap(cst.CSTTransformer):
            def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
                if not m.matches(original_node.func, m.Name("super")):
                    return updated_node
                if not original_node.args:
                    return updated_node.with_changes(
                        args=[cst.Arg(cst.Name(node.name.value)), cst.Arg(cst.Name("self"))]
                    )
                if m.matches(original_node, m.Call(args=[m.Arg(m.Name(node.name.value)), m.Arg(m.Name("self"))])):
                    return updated_node.with_changes(args=[])
                return updated_node

            def visit_Lambda(self, node: cst.Lambda) -> bool:
                return False

        swapped = [
            s.visit(Swap())
            if isinstance(s, cst.FunctionDef) and s.params.params and s.params.params[0].name.value == "self"
            else s
            for s in body
        ]
        return _with_body(node, [s for s in swapped if isinstance(s, cst.BaseStatement)])


@change("super with and without arguments")
def other_super(source: Source, rng: random.Random) -> cst.Module:
    """super(Net, self).__init__() for super().__init__(), and the other way round."""
    return source.module.visit(_Super(source))


class _Reverse(_Modules):
    """Methods in reverse, where no decorator or default reads another name of the class."""

    def changed(self, node: cst.ClassDef, body: list[cst.BaseStatement]) -> cst.BaseStatement:
        first = next((i for i, s in enumerate(body) if isinstance(s, cst.FunctionDef)), len(body))
        methods = body[first:]
        if len(methods) < 2 or not all(isinstance(s, cst.FunctionDef) and not s.decorators for s in methods):
            return node
        names = [s.name.value for s in methods if isinstance(s, cst.FunctionDef)]
        heads = {w for s in methods if isinstance(s, cst.FunctionDef) for w in _words(s.params)}
        if len(set(names)) < len(names) or heads & set(names):
            return node
        return _with_body(node, [*body[:first], *reversed(methods)])


@change("methods in another order")
def methods_reordered(source: Source, rng: random.Random) -> cst.Module:
    """The methods of a class from the last to the first."""
    return source.module.visit(_Reverse(source))


@change("functions in another order")
def functions_reordered(source: Source, rng: random.Random) -> cst.Module:
    """Functions at the top level behind everything that only runs when it is called."""
    body = list(source.module.body)
    start = next((i for i, s in enumerate(body) if isinstance(s, cst.FunctionDef | cst.ClassDef)), len(body))
    end = start
    while end < len(body) and isinstance(body[end], cst.FunctionDef | cst.ClassDef):
        end += 1
    block = body[start:end]
    movable = [s for s in block if isinstance(s, cst.FunctionDef) and _moves(s, block)]
    if not movable or len(movable) == len(block):
        return source.module
    left = [s for s in block if s not in movable]
    return source.module.with_changes(body=[*body[:start], *left, *reversed(movable), *body[end:]])


def _moves(function: cst.FunctionDef, block: list[cst.BaseStatement]) -> bool:
    """Whether nothing of the block reads a function when it is defined, and its own head reads nothing of the block."""
    own = {s.name.value for s in block if isinstance(s, cst.FunctionDef | cst.ClassDef)}
    returns = _words(function.returns) if function.returns is not None else set()
    if function.decorators or (_words(function.params) | returns) & own:
        return False
    tree = ast.parse(cst.Module(block).code)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            parts: list[ast.AST] = [*node.decorator_list]
            if isinstance(node, ast.ClassDef):
                parts += [*node.bases, *node.keywords, *(s for s in node.body if not isinstance(s, ast.FunctionDef))]
                parts += [p for s in node.body if isinstance(s, ast.FunctionDef) for p in (s.args, *s.decorator_list)]
            else:
                parts.append(node.args)
            read = {n.id for part in parts for n in ast.walk(part) if isinstance(n, ast.Name)}
            if function.name.value in read:
                return False
    return True


class _Outside(_Modules):
    """What forward returns is computed by a function outside of the class."""

    def changed(
        self, node: cst.ClassDef, body: list[cst.BaseStatement]
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        index = next((i for i, s in enumerate(body) if _plain_method(s, "forward")), None)
        if index is None:
            return node
        forward = body[index]
        assert isinstance(forward, cst.FunctionDef) and isinstance(forward.body, cst.IndentedBlock)
        last = forward.body.body[-1]
        match last:
            case cst.SimpleStatementLine(body=[cst.Return(value=cst.Call() | cst.BinaryOperation() as value)]):
                pass
            case _:
                return node
        inner = m.Lambda() | m.CompFor() | m.NamedExpr() | m.Await() | m.Yield() | m.Name("super") | m.Name("locals")
        if m.findall(value, inner) or m.findall(forward, m.FunctionDef()) != [forward]:
            return node
        read = [n for n in dict.fromkeys(_read(value)) if n in _bound(forward)]
        if any(
            n in _words(forward)
            and n in self.source.bound
            and n not in _bound(forward)
            and not hasattr(builtins, n)
            and self.source.bound[n] > 1
            for n in _read(value)
        ):
            return node
        name = self.source.fresh(f"finish_{node.name.value.lower()}")
        call = cst.parse_expression(f"{name}({', '.join(read)})")
        line = last.with_changes(body=[cst.Return(call)])
        new = forward.with_changes(body=forward.body.with_changes(body=[*forward.body.body[:-1], line]))
        outside = cst.parse_statement(
            f"def {name}({', '.join(read)}):\n    return {cst.Module([]).code_for_node(value)}\n"
        )
        assert isinstance(outside, cst.FunctionDef)
        changed = _with_body(node, [*body[:index], new, *body[index + 1 :]])
        return cst.FlattenSentinel([outside.with_changes(leading_lines=[cst.EmptyLine()] * 2), changed])


def _read(value: cst.BaseExpression) -> list[str]:
    """The variables that an expression reads, in its order."""
    tree = ast.parse(f"({cst.Module([]).code_for_node(value)})", mode="eval")
    names = [n for n in ast.walk(tree) if isinstance(n, ast.Name)]
    return [n.id for n in sorted(names, key=lambda n: (n.lineno, n.col_offset))]


def _bound(function: cst.FunctionDef) -> set[str]:
    """The variables of a function."""
    tree = ast.parse(cst.Module([]).code_for_node(function))
    stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return stored | {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}


@change("an expression moved into a function")
def moved_into_function(source: Source, rng: random.Random) -> cst.Module:
    """Def finish(self, x): return self.fc(x) outside of the class, and return finish(self, x) in forward."""
    return source.module.visit(_Outside(source))


class _Handed(_Modules):
    """Own classes that __init__ calls are handed to a method as values."""

    def changed(self, node: cst.ClassDef, body: list[cst.BaseStatement]) -> cst.BaseStatement:
        name = self.source.fresh("_built")
        source = self.source

        class Hand(cst.CSTTransformer):
            used = False

            def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
                func = original_node.func
                if not isinstance(func, cst.Name) or func.value not in source.classes:
                    return updated_node
                if not source.is_module_class(source.classes[func.value]):
                    return updated_node
                self.used = True
                args = [cst.Arg(func), *updated_node.args]
                return updated_node.with_changes(func=cst.parse_expression(f"self.{name}"), args=args)

        hand = Hand()
        new = [
            s.visit(hand)
            if isinstance(s, cst.FunctionDef) and s.name.value == "__init__" and "self" in _words(s.params)
            else s
            for s in body
        ]
        if not hand.used:
            return node
        method = cst.parse_statement(f"def {name}(self, block, *args, **kwargs):\n    return block(*args, **kwargs)\n")
        assert isinstance(method, cst.FunctionDef)
        method = method.with_changes(leading_lines=[cst.EmptyLine()])
        return _with_body(node, [*(s for s in new if isinstance(s, cst.BaseStatement)), method])


@change("a class handed over as a value")
def class_as_value(source: Source, rng: random.Random) -> cst.Module:
    """self._built(Block, 3) for Block(3), with a method that calls what it is given."""
    return source.module.visit(_Handed(source))


@change("moved into main()")
def moved_into_main(source: Source, rng: random.Random) -> cst.Module:
    """The body of if __name__ == "__main__" as a function main(), where no function reads its names."""
    body = list(source.module.body)
    for index, statement in enumerate(body):
        guard = isinstance(statement, cst.If) and statement.orelse is None and _is_guard(statement.test)
        if guard and isinstance(statement, cst.If) and isinstance(statement.body, cst.IndentedBlock):
            inside = ast.parse(cst.Module(list(statement.body.body)).code)
            stored = {n.id for n in ast.walk(inside) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            stored |= {n.name for n in ast.walk(inside) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
            outside = {n.id for s in source.tree.body[:index] for n in ast.walk(s) if isinstance(n, ast.Name)}
            if stored & outside or "main" in source.words:
                return source.module
            main = cst.FunctionDef(
                cst.Name("main"), cst.Parameters(), statement.body, leading_lines=statement.leading_lines
            )
            call = cst.IndentedBlock([cst.parse_statement("main()")])
            body[index : index + 1] = [main, statement.with_changes(body=call)]
            return source.module.with_changes(body=body)
    return source.module


def _is_guard(test: cst.BaseExpression) -> bool:
    return m.matches(test, m.Comparison(left=m.Name("__name__")))
