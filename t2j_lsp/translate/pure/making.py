"""A module's constructor as the function that makes its parameters: ``init_net(key, ...)``."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.symbols import with_ancestors
from t2j_lsp.translate.rule.definitions import is_module

from .children import (
    Child,
    Choice,
    OwnBuffer,
    OwnParameter,
    SequentialChild,
    Setting,
    Unconvertible,
)
from .layer_making import KEY, ChildMaking
from .unpacking import chained, pairs


class Making(ChildMaking):
    """Writes the function that makes the parameters of one class."""

    def write(self) -> None:
        """Record the edits of the constructor. Raises Unconvertible."""
        node = self.constructor.node
        if node is None:
            return
        if node.body[0].lineno == node.lineno:
            raise Unconvertible(node, "its constructor stands on one line")
        for statement in reversed(self._statements(node)):
            self._statement(statement)
        for statement in reversed(self._statements(node)):
            if isinstance(statement, ast.If) and all(s in self.gone for s in [*statement.body, *statement.orelse]):
                self.gone.add(statement)
        for statement, lines in self.texts:
            self._replace(statement, [self._keyed(line) for line in lines])
        for statement in sorted(self.gone, key=lambda one: one.lineno):
            if self._is_in_empty_branch(statement):
                continue
            if not any(at in self.gone for at in with_ancestors(self.source.parents[statement], self.source.parents)):
                self.edits.delete(statement)
        self._frame(node)

    def _is_in_empty_branch(self, statement: ast.stmt) -> bool:
        """Whether a statement goes with the ``else`` that it stands in: the branch is empty."""
        around = self.source.parents[statement]
        if not isinstance(around, ast.If) or statement not in around.orelse or around in self.gone:
            return False
        if not all(one in self.gone for one in around.orelse):
            return False
        if statement is around.orelse[0] and not self.source.text.startswith("elif", self.source.span(statement)[0]):
            self.edits.add(self.edits.line_end(around.body[-1]), self.edits.line_end(around.orelse[-1]), "")
            return True
        return statement is not around.orelse[0]

    def _statements(self, node: ast.AST) -> list[ast.stmt]:
        statements: list[ast.stmt] = []
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                statements += [child, *self._statements(child)]
        return statements

    def _frame(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """The signature, the dicts, the keys, and what is returned."""
        source, first = self.source, node.args.args[0]
        start = source.span(node)[0]
        at = source.text.index(node.name, start)
        self.edits.add(at, at + len(node.name), self.names.init(self.plan.info))
        self.edits.add(*source.span(first), "key")
        if node.returns is not None:
            self.edits.replace(node.returns, "tuple" if self.plan.state else "dict")
        lines = [self._keys()] if self.keys > 1 or self.repeated else []
        lines.append("params, state = {}, {}" if self.plan.state else "params = {}")
        if self.constructor.super_init is not None:
            self._replace(self.constructor.super_init, lines)
        else:
            self.edits.insert_before(node.body[0], lines, priority=-1)
        end = node.body[-1].end_lineno or node.lineno
        at = source.line_end(end)
        lead = "" if at == 0 or source.text[:at].endswith(("\n", "\r")) else source.newline
        returned = "params, state" if self.plan.state else "params"
        self.edits.add(at, at, f"{lead}{source.indent(node.body[0].lineno)}return {returned}{source.newline}", -10)

    def _keys(self) -> str:
        if self.repeated:
            return f"keys = {self.names.helper('key_stream')}(key)"
        return f"keys = iter({self.names.library('jax')}.random.split(key, {self.keys}))"

    def _keyed(self, line: str) -> str:
        return line.replace(KEY, "next(keys)" if self.keys > 1 or self.repeated else "key")

    # --- statements -----------------------------------------------------------------------------------------------

    def _statement(self, statement: ast.stmt) -> None:
        if statement is self.constructor.super_init:
            return
        if statement in self.constructor.appends:
            name, child = self.constructor.appends[statement]
            self.texts.append((statement, self._append(name, child)))
            return
        name, attribute = self.constructor.statements.get(statement, ("", None))
        if attribute is not None and not isinstance(attribute, Setting):
            lines = self._lines(name, attribute)
            if lines:
                self.texts.append((statement, lines))
            else:
                self.gone.add(statement)
            return
        match statement:
            case ast.Assign(targets=[ast.Attribute() as target], value=value) if self.constructor.is_own(target):
                self._setting(statement, target.attr, value)
            case ast.AnnAssign(target=ast.Attribute() as target, value=ast.expr() as value):
                self._setting(statement, target.attr, value)
            case ast.Assign() if (chain := chained(statement, self.constructor.own)) is not None:
                others = [self.source.segment(target) for target in statement.targets if target is not chain]
                names = [chain.attr, *others] if chain.attr in self.read else others
                self.texts.append((statement, [" = ".join([*names, self.render(statement.value)])]))
            case ast.Assign() if places := pairs(statement, self.constructor.own):
                self._settings(statement, places)
            case ast.Expr(value=ast.Call()) if isinstance(attribute, Setting):
                self.gone.add(statement)
            case _ if hasattr(statement, "body"):
                for _, value in ast.iter_fields(statement):
                    if isinstance(value, ast.expr):
                        self._in_place(value)
            case _:
                self._in_place(statement)

    def _setting(self, statement: ast.stmt, name: str, value: ast.expr) -> None:
        """A setting that the constructor reads becomes a local variable, another one goes."""
        self._settings(statement, [(ast.Attribute(value, name, ast.Store()), value)])

    def _settings(self, statement: ast.stmt, places: list[tuple[ast.Attribute, ast.expr]]) -> None:
        lines = [
            f"{target.attr} = {self.render(value)}"
            for target, value in places
            if target.attr in self.read and not (isinstance(value, ast.Name) and value.id == target.attr)
        ]
        if lines:
            self.texts.append((statement, lines))
        else:
            self.gone.add(statement)

    def _in_place(self, node: ast.AST) -> None:
        for one in symbols.walk(node):
            if isinstance(one, ast.expr) and is_module(self.inference.fact(one)) and not self.is_self(one):
                raise Unconvertible(one, "its constructor makes a layer that is not given to an attribute at once")
            if isinstance(one, ast.Call) and (rule := self.random(one)) is not None:
                raise Unconvertible(one, f"its constructor draws numbers with {rule}")
            if isinstance(one, ast.Attribute) and self.constructor.is_own(one):
                self.edits.replace(one, self.read_again(one))
            elif isinstance(one, ast.Name) and one.id == self.constructor.own:
                if not isinstance(self.source.parents.get(one), ast.Attribute):
                    raise Unconvertible(one, "its constructor hands the module itself on")

    def _replace(self, statement: ast.stmt, lines: list[str]) -> None:
        if not self.source.starts_line(statement):
            raise Unconvertible(statement, "its constructor has several statements on one line")
        indent = self.source.indent(statement.lineno)
        self.edits.replace(statement, f"{self.source.newline}{indent}".join(lines))

    # --- what is made ---------------------------------------------------------------------------------------------

    def _lines(self, name: str, attribute: Child | OwnParameter | OwnBuffer) -> list[str]:
        """The statements that make an attribute; none where it holds nothing."""
        params, state = f'params["{name}"]', f'state["{name}"]'
        if isinstance(attribute, OwnParameter):
            return [f"{params} = {self.render(attribute.value)}"]
        if isinstance(attribute, OwnBuffer):
            return [f"{state} = {self.render(attribute.value)}"]
        return self._assign(params, state, attribute)

    def _assign(self, params: str, state: str, child: Child) -> list[str]:
        if isinstance(child, Choice):
            return self._choice(params, state, child)
        if isinstance(child, SequentialChild) and self._is_written_out(child):
            lines = [f"{params}, {state} = {{}}, {{}}"]
            if not self.plan.child_state(child):
                lines = [f"{params} = {{}}"]
            for key, item in child.items:
                lines += self._assign(f'{params}["{key}"]', f'{state}["{key}"]', item)
            return lines
        made = self.made(child)
        if made.pair is not None:
            return [f"{params}, {state} = {made.pair}"]
        if made.params is not None and made.state is not None:
            return [f"{params}, {state} = {made.params}, {made.state}"]
        return [f"{params} = {made.params}"] if made.params is not None else []

    def _choice(self, params: str, state: str, child: Choice) -> list[str]:
        then = self._assign(params, state, child.then) if child.then is not None else []
        other = self._assign(params, state, child.other) if child.other is not None else []
        test = self.render(child.test)
        if not then and not other:
            return []
        if not then:
            negated = f"not {test}" if isinstance(child.test, ast.Name | ast.Call) else f"not ({test})"
            return [f"if {negated}:", *(f"    {line}" for line in other)]
        lines = [f"if {test}:", *(f"    {line}" for line in then)]
        return [*lines, "else:", *(f"    {line}" for line in other)] if other else lines

    def _append(self, name: str, child: Child) -> list[str]:
        params, state = f'params["{name}"]', f'state["{name}"]'
        made = self.made(child)
        if made.pair is not None:
            return [
                f"layer_params, layer_state = {made.pair}",
                f"{params}.append(layer_params)",
                f"{state}.append(layer_state)",
            ]
        lines = [f"{params}.append({made.params or '{}'})"]
        return [*lines, f"{state}.append({made.state or '{}'})"] if self.plan.holds_state(name) else lines

    def _is_written_out(self, child: SequentialChild) -> bool:
        """Whether the layers of a Sequential get a statement each: for their state, or since there are many."""
        held = [item for _, item in child.items if self.plan.child_params(item)]
        return len(held) > 2 or len(held) > 1 and self.plan.child_state(child) or any(map(self.is_pair, held))
