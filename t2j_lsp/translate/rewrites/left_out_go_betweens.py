"""Objects of packages that carry PyTorch's programs to devices: ``accelerator.backward(loss)`` is ``loss.backward()``.

What such an object is handed is Flax's after conversion. Where a file that has gaps makes one, and uses it in ways of
which rules say what stands for them, it is read as if there were none (`rule.go_betweens`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from t2j_lsp import symbols
from t2j_lsp.contract import Finding, Severity
from t2j_lsp.translate.inference.call_sites import bound_arguments, called_function, defaults
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import Function
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.go_betweens import GO_BETWEENS, GoBetween
from t2j_lsp.translate.source.rearranged import Edits, Rearranged, RearrangedText
from t2j_lsp.translate.training.program.text import replaced

from .left_out import ObjectLeftOut, Stays


def with_go_betweens_left_out(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text without such objects; None if there are none, or one is used otherwise."""
    source = inference.source
    if source.words.isdisjoint(name.rpartition(".")[2] for name in GO_BETWEENS) or not list(gaps):
        return None
    made = [n for n in source.nodes if isinstance(n, ast.Call) and _class(inference, n) is not None]
    names = {_class(inference, n) for n in made}
    name = names.pop() if len(names) == 1 else None
    if name is None:
        return None
    stated = GO_BETWEENS[name]
    try:
        edits = _GoBetween(inference, name, stated, made).edits()
    except Stays:
        return None
    notes = tuple(Finding(source.contract_span(n), name, "note", Severity.NOTE, stated.note) for n in made)
    return RearrangedText((Rearranged.of(source.text, edits),), notes)


def _class(inference: Inference, node: ast.Call) -> str | None:
    fact = inference.fact(node.func)
    return fact.name if isinstance(fact, Qual) and fact.name in GO_BETWEENS else None


_Holder = ast.Name | ast.Attribute


class _GoBetween(ObjectLeftOut):
    def __init__(self, inference: Inference, name: str, stated: GoBetween, made: list[ast.Call]) -> None:
        super().__init__(inference)
        self.name, self.stated, self.made = name, stated, made
        self.ids: set[tuple[ast.AST | None, str]] = set()
        """Variables that hold the object, each with what it is local to."""
        self.attributes: set[tuple[ast.AST | None, str]] = set()
        """Attributes of ``self`` that hold it, each with the class."""

    def edits(self) -> Edits:
        """What goes, and what stands for it. Raises Stays."""
        if inference_name(self.inference, "torch") != "torch":
            raise Stays
        held: list[ast.Assign] = []
        waiting: list[ast.expr] = [*self.made]
        for call in self.made:
            self._check_constructor(call)
        while waiting:
            assigned = self.parents.get(waiting.pop())
            if not isinstance(assigned, ast.Assign) or len(assigned.targets) != 1:
                raise Stays
            held.append(assigned)
            if self._add(assigned.targets[0]):
                waiting += (n for n in self._holders() if self._is_value(n))
        places = [n for n in self._holders() if isinstance(n.ctx, ast.Load)]
        if any(self.parents.get(n) not in held for n in self._holders() if not isinstance(n.ctx, ast.Load)):
            raise Stays
        for statement in dict.fromkeys(held):
            self.drop(statement)
        self._drop_import()
        for place in sorted(places, key=self._length):
            self._place(place)
        return self.made_edits()

    def _length(self, place: _Holder) -> int:
        """How much of the text the use of an object takes, so that what stands in another is put first."""
        start, end = self.source.span(self.parents[self.parents[place]])
        return end - start

    def _check_constructor(self, call: ast.Call) -> None:
        """Raises Stays where the constructor is told what nothing says without the object."""
        if call.args or any(k.arg is None for k in call.keywords):
            raise Stays
        for keyword in call.keywords:
            values = self.stated.needed.get(keyword.arg or "")
            given = keyword.value.value if isinstance(keyword.value, ast.Constant) else NotImplemented
            if values is not None and given not in values:
                raise Stays

    def _add(self, target: ast.expr) -> bool:
        """Note what holds the object; whether that is new."""
        before = len(self.ids) + len(self.attributes)
        match target:
            case ast.Name(id=name):
                self.ids.add((self.source.home(target), name))
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                self.attributes.add((self._class_around(target), name))
            case _:
                raise Stays
        return len(self.ids) + len(self.attributes) > before

    def _class_around(self, node: ast.AST) -> ast.ClassDef | None:
        return symbols.nearest(ast.ClassDef, node, self.parents)

    def _holders(self) -> Iterator[_Holder]:
        """Where the object is named. Raises Stays where another may be."""
        names, attributes = {name for _, name in self.ids}, {name for _, name in self.attributes}
        for node in self.source.nodes:
            match node:
                case ast.Name(id=name) if name in names and (self.source.home(node), name) in self.ids:
                    yield node
                case ast.arg(arg=name) if name in names and (self._function(node), name) in self.ids:
                    raise Stays
                case ast.Attribute(attr=attr, value=owner) if attr in attributes:
                    if isinstance(owner, ast.Name) and owner.id == "self":
                        if (self._class_around(node), attr) in self.attributes:
                            yield node
                        elif not self._has_own(node):
                            raise Stays
                    elif not isinstance(self.inference.fact(owner), Qual):
                        raise Stays
                case ast.Constant(value=str() as text) if text in attributes:
                    raise Stays
                case _:
                    pass

    def _function(self, node: ast.arg) -> ast.AST | None:
        return self.parents.get(self.parents[node])

    def _has_own(self, node: ast.Attribute) -> bool:
        """Whether a class sets an attribute of this name by itself."""
        return any(
            isinstance(one, ast.Attribute) and one.attr == node.attr and isinstance(one.ctx, ast.Store)
            for one in symbols.walk(self._class_around(node) or self.source.tree)
        )

    def _is_value(self, node: ast.expr) -> bool:
        parent = self.parents.get(node)
        return isinstance(parent, ast.Assign) and parent.value is node

    def _drop_import(self) -> None:
        """The class is imported no more. Raises Stays where it is named otherwise."""
        last = self.name.rpartition(".")[2]
        for node in self.source.nodes:
            match node:
                case ast.Name() if self._is_class(node) and not self._makes(self.parents.get(node)):
                    raise Stays
                case ast.ImportFrom(names=names) if any(alias.name == last for alias in names):
                    if len(names) == 1:
                        self.drop(node)
                    else:
                        self.without(next(alias for alias in names if alias.name == last), names)
                case _:
                    pass

    def _is_class(self, node: ast.Name) -> bool:
        fact = self.inference.fact(node)
        return isinstance(fact, Qual) and fact.name == self.name

    def _makes(self, node: ast.AST | None) -> bool:
        return any(call is node for call in self.made)

    def _place(self, place: _Holder) -> None:
        """One use of the object."""
        start, end = self.source.span(place)
        parent = self.parents[place]
        if any(begin <= start and end <= stop for begin, stop in self.instead):
            return  # it stands in what goes
        match parent:
            case ast.Attribute(attr=attr, ctx=ast.Store()):
                statement = self.parents[parent]
                if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
                    raise Stays
                self.drop(statement)
            case ast.Attribute(attr=attr) if attr in self.stated.absent:
                self._absent(parent)
            case ast.Attribute(attr=attr) if attr in self.stated.values:
                inside = isinstance(self.parents[parent], ast.Compare | ast.BinOp | ast.Attribute | ast.Subscript)
                value = self.stated.values[attr]
                self.put(parent, f"({value})" if inside and " " in value else value)
            case ast.Attribute(attr=attr):
                call = self.parents[parent]
                if not isinstance(call, ast.Call) or call.func is not parent:
                    raise Stays
                self._called(call, attr)
            case ast.keyword() if isinstance(call := self.parents[parent], ast.Call):
                self._handed_on(call, parent)
            case _:
                raise Stays

    def _called(self, call: ast.Call, attr: str) -> None:
        """A method of the object."""
        statement = self.parents[call]
        if any(isinstance(a, ast.Starred) for a in call.args):
            raise Stays
        if attr in self.stated.gone and isinstance(statement, ast.Expr):
            self.drop_or_pass(statement)
        elif attr == self.stated.handed_back and call.args and not call.keywords:
            given = ", ".join(map(self._text, call.args))
            alone = isinstance(statement, ast.Assign) and statement.value is call
            if (
                alone
                and isinstance(statement, ast.Assign)
                and _targets(statement) == [ast.unparse(a) for a in call.args]
            ):
                self.drop_or_pass(statement)
            else:
                self.put(call, given if len(call.args) == 1 or alone else f"({given})")
        elif (form := self.stated.calls.get(attr)) is not None:
            self.put(call, self._form(call, form))
        else:
            raise Stays

    def _form(self, call: ast.Call, form: str) -> str:
        """What stands for a call. Raises Stays where it is told more than that says."""
        if "{all}" in form:
            return form.format(all=", ".join(map(self._text, [*call.args, *call.keywords])))
        if "{0}" not in form:
            if call.args or call.keywords:
                raise Stays
            return form
        if len(call.args) != 1 or form != "{0}" and call.keywords:
            raise Stays
        text = self._text(call.args[0])
        plain = isinstance(call.args[0], ast.Name | ast.Attribute | ast.Call | ast.Subscript)
        return form.format(text if plain else f"({text})")

    def _absent(self, node: ast.Attribute) -> None:
        """``accelerator.scaler``, which is None: what is done if there is one isn't. Raises Stays."""
        test = self._test(node)
        owner = self.parents[test]
        if isinstance(owner, ast.BoolOp) and isinstance(owner.op, ast.And):
            test, owner = owner, self.parents[owner]
        match owner:
            case ast.IfExp(orelse=orelse) if owner.test is test:
                self.put(owner, self._text(orelse))
            case ast.If(orelse=[]) if owner.test is test:
                self.drop_or_pass(owner)
            case _:
                raise Stays

    def _test(self, node: ast.Attribute) -> ast.expr:
        """The question whether something is there, ``x is not None`` or ``exists(x)``. Raises Stays."""
        match self.parents[node]:
            case ast.Compare(ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]) as test:
                return test
            case ast.Call(args=[_], keywords=[]) as test if _asks(self.inference, test):
                return test
            case ast.Call() | ast.Attribute() if (outer := self._asked_around(node)) is not None:
                return outer
        raise Stays

    def _asked_around(self, node: ast.Attribute) -> ast.expr | None:
        """The same question in front of the branch that a use stands in."""
        for around in symbols.ancestors(node, self.parents):
            if isinstance(around, ast.IfExp | ast.If):
                parts = around.test.values if isinstance(around.test, ast.BoolOp) else [around.test]
                for part in parts:
                    if ast.unparse(node) in ast.unparse(part) and node not in symbols.walk(around.test):
                        return part
        return None

    def _handed_on(self, call: ast.Call, keyword: ast.keyword) -> None:
        """Where a function is handed the object that does without one, too. Raises Stays."""
        info = called_function(self.inference.fact(call.func))
        if info is None or any(isinstance(a, ast.Starred) for a in call.args):
            raise Stays
        bound = [parameter for parameter, value in bound_arguments(call, info) if value is keyword.value]
        given = dict(defaults(info))
        default = given.get(bound[0]) if len(bound) == 1 else None
        if not isinstance(default, ast.Constant) or default.value is not None:
            raise Stays
        self.without(keyword, [*call.args, *call.keywords])

    def _text(self, node: ast.AST) -> str:
        """The text of an argument, in which what stood for others stands already."""
        start, end = self.source.span(node)
        text = replaced(self.source, start, end, self.instead)
        return text if self.source.text[start:end].endswith("\n") else text.removesuffix(self.source.newline)


def _targets(statement: ast.Assign) -> list[str]:
    """What an assignment assigns to, as text."""
    target = statement.targets[0]
    if len(statement.targets) != 1:
        return []
    return [ast.unparse(one) for one in (target.elts if isinstance(target, ast.Tuple) else [target])]


def _asks(inference: Inference, call: ast.Call) -> bool:
    """Whether a function of the file says if something isn't None."""
    fact = inference.fact(call.func)
    if not isinstance(fact, Function):
        return False
    match fact.info.node:
        case ast.FunctionDef(
            args=ast.arguments(args=[ast.arg(arg=own)]),
            body=[
                ast.Return(
                    value=ast.Compare(
                        left=ast.Name(id=asked), ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]
                    )
                )
            ],
        ):
            return own == asked
    return False


def inference_name(inference: Inference, name: str) -> str | None:
    """What a name of the module level is in a library."""
    fact = inference.env.get(name)
    return fact.name if isinstance(fact, Qual) else None
