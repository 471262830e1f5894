"""Gradients in tests: what stands before ``loss.backward()`` becomes a function of what ``.grad`` is read from.

::

    x = torch.randn(3, 4, requires_grad=True)      x = rngs.normal((3, 4))

    loss = net(x).sum()                            def loss_fn(x):
    loss.backward()                                    loss = net(x).sum()
                                                       return loss

    assert x.grad.shape == x.shape                 x_grad = jax.grad(loss_fn)(x)
                                                   assert x_grad.shape == x.shape
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from .classes import FunctionInfo
from .context import Context
from .facts import Object, Qual, Tensor, is_module
from .precedence import Piece
from .render import Renderer
from .rule import REGISTRY
from .source import Source
from .statements import Statements
from .training_protocol import blocks, differentiates
from .training_text import converted, indented, lead_comments, rendered, span_of_lines
from .unit_tests import caller_of

UNUSED = "Where PyTorch leaves .grad None, for what the loss does not depend on, JAX gives zeros."
_MODES = frozenset({"train", "eval", "load_state_dict", "requires_grad_", "manual_seed", "to"})


class _Left(Exception):
    """The test is not surely understood: it is left to what handles training code."""


@dataclass
class _Root:
    """What the loss is differentiated by, or the module that it is computed with: ``x``, ``net``, ``self.net``."""

    text: str
    name: str
    """What it is called as a parameter of the loss function."""
    module: bool
    wanted: bool = False
    """Whether its gradient is read."""
    grad: str = ""


@dataclass
class _Plan:
    """One backward pass and what belongs to it."""

    info: FunctionInfo
    block: Sequence[ast.stmt]
    at: int
    call: ast.Call
    roots: dict[str, _Root] = field(default_factory=dict)
    moved: list[ast.stmt] = field(default_factory=list)
    """Statements that compute the loss."""
    first: int = 0
    outputs: list[str] = field(default_factory=list)
    """Names of the loss function's that are read behind it, the loss first if it is."""
    reads: bool = False
    """Whether the loss itself is read."""


def plan_gradients(context: Context) -> set[FunctionInfo]:
    """Put handlers on the tests that convert, and give these tests."""
    done: set[FunctionInfo] = set()
    if not context.inference.holds_tests:
        return done
    for info in context.inference.functions.values():
        if info.external or not caller_of(info, context.inference) or info.outer is not None:
            continue
        try:
            plans = [_Gradients(context, found) for found in _find(context, info)]
            names: set[str] = set()
            for one in plans:
                one.look()
            roots = [text for one in plans for text in one.found.roots]
            if len(set(roots)) < len(roots):
                continue  # their gradients add up
            for one in plans:
                names |= one.plan(names, set(roots))
            for one in plans:
                one.take()
            if plans:
                done.add(info)
        except _Left:
            continue
    return done


def _find(context: Context, info: FunctionInfo) -> list[_Plan]:
    """The backward passes of a test."""
    found: list[_Plan] = []
    for node in ast.walk(info.node):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = context.fact(node.func.value)
            if isinstance(owner, Object) and owner.kind in ("optimizer", "scaler"):
                raise _Left
    for block in blocks(info.node.body):
        for index, node in enumerate(block):
            if isinstance(node, ast.Expr) and differentiates(context, node.value):
                assert isinstance(node.value, ast.Call)
                found.append(_Plan(info, block, index, node.value))
    if len({id(plan.block) for plan in found}) > 1:
        raise _Left
    return found


class _Gradients:
    """Plans one backward pass, and writes it."""

    def __init__(self, context: Context, plan: _Plan) -> None:
        self.names: set[str] = set()
        """Names that the backward passes of the test have taken."""
        self.handlers: list[tuple[ast.expr, Callable[[Renderer], Piece | None]]] = []
        self.ctx = context
        self.found = plan
        self.source: Source = context.source
        self.undone: list[Callable[[], None]] = []

    def look(self) -> None:
        """Finds out what the loss is computed from. Raises _Left where something is not surely understood."""
        function = self.found.call.func
        assert isinstance(function, ast.Attribute)
        self.loss: ast.expr = function.value
        self.weights = self._weights()
        self._roots()
        self._slice()

    def plan(self, names: set[str], roots: set[str]) -> set[str]:
        """Finds out where gradients are read, and gives the names that it takes beside ``names``. Raises _Left.

        ``roots`` are those of all backward passes of the test.
        """
        found = self.found
        reads = self._gradient_reads(roots)
        self.names = set(names)
        for root in found.roots.values():
            root.grad = self._fresh("grads" if root.module and self._modules == 1 else f"{root.name}_grad")
        self.name = self._fresh("loss_fn")
        self.handlers = [handler for read in reads for handler in self._read(read)]
        return self.names

    def take(self) -> None:
        """Puts the handlers on the test."""
        for node, handler in self.handlers:
            self.ctx.expression_handlers[node] = handler
        self._take()

    def _fresh(self, hint: str) -> str:
        """A name like ``hint`` that the test and what it sees have not."""
        taken = {n.id for n in ast.walk(self.found.info.node) if isinstance(n, ast.Name)}
        taken |= {a.arg for a in ast.walk(self.found.info.node) if isinstance(a, ast.arg)}
        taken |= {*self.ctx.inference.env, *self.ctx.reserved, *self.names}
        name, count = hint, 1
        while name in taken:
            count += 1
            name = f"{hint}{count}"
        self.names.add(name)
        return name

    @property
    def _modules(self) -> int:
        return sum(root.module for root in self.found.roots.values())

    def _weights(self) -> ast.expr | None:
        """The argument of ``y.backward(weights)``."""
        call = self.found.call
        keywords = {k.arg: k.value for k in call.keywords if k.arg not in ("retain_graph", "create_graph")}
        given = [*call.args, *filter(None, [keywords.pop("gradient", None)])]
        if keywords or len(given) > 1:
            raise _Left
        return given[0] if given else None

    # --- what the loss depends on ---------------------------------------------------------------------------------

    def _roots(self) -> None:
        """The tensors whose ``grad`` is read, and the modules that are called before the backward pass."""
        found = self.found
        for node in ast.walk(found.info.node):
            if isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(node.ctx, ast.Load):
                text = _plain(node.value)
                if text and isinstance(fact := self.ctx.fact(node.value), Tensor) and not fact.variable:
                    self._add(text, False).wanted = True
        for node in found.block[: found.at + 1]:
            for inner in ast.walk(node):
                text = _plain(inner) if isinstance(inner, ast.Name | ast.Attribute) else ""
                if text and text != "self" and is_module(self.ctx.fact(inner)) and not self._part_of_a_chain(inner):
                    self._add(text, True)

    def _part_of_a_chain(self, node: ast.AST) -> bool:
        """Whether it is a part of a module that is a root itself, or is stored to."""
        if not isinstance(getattr(node, "ctx", None), ast.Load):
            return True
        value = getattr(node, "value", None)
        return value is not None and is_module(self.ctx.fact(value))

    def _add(self, text: str, module: bool) -> _Root:
        if text not in self.found.roots:
            self.found.roots[text] = _Root(text, text.rpartition(".")[2], module)
        return self.found.roots[text]

    def _slice(self) -> None:
        """The statements that compute the loss from the roots."""
        found = self.found
        before = list(found.block[: found.at])
        depends: set[str] = set()
        dependent: list[ast.stmt] = []
        tensors = {r.text for r in found.roots.values() if not r.module}
        for node in before:
            reads = _reads(node)
            if self._computes(node, reads, depends) and not (_binds(node) & tensors):
                dependent.append(node)
                depends |= _binds(node)
        needed = _reads(self.loss) | (_reads(self.weights) if self.weights is not None else set())
        for node in reversed(dependent):
            if _binds(node) & needed:
                if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
                    raise _Left
                found.moved.insert(0, node)
                needed |= _reads(node)
        used = {text: root for text, root in found.roots.items() if text in needed or text in _reads(self.loss)}
        if not used:
            raise _Left
        found.roots = dict(sorted(used.items(), key=lambda item: not item[1].module))
        if len({root.name for root in used.values()}) < len(used):
            raise _Left
        found.first = before.index(found.moved[0]) if found.moved else found.at
        made = {name for node in found.moved for name in _binds(node)}
        for node in before[found.first :]:
            if node not in found.moved:
                if any(isinstance(n, ast.Attribute) and n.attr in _MODES for n in ast.walk(node)) or _binds(node):
                    raise _Left  # it may change what comes after it
        if any("rngs" in _names_of_draws(node, self.ctx) for node in [*found.moved, self.loss]):
            raise _Left
        later = [n for n in before[found.first :] if n not in found.moved] + self._behind()
        read = {name for node in later for name in _reads(node)}
        loss = self.loss.id if isinstance(self.loss, ast.Name) else ""
        found.reads = loss in read and self.weights is None
        found.outputs = [n for n in dict.fromkeys(_bound_in_order(found.moved)) if n in read & made]
        if found.reads:
            found.outputs.remove(loss)

    def _computes(self, node: ast.stmt, reads: set[str], depends: set[str]) -> bool:
        return bool(reads & (depends | self.found.roots.keys()))

    def _behind(self) -> list[ast.stmt]:
        """The statements that run after the backward pass."""
        end = self.found.call.lineno
        return [n for n in ast.walk(self.found.info.node) if isinstance(n, ast.stmt) and n.lineno > end]

    # --- where gradients are read ---------------------------------------------------------------------------------

    def _gradient_reads(self, roots: set[str]) -> list[ast.Attribute]:
        """The gradients of this pass that are read; those of arrays that no pass has are not understood."""
        found, reads = self.found, []
        for node in ast.walk(found.info.node):
            if isinstance(node, ast.Attribute) and node.attr == "grad":
                text = _plain(node.value)
                if text in roots and text not in found.roots:
                    continue  # another pass's
                if not text and len(roots) > len(found.roots):
                    raise _Left
                parent = self.ctx.parents.get(node)
                written = isinstance(parent, ast.Attribute) and parent.attr.endswith("_") and parent.attr[0] != "_"
                if not isinstance(node.ctx, ast.Load) or written or node.lineno <= found.call.lineno:
                    raise _Left
                reads.append(node)
        return reads

    def _read(self, node: ast.Attribute) -> Iterator[tuple[ast.expr, Callable[[Renderer], Piece | None]]]:
        """What ``x.grad`` and ``p.grad`` become, with the loop that ``p`` comes from."""
        root = self.found.roots.get(_plain(node.value))
        if root is not None and not root.module:
            yield node, lambda renderer: Piece(root.grad)
            return
        if isinstance(node.value, ast.Name):
            yield from self._looped(node, node.value.id)
            return
        owner = next(
            (r for t, r in self.found.roots.items() if r.module and _plain(node.value).startswith(t + ".")), None
        )
        if owner is None:
            raise _Left
        owner.wanted = True
        parameter = node.value

        def of_parameter(renderer: Renderer) -> Piece:
            text = renderer.render(parameter).text
            return Piece(owner.grad + text.removeprefix(owner.text))

        yield node, of_parameter

    def _looped(self, node: ast.Attribute, name: str) -> Iterator[tuple[ast.expr, Callable[[Renderer], Piece | None]]]:
        """``p.grad`` where ``p`` runs over the parameters of a module: the gradients are run over instead."""
        place: ast.AST | None = node
        while place is not None:
            place = self.ctx.parents.get(place)
            loops = [place] if isinstance(place, ast.For) else getattr(place, "generators", [])
            for loop in loops:
                if any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(loop.target)):
                    yield from self._over_gradients(node, name, loop, place)
                    return
        raise _Left

    def _over_gradients(
        self, node: ast.Attribute, name: str, loop: ast.For | ast.comprehension, around: ast.AST | None
    ) -> Iterator[tuple[ast.expr, Callable[[Renderer], Piece | None]]]:
        match loop.iter:
            case ast.Call(
                func=ast.Attribute(attr="parameters" | "named_parameters", value=owner), args=[], keywords=[]
            ):
                root, part = self._module_of(owner)
            case _:
                raise _Left
        assert around is not None and isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Attribute)
        reads = [
            n for n in ast.walk(around) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
        ]
        if root is None or part and loop.iter.func.attr == "named_parameters":
            raise _Left
        if not all(self._only_gradient(n) for n in reads):
            raise _Left
        root.wanted = True
        named = loop.iter.func.attr == "named_parameters"
        yield node, lambda renderer: Piece(name)
        if isinstance(loop, ast.For):
            self._loop_head(loop, root, named, part)
            return

        def iterated(renderer: Renderer) -> Piece:
            if not named:
                return Piece(f"{renderer.need('jax')}.tree.leaves({root.grad}{part})")
            key = f"{renderer.need('torch_name')}({root.text}, path)"
            return Piece(f"(({key}, g) for path, g in {renderer.need('nnx')}.to_flat_state({root.grad}))")

        yield loop.iter, iterated

    def _module_of(self, owner: ast.expr) -> tuple[_Root | None, str]:
        """The module that the loss is computed with and the part of it: ``net`` and ``.head`` of ``net.head``."""
        text = _plain(owner)
        for root in self.found.roots.values():
            if root.module and (text == root.text or text.startswith(f"{root.text}.")):
                return root, text.removeprefix(root.text)
        return None, ""

    def _only_gradient(self, node: ast.Name) -> bool:
        parent = self.ctx.parents.get(node)
        return isinstance(parent, ast.Attribute) and parent.attr in ("grad", "requires_grad")

    def _loop_head(self, loop: ast.For, root: _Root, named: bool, part: str) -> None:
        targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
        if len(targets) != 1 + named or not all(isinstance(t, ast.Name) for t in targets):
            raise _Left

        def handler(statements: Statements) -> None:
            renderer, ctx = statements.renderer, self.ctx
            names = [t.id for t in targets if isinstance(t, ast.Name)]
            used = any(isinstance(n, ast.Name) and n.id == names[0] for s in loop.body for n in ast.walk(s))
            if not named:
                ctx.replace(loop.iter, f"{renderer.need('jax')}.tree.leaves({root.grad}{part})")
            else:
                path = self._fresh("path")
                ctx.replace(loop.iter, f"{renderer.need('nnx')}.to_flat_state({root.grad})")
                ctx.replace(loop.target, f"{path if used else '_'}, {names[1]}")
                if used:
                    line = f"{names[0]} = {renderer.need('torch_name')}({root.text}, {path})"
                    ctx.insert_before(loop.body[0], [line])
            ctx.converted += 1
            statements.block(loop.body)
            statements.block(loop.orelse)

        if loop.body[0].lineno == loop.lineno:
            raise _Left
        self.undone.append(lambda: self.ctx.statement_handlers.__setitem__(loop, handler))

    # --- writing --------------------------------------------------------------------------------------------------

    def _take(self) -> None:
        """Put handlers on the statements, which are written where the first of them stands."""
        found = self.found
        if not any(root.wanted for root in found.roots.values()):
            for root in found.roots.values():
                root.wanted = root.module or not self._modules
        for done in self.undone:
            done()
        region = list(found.block[found.first : found.at + 1])
        for node in region[1:]:
            self.ctx.statement_handlers[node] = lambda statements: None
        self.ctx.statement_handlers[region[0]] = lambda statements: self._write(statements, region)
        for root in found.roots.values():
            if root.text != root.name:
                for inner in (n for s in [*found.moved, found.call] for n in ast.walk(s)):
                    if isinstance(inner, ast.Attribute) and _plain(inner) == root.text:
                        self.ctx.expression_handlers[inner] = lambda renderer, name=root.name: Piece(name)  # type: ignore[misc]

    def _write(self, statements: Statements, region: Sequence[ast.stmt]) -> None:
        ctx, found = self.ctx, self.found
        body: list[str] = []
        for node in found.moved:
            body += [*lead_comments(self.source, node), *converted(statements, node)]
        before, loss = rendered(statements, self.loss, region[-1])
        if self.weights is not None:
            more, weights = rendered(statements, self.weights, region[-1])
            before += more
            loss = f"{statements.renderer.need('jnp')}.sum({loss} * {weights})"
        body += before
        returned = ", ".join([loss, _packed(found.outputs)] if found.outputs else [loss])
        parameters = ", ".join(root.name for root in found.roots.values())
        lines = [f"def {self.name}({parameters}):", *indented([*body, f"return {returned}"], "    "), ""]
        lines.append(self._call(statements.renderer))
        for node in region[:-1]:
            if node not in found.moved:
                lines += converted(statements, node)
        start, _ = span_of_lines(self.source, region[0])
        _, end = span_of_lines(self.source, region[-1])
        indent = ctx.indent(region[0].lineno)
        above = self.source.line_text(region[0].lineno - 1).strip() if region[0].lineno > 1 else ""
        lead = [""] if above and region[0] is not found.info.node.body[0] and not above.startswith("#") else []
        ctx.edit(start, end, self.source.newline.join([*lead, *indented(lines, indent)]))
        ctx.placed_comments.update(line for line in body if line.startswith("#"))
        ctx.converted += 1
        ctx.note(found.call, "torch.Tensor.backward", "note", UNUSED)

    def _call(self, renderer: Renderer) -> str:
        """The statement that calls the loss function's gradient."""
        found, roots = self.found, list(self.found.roots.values())
        wanted = [index for index, root in enumerate(roots) if root.wanted]
        library = renderer.need("nnx" if self._modules else "jax")
        options = ""
        if wanted != [0]:
            options += f", argnums={wanted[0] if len(wanted) == 1 else tuple(wanted)}"
        if found.outputs:
            options += ", has_aux=True"
        grads = _packed([roots[index].grad for index in wanted])
        given = ", ".join(root.text for root in roots)
        if found.reads:
            assert isinstance(self.loss, ast.Name)
            value = f"({self.loss.id}, {_packed(found.outputs)})" if found.outputs else self.loss.id
            return f"{value}, {grads} = {library}.value_and_grad({self.name}{options})({given})"
        bare = ", ".join(roots[index].grad for index in wanted)
        target = f"{grads}, {_packed(found.outputs)}" if found.outputs else bare
        return f"{target} = {library}.grad({self.name}{options})({given})"


def _packed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _plain(node: ast.AST) -> str:
    """``x`` and ``self.x`` as text; empty for anything else."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute(value=inner):
            base = _plain(inner)
            return f"{base}.{node.attr}" if base else ""
    return ""


def _reads(node: ast.AST) -> set[str]:
    """The names, and attributes of names, that a piece of code reads."""
    found = {_plain(n) for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute)} - {""}
    stored = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    loaded = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    augmented = {node.target.id} if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) else set()
    return (found - (stored - loaded)) | augmented


def _binds(node: ast.stmt) -> set[str]:
    return set(_bound_in_order([node]))


def _bound_in_order(nodes: Sequence[ast.stmt]) -> list[str]:
    return [n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def _names_of_draws(node: ast.AST, context: Context) -> set[str]:
    """``rngs`` where code draws random numbers itself: a loss function could not, as it is traced."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call):
            fact = context.fact(inner.func)
            rule = REGISTRY.get(fact.name) if isinstance(fact, Qual) else None
            if rule is not None and rule.random:
                return {"rngs"}
    return set()
