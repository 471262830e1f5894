"""Writes the compiled function of an update: ``loss_fn``, its gradient, the optimizer's update, what it returns."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context, Names
from t2j_lsp.translate.expressions.handlers import StatementRewriter
from t2j_lsp.translate.rule.binding import argument
from t2j_lsp.translate.rule.facts import Tensor
from t2j_lsp.translate.rule.library import is_loss
from t2j_lsp.translate.rule.pieces import ATOM, Piece, bracket

from .allocations import Allocations
from .dict_order import DictOrder
from .flow import DataFlow
from .given_functions import is_function
from .inputs import Inputs
from .objects import Objects, VariableScope
from .passed import Input, name_passed
from .shared_draws import draw_once
from .step_calls import Refused, StepCall, clip_kind
from .text import converted, indented, lead_comments, rendered, returned_at_once
from .update import Update


@dataclass
class UpdateStep:
    """The text of one update."""

    name: str
    function: list[str]
    """The compiled function, at no indentation."""
    call: str
    """The call that makes the update, with the names it gives."""
    otherwise: str = ""
    """The call that only evaluates, for the case that no update is made."""


@dataclass
class _Body:
    """What stands in ``loss_fn``."""

    lines: list[str]
    losses: list[tuple[list[str], str]]
    """Each loss with the lines it needs in front of it."""
    results: list[str] = field(default_factory=list)
    ordered: frozenset[str] = frozenset()
    """Results that are dicts, in a program that reads their order."""

    def __post_init__(self) -> None:
        self.text = "\n".join([*self.lines, *(line for before, loss in self.losses for line in (*before, loss))])

    def mentions(self, name: str) -> bool:
        return re.search(rf"(?<![\w.]){re.escape(name)}\b(?!\s*=[^=])", self.text) is not None

    @property
    def words(self) -> set[str]:
        return set(re.findall(r"[A-Za-z_]\w*", self.text))

    @property
    def bound(self) -> set[str]:
        """Names that the code assigns, which are its own from the first line on."""
        tree = ast.parse("\n".join([*self.lines, *(line for before, _ in self.losses for line in before)]))
        return {n.id for n in symbols.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}


class StepWriter:
    """Writes the steps of one scope."""

    def __init__(
        self, context: Context, objects: Objects, scope: VariableScope, flow: DataFlow, bare: type[Composer]
    ) -> None:
        self.bare = bare
        """What composes the updates of bare tensors."""
        self.ctx = context
        self.objects = objects
        self.scope = scope
        self.flow = flow

    def write(self, update: Update, statements: StatementRewriter) -> UpdateStep:
        """Render an update; ``statements`` knows the functions and classes around it."""
        self.need = statements.renderer.need
        moved = sorted([*update.slice.moved, *update.slice.split])
        parts, trained = self._parts(update, moved), self._trained(update)
        finder = Inputs(self.ctx, self.flow, self.scope, self.objects, compiled=not update.once)
        inputs = finder.of(parts, trained)
        optimizers = (
            [finder.optimizer(one.text) for one in update.optimized] if update.mode in ("fused", "conditional") else []
        )
        clips = [self._clip(clip, update, finder, inputs, statements) for clip in update.clips]
        for one in inputs.values():
            kept = [place for place in one.places if place in self.ctx.plan.kept_tensors]
            if kept and one.kind == "array" and not one.given:  # a compiled function takes no tensors of PyTorch
                one.given, one.places = one.text, [*kept, *(p for p in one.places if p not in kept)]
        for one in inputs.values():
            if one.given:
                _, one.given = rendered(self.ctx, statements, one.places[0], update.items[update.losses[0][0]].node)
        renamed([*inputs.values()], parts, self.ctx)
        name_passed(parts, self.flow.passed, [*inputs.values()])
        for one in inputs.values():
            for place in one.places if one.given else ():
                statements.renderer.put(place, Piece(one.name))
        for one in inputs.values():
            if one.positions:
                one.given = f"{self.need('jnp')}.nonzero({one.given or one.text})"
        inputs |= {i.text: i for i in draw_once(self.ctx, statements, update.items, update.slice)}
        body = self._body(update, statements, moved)
        body.results = [n for n in update.live if len(body.losses) > 1 or n != body.losses[0][1]]
        order = DictOrder(self.ctx)
        body.ordered = frozenset(name for name in body.results if order.loses(name, parts))
        self._draws(body, inputs, finder)
        used = [i for i in inputs.values() if i.text in trained or body.mentions(i.name) or i.kind == "limit"]
        composer = self.bare if update.optimized[0].state else Composer
        return composer(self, update, body, used, optimizers, trained, clips, inputs).step()

    def check(self, update: Update) -> None:
        """Raises Refused if what the step computes with can't be passed to a compiled function."""
        moved = sorted([*update.slice.moved, *update.slice.split])
        parts, order = self._parts(update, moved), DictOrder(self.ctx)
        Inputs(self.ctx, self.flow, self.scope, self.objects, not update.once).of(parts, self._trained(update))
        for name in update.live:
            order.loses(name, parts)

    def _parts(self, update: Update, moved: Sequence[int]) -> list[ast.AST]:
        """What is computed in the step, in its order."""
        parts: list[ast.AST] = [update.slice.split.get(i) or update.items[i].node for i in moved]
        return parts + [loss for _, loss in update.losses]

    def _trained(self, update: Update) -> list[str]:
        return list(dict.fromkeys(self.base(m) for one in update.optimized for m in one.modules))

    def base(self, module: str) -> str:
        """The module that is passed for ``model.head``: the variable it is in."""
        node: ast.expr = ast.parse(module, mode="eval").body
        while self.flow.variable(node) is None and isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        return ast.unparse(node)

    # --- the differentiated function ------------------------------------------------------------------------------

    def _body(self, update: Update, statements: StatementRewriter, moved: Sequence[int]) -> _Body:
        lines: list[str] = []
        for index in moved:
            node = update.items[index].node
            lines += [f"{name} = {held}" for (at, held), name in update.saved.items() if at == index]
            lines += lead_comments(self.ctx.source, node)
            if index in update.slice.split:
                before, text = rendered(self.ctx, statements, update.slice.split[index], node)
                assert isinstance(node, ast.Assign)
                lines += [*before, f"{self.ctx.source.segment(node.targets[0])} = {text}"]
            else:
                lines += [line for line in converted(self.ctx, statements, node) if line.strip() != "pass"]
        losses = [self._loss(statements, loss, update.items[i].node) for i, loss in update.losses]
        return _Body(lines, losses)

    def _loss(self, statements: StatementRewriter, loss: ast.expr, place: ast.stmt) -> tuple[list[str], str]:
        """A loss as a number: PyTorch also takes an array of one, as ``torch.zeros(1)`` that losses are added to."""
        before, text = rendered(self.ctx, statements, loss, place)
        fact = self.ctx.fact(loss)
        return before, f"{bracket(Piece(text), ATOM)}.squeeze()" if isinstance(fact, Tensor) and fact.rank else text

    def _draws(self, body: _Body, inputs: dict[str, Input], finder: Inputs) -> None:
        """Pass the ``nnx.Rngs`` that the moved code draws from."""
        if body.mentions("rngs") and "rngs" not in inputs:
            inputs["rngs"] = Input("rngs", "rngs", "module")
        if re.search(r"\bself\.rngs\b", body.text):
            raise Refused("The loss draws random numbers from the module itself.")

    def _clip(
        self, clip: StepCall, update: Update, finder: Inputs, inputs: dict[str, Input], statements: StatementRewriter
    ) -> tuple[StepCall, list[str]]:
        """A clipping with its arguments; what they are made from is passed to the step too."""
        given = limits(clip.call)
        target = finder.of(given, ())
        for text, one in target.items():
            one.kind = "limit"
            inputs.setdefault(text, one)
        renamed([*target.values()], given, self.ctx)
        return clip, [rendered(self.ctx, statements, node, clip.node)[1] for node in given]


def limits(call: ast.Call) -> list[ast.expr]:
    """What gradients are clipped to: the limit, and the order of the norm where it isn't 2."""
    limit = argument(call, 1, "max_norm") or argument(call, 1, "clip_value")
    order = argument(call, 2, "norm_type")
    if limit is None:
        raise Refused("Can't tell what the gradients are clipped to.")
    if order is None or isinstance(order, ast.Constant) and order.value == 2:
        return [limit]
    return [limit, order]


def renamed(inputs: Sequence[Input], parts: Sequence[ast.AST], ctx: Context) -> None:
    """``self.model`` is ``model`` inside the step."""
    texts = {i.text: i.name for i in inputs if i.text != i.name}
    for part in parts if texts else ():
        for node in symbols.walk(part):
            if isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) in texts:
                ctx.scope.renamed[node] = texts[ast.unparse(node)]


def clip_lines(ctx: Context, clip: StepCall, arguments: Sequence[str], grads: str, need: object) -> list[str]:
    """``grads = clip_grad_norm(grads, 1.0)``, with the norm before it where the program keeps it."""
    assert callable(need)
    if clip_kind(ctx.inference, clip) == "value":
        limit = arguments[0]
        negative = f"-{limit}" if limit.isidentifier() or re.fullmatch(r"[\d.e-]+", limit) else f"-({limit})"
        g = "g" if not re.search(r"\bg\b", limit) else "gradient"
        text = f"lambda {g}: {need('jnp')}.clip({g}, {negative}, {limit})"
        return [f"{grads} = {need('jax')}.tree.map({text}, {grads})"]
    lines, order = [], "_of" if len(arguments) > 1 else ""
    if clip.target is not None:
        given = ", ".join([grads, *arguments[1:]])
        lines.append(f"{ast.unparse(clip.target)} = {need(f'grad_norm{order}')}({given})")
    if lines and arguments[0] in ('float("inf")', "float('inf')", "jnp.inf", "np.inf", "math.inf"):
        return lines
    return [*lines, f"{grads} = {need(f'clip_grad_norm{order}')}({', '.join([grads, *arguments])})"]


@dataclass
class Composer:
    """Puts the parts of one step together."""

    writer: StepWriter
    update: Update
    body: _Body
    used: list[Input]
    optimizers: list[Input]
    trained: list[str]
    clips: list[tuple[StepCall, list[str]]]
    inputs: dict[str, Input]

    def step(self) -> UpdateStep:
        self.names = (
            self.body.words | {i.name for i in (*self.used, *self.optimizers)} | set(self.writer.ctx.inference.env)
        )
        only = self.body.losses[0][1] if len(self.body.losses) == 1 else ""
        self.loss = only if only.isidentifier() else free(self.names, "loss", "total_loss")
        self.grads = free(self.names | {self.loss}, "grads", "gradients")
        self.loss_fn = free(self.names | {self.loss}, "loss_fn", "compute_loss", "objective")
        rank = {"module": 0, "function": 2, "array": 3, "limit": 4, "static": 5}
        self.used.sort(key=lambda i: rank[i.kind])
        self.modules = [i for i in self.used if i.kind == "module"]
        self.modules.sort(key=lambda i: self.trained.index(i.text) if i.text in self.trained else len(self.trained))
        self.others = [i for i in self.used if i.kind != "module"]
        bound = self.body.bound
        self.own = [*self.modules, *(i for i in self.others if i.name in bound)]
        self.returned = ([self.loss] if only in self.update.live or not self._given() else []) + self._given()
        name = self.update.name
        static = [i.name for i in self.others if self._is_static(i)]
        quoted = [f'"{name}"' for name in static]
        known = quoted[0] if len(static) == 1 else f"({', '.join(quoted)})"
        options = f"static_argnames={known}" if static else ""
        said = ", ".join(filter(None, [options, "graph=False" if self._takes_trees() else ""]))
        decorator = f"@{self._transforms()}.jit" + (f"({said})" if said else "")
        if self.update.mode == "conditional":
            return self._conditional(name, decorator, f", {options}" if static else "")
        taken = [i.name for i in self._taken()]
        lines = [*([decorator] if not self.update.once else []), f"def {name}({', '.join(taken)}):"]
        loss_lines = [
            f"def {self.loss_fn}({', '.join(i.name for i in self.own)}):",
            *indented(self._loss_body(), "    "),
        ]
        lines += indented([*loss_lines, "", *self._gradient(self.own), *self._after()], "    ")
        return UpdateStep(name, lines, self._call(name))

    def _transforms(self) -> str:
        """The library whose transformations the step is under: Flax's, which know modules, or JAX's own."""
        return self.writer.need("nnx" if self.optimizers or self._takes_variables() else "jax")

    def _takes_variables(self) -> bool:
        """Whether the step takes variables of Flax besides those of optimizers, or something that may hold some."""
        return bool(self._functions()) or not Allocations(self.writer.objects).are_arrays(self.used)

    def _takes_trees(self) -> bool:
        """Whether the modules that the step takes are surely trees, and nothing else of it holds variables."""
        if self._transforms() != "nnx" or not all(isinstance(place, ast.Name) for place in self._functions()):
            return False
        modules = [i.places for i in self.modules if i.text != "rngs"]
        return Allocations(self.writer.objects).are_trees(modules, self.body.text)

    def _functions(self) -> list[ast.expr]:
        """The functions that the step takes and that aren't known when it is traced."""
        return [place for i in self.used if i.kind == "function" and not self._is_static(i) for place in i.places]

    def _is_static(self, one: Input) -> bool:
        """Whether a value is known when the step is traced, as a function is; under ``nnx.jit`` no module is."""
        if one.kind != "function":
            return one.kind == "static"
        objects, scope = self.writer.objects, self.writer.scope
        return all(is_loss(self.writer.ctx.fact(place)) or is_function(objects, place, scope) for place in one.places)

    def _argument(self, one: Input) -> str:
        if one.kind == "function" and not self._is_static(one):
            return f"{self.writer.need('jax')}.tree_util.Partial({one.text})"
        return one.argument()

    def _given(self) -> list[str]:
        """What the step gives besides the loss: values of ``loss_fn``, and norms of gradients."""
        norms = [ast.unparse(c.target) for c, _ in self.clips if c.target is not None]
        return [*self.body.results, *(n for n in norms if n != "_")]

    def _taken(self) -> list[Input]:
        if self.update.mode == "accumulated":
            return [*self.modules, Input(self.update.grads, self.update.grads, "array"), *self.others]
        return [*self.modules, *self.optimizers, *self.others]

    def _call(self, name: str) -> str:
        given = ", ".join(map(self._argument, self._taken()))
        targets = list(self.returned)
        if self.update.grads:
            targets.append(self.update.grads)
        wanted = {*self.update.live, self.update.grads, *self._given()}
        if targets == [self.loss] and self.loss not in wanted:
            return f"{name}({given})"
        return f"{', '.join(targets)} = {name}({given})"

    # --- the loss -------------------------------------------------------------------------------------------------

    def _loss_body(self) -> list[str]:
        before = [line for lines, _ in self.body.losses for line in lines]
        total = " + ".join(loss for _, loss in self.body.losses)
        need, ordered = self.writer.need, self.body.ordered
        results = [f"{need('OrderedDict')}({name})" if name in ordered else name for name in self.body.results]
        lines = [*self.body.lines, *before, f"return {total}{self._aux(', ', results)}"]
        return lines if self.body.results else returned_at_once(lines)

    def _aux(self, lead: str, results: Sequence[str] = ()) -> str:
        results = results or self.body.results
        if not results:
            return ""
        return f"{lead}{results[0]}" if len(results) == 1 else f"{lead}({', '.join(results)})"

    def _gradient(self, given: Sequence[Input]) -> list[str]:
        """``(loss, output), grads = nnx.value_and_grad(loss_fn, has_aux=True)(model)``."""
        value = f"({self.loss}{self._aux(', ')})" if self.body.results else self.loss
        options = ""
        if self.optimizers and len(self.trained) == 1 and all(one.part for one in self.update.optimized):
            options += f", argnums={self.writer.need('nnx')}.DiffState(0, {self.optimizers[0].name}.wrt)"
        if len(self.trained) > 1:
            options += f", argnums=({', '.join(map(str, range(len(self.trained))))})"
        if self.body.results:
            options += ", has_aux=True"
        self.new = free(self.names, "new_grads") if self.update.mode == "accumulated" else self.grads
        grads = self.new
        if len(self.trained) > 1 and len(self.update.optimized) > 1:
            grads = f"({', '.join(self._grads_of(t) for t in self.trained)})"
        call = f"{self._transforms()}.value_and_grad({self.loss_fn}{options})"
        return [f"{value}, {grads} = {call}({', '.join(i.name for i in given)})"]

    def _grads_of(self, base: str) -> str:
        """The gradients of one of several modules."""
        if len(self.trained) == 1 or len(self.update.optimized) == 1:
            return self.grads
        return free(self.names, f"{self.inputs[base].name}_grads")

    # --- the update -----------------------------------------------------------------------------------------------

    def _after(self) -> list[str]:
        need = self.writer.need
        lines: list[str] = []
        if self.update.mode == "accumulated":
            tree = f"{need('jax')}.tree.map({need('jnp')}.add, {self.update.grads}, {self.new}{self._suffix()})"
            return [f"return {', '.join([*self.returned, tree])}"]
        if self.update.mode == "stored":
            return [f"return {', '.join([*self.returned, self.grads])}"]
        if self.update.mode == "apart":
            for clip, arguments in self.clips:
                lines += clip_lines(self.writer.ctx, clip, arguments, self.grads, need)
            return [*lines, f"return {', '.join([*self.returned, self.grads])}"]
        part = self._suffix() if self.clips and len(self.update.optimized) == 1 else ""
        if part and len(self.update.optimized[0].modules) == 1:
            lines.append(f"{self.grads} = {self.grads}{part}")
        else:
            part = ""
        for clip, arguments in self.clips:
            one = next(o for o in self.update.optimized if clip_target_is(clip, o.modules, self.writer))
            lines += clip_lines(
                self.writer.ctx, clip, arguments, self._grads_of(self.writer.base(one.modules[0])), need
            )
        for one, optimizer in zip(self.update.optimized, self.optimizers, strict=True):
            module, grads = self._updated(one.modules)
            lines.append(f"{optimizer.name}.update({module}, {self.grads if part else grads})")
        return [*lines, f"return {', '.join(self.returned)}"]

    def _suffix(self) -> str:
        module = self.update.optimized[0].modules[0]
        return module[len(self.writer.base(module)) :]

    def _updated(self, modules: tuple[str, ...]) -> list[str]:
        """The module and its gradients as the optimizer takes them."""
        names, grads = [], []
        for module in modules:
            base = self.writer.base(module)
            suffix = module[len(base) :]
            names.append(self.inputs[base].name + suffix)
            grads.append(self._grads_of(base) + suffix)
        if len(modules) == 1:
            return [names[0], grads[0]]
        if all(g == self.grads for g in grads):
            order = [self.inputs[t].name for t in self.trained]
            if names == order:
                return [f"({', '.join(names)})", self.grads]
            grads = [f"{self.grads}[{order.index(n.partition('.')[0])}]{n[len(n.partition('.')[0]) :]}" for n in names]
        return [f"({', '.join(names)})", f"({', '.join(grads)})"]

    # --- with and without an update -------------------------------------------------------------------------------

    def _conditional(self, name: str, decorator: str, options: str) -> UpdateStep:
        """A loss function at the top level, which the training step and the evaluation share."""
        need, ctx = self.writer.need, self.writer.ctx
        limits = [i for i in self.others if i.kind == "limit"]
        shared = [*self.modules, *(i for i in self.others if i.kind != "limit")]
        self.loss_fn = unused(ctx.names, self.loss_fn, "compute_loss", "objective")
        lines = [
            f"def {self.loss_fn}({', '.join(i.name for i in shared)}):",
            *indented(self._loss_body(), "    "),
            "",
            "",
        ]
        taken = [*self.modules, *self.optimizers, *(i for i in shared if i.kind != "module"), *limits]
        self._taken = lambda: taken  # type: ignore[method-assign]
        lines += [decorator, f"def {name}({', '.join(i.name for i in taken)}):"]
        lines += indented([*self._gradient(shared), *self._after()], "    ")
        evaluate = unused(ctx.names, "eval_step", "evaluate")
        lines += ["", "", f"{evaluate} = {need('nnx')}.jit({self.loss_fn}{options})"]
        given = ", ".join(map(self._argument, shared))
        loss = self.loss if self.loss in self.update.live else "_"
        target = f"{loss}{self._aux(', ')}" if self.body.results else loss
        otherwise = f"{target} = {evaluate}({given})" if target != "_" else ""
        return UpdateStep(name, lines, self._call(name), otherwise)


def clip_target_is(clip: StepCall, modules: tuple[str, ...], writer: StepWriter) -> bool:
    from .groups import updated
    from .objects import targets

    target = updated(clip.subject, writer.scope, writer.objects)
    return tuple(targets(target.target)) == modules if target.target else False


def free(taken: set[str], *wanted: str) -> str:
    """The first of some names that isn't taken."""
    for name in wanted:
        if name not in taken:
            return name
    count = 2
    while f"{wanted[0]}{count}" in taken:
        count += 1
    return f"{wanted[0]}{count}"


def unused(names: Names, *wanted: str) -> str:
    """A name for the module level that the file doesn't use yet."""
    taken = names.of_source | names.made | names.reserved
    name = free(set(taken), *wanted)
    names.made.add(name)
    return name
