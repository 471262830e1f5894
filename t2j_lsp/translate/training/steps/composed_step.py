"""The text of a compiled step: ``loss_fn``, its gradient, the update, what it returns, and the call that runs it."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Names
from t2j_lsp.translate.rule.definitions import FunctionInfo
from t2j_lsp.translate.training.optimizers.groups import updated
from t2j_lsp.translate.training.program.allocations import Allocations
from t2j_lsp.translate.training.program.flow import DataFlow
from t2j_lsp.translate.training.program.named_modules import targets
from t2j_lsp.translate.training.program.passed import Input
from t2j_lsp.translate.training.program.shared_modules import SharedModules
from t2j_lsp.translate.training.program.step_calls import Refused, StepCall
from t2j_lsp.translate.training.program.text import in_one, indented, returned_at_once, returned_with

from .bound_steps import BoundSteps
from .clip_lines import clip_lines
from .compiled_function import RANK, CompiledFunction, StepScope
from .update import Update
from .updated_modules import clipped_module, clips_groups

SHARED = "The loss reads {} beside a module that is trained, and the two share variables: read all by one of them."


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
    numbers: Sequence[str] = ()
    """The statements behind either that make numbers of arrays again."""
    bound: str = ""
    """The statement that binds it to its modules and optimizers, where it isn't called with them."""
    before: ast.stmt | None = None
    """The loop in front of which that stands."""


@dataclass
class StepBody:
    """What stands in ``loss_fn``."""

    lines: list[str]
    losses: list[tuple[list[str], str]]
    """Each loss with the lines it needs in front of it."""
    behind: Sequence[str] = ()
    """What stands behind the update."""
    results: list[str] = field(default_factory=list)
    ordered: frozenset[str] = frozenset()
    """Results that are dicts, in a program that reads their order."""

    def __post_init__(self) -> None:
        self.text = "\n".join(
            [*self.lines, *(line for before, loss in self.losses for line in (*before, loss)), *self.behind]
        )

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


@dataclass
class Composer:
    """Puts the parts of one step together."""

    at: StepScope
    update: Update
    body: StepBody
    used: list[Input]
    optimizers: list[Input]
    trained: list[str]
    clips: list[tuple[StepCall, list[str]]]
    inputs: dict[str, Input]

    def step(self) -> UpdateStep:
        self.names = self.body.words | {i.name for i in (*self.used, *self.optimizers)} | set(self.at.ctx.inference.env)
        only = self.body.losses[0][1] if len(self.body.losses) == 1 else ""
        self.loss = only if only.isidentifier() else free(self.names, "loss", "total_loss")
        self.grads = free(self.names | {self.loss}, "grads", "gradients")
        self.loss_fn = free(self.names | {self.loss}, "loss_fn", "compute_loss", "objective")
        self.used.sort(key=lambda i: RANK[i.kind])
        self.modules = [i for i in self.used if i.kind == "module"]
        self.modules.sort(key=lambda i: self.trained.index(i.text) if i.text in self.trained else len(self.trained))
        self.sharing = self._sharing()
        self.others = [i for i in self.used if i.kind != "module"]
        bound = self.body.bound
        self.own = [*self.modules, *(i for i in self.others if i.name in bound)]
        self.returned = ([self.loss] if only in self.update.live or not self._given() else []) + self._given()
        name = self.update.name
        self.compiled = self._function()
        decorators = self.compiled.decorators()
        if self.update.mode == "conditional":
            return self._conditional(name, decorators)
        before = self._binds_before()
        decorators = decorators if not self.update.once and before is None else []
        taken = self.compiled.parameters(self._taken())
        lines = [*decorators, f"def {name}({taken}):"]
        lines += indented(self._short([*self._differentiated(), *self._after()]), "    ")
        if before is None:
            return UpdateStep(name, lines, self._call(self.compiled.call(name, self._taken())))
        short = name if self.at.scope.function is None else self._local_name(self.at.scope.function, name)
        given = [one.argument() for one in (*self.modules, *self.optimizers)]
        graph = "graph=False" if self.compiled.takes_trees() else "graph=True, graph_updates=False"
        text = f"{short} = {self.at.need('nnx')}.jit_partial({', '.join([name, *given])}, {graph})"
        call = f"{short}({', '.join(map(self.compiled.argument, self.others))})"
        return UpdateStep(name, lines, self._call(self.compiled.printed(call)), bound=text, before=before)

    def _local_name(self, function: FunctionInfo, step: str) -> str:
        """What the step is called that one function binds: as nothing that it or one around it binds."""
        made = self.at.ctx.names.local.setdefault(function.node, set())
        taken = self.names | made | {step}
        for around in function.with_outer():
            taken |= self.at.ctx.source.symbols.bound(around.node)
        made.add(name := free(taken, "step", f"bound_{step}"))
        return name

    def _binds_before(self) -> ast.stmt | None:
        """The loop in front of which the step can be bound to its modules and optimizers."""
        given = [*self.modules, *self.optimizers]
        plain = not self.compiled.static and all(i.kind in ("array", "limit") for i in self.others)
        if self.update.mode != "fused" or self.update.once or not plain or any(one.given for one in given):
            return None
        if any(one.state for one in self.update.optimized) or self.compiled.hands_variables():
            return None  # bare tensors: the step gives new ones
        if not self.optimizers or not self.compiled.keeps_structure:
            return None
        place = self.update.items[self.update.slice.call].node
        texts = [one.text for one in self.modules], [one.text for one in self.optimizers]
        return BoundSteps(self.at.ctx, self.at.objects, self.at.scope).loop(place, *texts)

    def _function(self) -> CompiledFunction:
        update, place = self.update, None
        if not update.once and not any(one.state for one in update.optimized):
            call = update.items[update.slice.call].node
            bindable = update.mode == "fused" or update.arrays
            place = update.condition.body[0] if update.condition else call if bindable else None
        return CompiledFunction(self.at, self.used, self.body.text, self.optimizers, place, not update.once)

    def _given(self) -> list[str]:
        """What the step gives besides the loss: values of ``loss_fn``, and norms of gradients."""
        norms = [ast.unparse(c.target) for c, _ in self.clips if c.target is not None]
        return [*self.body.results, *(n for n in norms if n != "_")]

    def _taken(self) -> list[Input]:
        if self.update.mode == "accumulated":
            return [*self.modules, Input(self.update.grads, self.update.grads, "array"), *self.others]
        return [*self.modules, *self.optimizers, *self.others]

    def _call(self, call: str) -> str:
        """The statement that calls the step, with the names that it gives."""
        targets = list(self.returned)
        if self.update.grads:
            targets.append(self.update.grads)
        wanted = {*self.update.live, self.update.grads, *self._given()}
        if targets == [self.loss] and self.loss not in wanted:
            return call
        return f"{', '.join(targets)} = {call}"

    def _short(self, lines: list[str]) -> list[str]:
        """The lines of the step, with one name for results that it only hands on, if their own make a line too long."""
        head, given = f"({self.loss}{self._aux(', ')}), grads = ", self.body.results
        aux = free(self.names | {self.loss, self.grads, *self._given()}, "aux", "results")
        returned = {(self.loss, *given): f"{self.loss}, *{aux}", tuple(given): aux}.get(tuple(self.returned))
        long = [
            n for n, line in enumerate(lines) if line.startswith(head) and len(line) + 4 > self.at.ctx.source.line_limit
        ]
        if len(given) < 2 or returned is None or len(long) != 1 or lines[-1] != f"return {', '.join(self.returned)}":
            return lines
        behind = "\n".join(lines[long[0] + 1 : -1])
        if any(re.search(rf"\b{name}\b", behind) for name in given):
            return lines
        short = f"({self.loss}, {aux}), grads = {lines[long[0]].removeprefix(head)}"
        return [*lines[: long[0]], short, *lines[long[0] + 1 : -1], f"return {returned}"]

    # --- the loss -------------------------------------------------------------------------------------------------

    def _differentiated(self) -> list[str]:
        """The loss and its gradients: of ``loss_fn``, or of the expression that it is, if that fits into the line."""
        body, taken = self._loss_body(), ", ".join(i.name for i in self.own)
        alone = re.fullmatch(r"return ([^#]+)", body[0]) if len(body) == 1 and len(self.own) == 1 else None
        if alone is not None and not self.body.results:
            function = alone[1].removesuffix(f"({taken})")
            if not re.fullmatch(r"[A-Za-z_][\w.]*", function) or function in {i.name for i in self.own}:
                function = f"lambda {taken}: {alone[1]}"
            gradient = self._gradient(self.own, function)
            if "\n" not in gradient and len(gradient) + 4 <= self.at.ctx.source.line_limit:
                return [gradient]
        lines = [f"def {self.loss_fn}({taken}):", *indented(body, "    ")]
        return [*lines, "", self._gradient(self.own, self.loss_fn)]

    def _loss_body(self) -> list[str]:
        before = [line for lines, _ in self.body.losses for line in lines]
        total = " + ".join(loss for _, loss in self.body.losses)
        need, ordered = self.at.need, self.body.ordered
        results = [f"{need('OrderedDict')}({name})" if name in ordered else name for name in self.body.results]
        lines = [*self.body.lines, *before, f"return {total}{self._aux(', ', results)}"]
        width = self.at.ctx.source.line_limit - 8
        return returned_with(lines, width) if self.body.results else in_one(returned_at_once(lines), width)

    def _aux(self, lead: str, results: Sequence[str] = ()) -> str:
        results = results or self.body.results
        if not results:
            return ""
        return f"{lead}{results[0]}" if len(results) == 1 else f"{lead}({', '.join(results)})"

    def _gradient(self, given: Sequence[Input], function: str) -> str:
        """``(loss, output), grads = nnx.value_and_grad(loss_fn, has_aux=True)(model)``."""
        value = f"({self.loss}{self._aux(', ')})" if self.body.results else self.loss
        options = ""
        if self.optimizers and len(self.trained) == 1 and all(one.part or one.flagged for one in self.update.optimized):
            options += f", argnums={self.at.need('nnx')}.DiffState(0, {self.optimizers[0].name}.wrt)"
        if len(self.trained) + self.sharing > 1:
            options += f", argnums=({', '.join(map(str, range(len(self.trained) + self.sharing)))})"
        if self.body.results:
            options += ", has_aux=True"
        self.new = free(self.names, "new_grads") if self.update.mode == "accumulated" else self.grads
        grads = self.new
        if len(self.trained) > 1 and self._apart():
            grads = f"({', '.join(self._grads_of(t) for t in self.trained)})"
        if self.sharing:
            grads = f"({', '.join([grads, *['_'] * self.sharing])})"
        call = f"{self.compiled.transforms()}.value_and_grad({function}{options})"
        return f"{value}, {grads} = {call}({', '.join(i.name for i in given)})"

    def _sharing(self) -> int:
        """How many modules behind the one that is trained share its variables, as a ``DataParallel`` of it does.

        They are differentiated, too: gradients are of all places that read a variable. Raises Refused.
        """
        trained, others = self.modules[: len(self.trained)], self.modules[len(self.trained) :]
        shared = SharedModules(Allocations(self.at.objects))
        sharing = [one for one in others if any(shared.overlap(each.places, one.places) for each in trained)]
        parts = any(one.part or one.flagged for one in self.update.optimized)
        pairs = itertools.combinations(trained if len(self.update.optimized) > 1 else [], 2)
        refused = [second for first, second in pairs if shared.overlap(first.places, second.places)]
        if len(self.trained) != 1 or self.update.mode != "fused" or parts:
            refused += sharing
        if refused:
            raise Refused(SHARED.format(refused[0].text))
        self.modules = [*trained, *sharing, *(one for one in others if one not in sharing)]
        return len(sharing)

    def _apart(self) -> bool:
        """Whether the gradients of several modules have names of their own."""
        return len(self.update.optimized) > 1 or any(self._clipped_module(clip) for clip, _ in self.clips)

    def _clipped_module(self, clip: StepCall) -> str:
        return clipped_module(updated(clip.subject, self.at.scope, self.at.objects), self.update.optimized[0])

    def _grads_of(self, base: str) -> str:
        """The gradients of one of several modules."""
        if len(self.trained) == 1 or not self._apart():
            return self.grads
        return free(self.names, f"{self.inputs[base].name}_grads")

    # --- the update -----------------------------------------------------------------------------------------------

    def _after(self) -> list[str]:
        need = self.at.need
        lines: list[str] = []
        if self.update.mode == "accumulated":
            new = f"{self.new}{self._suffix()}"
            if self.update.arrays:
                new = f"{need('nnx')}.to_pure_dict({new})"
            tree = f"{need('jax')}.tree.map({need('jnp')}.add, {self.update.grads}, {new})"
            return [f"return {', '.join([*self.returned, tree])}"]
        if self.update.mode == "stored":
            return [f"return {', '.join([*self.returned, self.grads])}"]
        if self.update.mode == "apart":
            module, _ = self._updated(self.update.optimized[0].modules)
            for clip, arguments in self.clips:
                lines += clip_lines(self.at.ctx, clip, arguments, self.grads, module, need, self._scale())
            return [*lines, f"return {', '.join([*self.returned, self.grads])}"]
        part = self._suffix() if self.clips and len(self.update.optimized) == 1 else ""
        if part and len(self.update.optimized[0].modules) == 1:
            lines.append(f"{self.grads} = {self.grads}{part}")
        else:
            part = ""
        for clip, arguments in self.clips:
            one = next((o for o in self.update.optimized if self._is_clipped(clip, o.modules)), None)
            if one is not None and len(self.update.optimized) == 1 and len(one.modules) > 1 and self._apart():
                raise Refused("The gradients of all modules are clipped, and those of one of them.")
            clipped = one.modules if one is not None else (self._clipped_module(clip),)
            module, _ = self._updated(clipped)
            grads = self._grads_of(base_of(self.at.flow, clipped[0]))
            lines += clip_lines(self.at.ctx, clip, arguments, grads, module, need, self._scale())
        for one, optimizer in zip(self.update.optimized, self.optimizers, strict=True):
            module, grads = self._updated(one.modules)
            given = (module, self.grads if part else grads)
            given = (f"({given[0]},)", f"({given[1]},)") if one.alone else given
            lines.append(f"{optimizer.name}.update({', '.join(given)})")
        return [*lines, *self.body.behind, f"return {', '.join(self.returned)}"]

    def _scale(self) -> str:
        """What the factor is called by which gradients are clipped."""
        return free(self.names | {self.loss, self.grads, *self._given()}, "scale", "clipping")

    def _suffix(self) -> str:
        module = self.update.optimized[0].modules[0]
        return module[len(base_of(self.at.flow, module)) :]

    def _updated(self, modules: tuple[str, ...]) -> list[str]:
        """The module and its gradients as the optimizer takes them."""
        bases = [base_of(self.at.flow, module) for module in modules]
        parts = [module[len(base) :] for base, module in zip(bases, modules, strict=True)]
        names = [self.inputs[base].name + part for base, part in zip(bases, parts, strict=True)]
        grads = [self._grads_of(base) + part for base, part in zip(bases, parts, strict=True)]
        if len(modules) == 1:
            return [names[0], grads[0]]
        if len(self.trained) > 1 and not self._apart():
            if names == [self.inputs[t].name for t in self.trained]:
                return [f"({', '.join(names)})", self.grads]
            places = [f"[{self.trained.index(base)}]" for base in bases]
            grads = [f"{self.grads}{place}{part}" for place, part in zip(places, parts, strict=True)]
        return [f"({', '.join(names)})", f"({', '.join(grads)})"]

    # --- with and without an update -------------------------------------------------------------------------------

    def _conditional(self, name: str, decorators: Sequence[str]) -> UpdateStep:
        """A loss function at the top level, which the training step and the evaluation share."""
        ctx = self.at.ctx
        limits = [i for i in self.others if i.kind == "limit"]
        shared = [*self.modules, *(i for i in self.others if i.kind != "limit")]
        shared.sort(key=self.compiled.is_static)
        self.loss_fn = unused(ctx.names, self.loss_fn, "compute_loss", "objective")
        lines = [
            f"def {self.loss_fn}({', '.join(i.name for i in shared)}):",
            *indented(self._loss_body(), "    "),
            "",
            "",
        ]
        taken = [*self.modules, *self.optimizers, *(i for i in shared if i.kind != "module"), *limits]
        lines += [*decorators, f"def {name}({self.compiled.parameters(taken)}):"]
        lines += indented([self._gradient(shared, self.loss_fn), *self._after()], "    ")
        evaluated = CompiledFunction(self.at, shared, self.body.text, place=self.update.condition)
        evaluate = self.loss_fn
        if not evaluated.is_bound:
            evaluate = unused(ctx.names, "eval_step", "evaluate")
            options = evaluated.options()
            jit = f"{self.at.need('nnx')}.jit({self.loss_fn}{', ' if options else ''}{options})"
            lines += ["", "", f"{evaluate} = {jit}"]
        loss = self.loss if self.loss in self.update.live else "_"
        target = f"{loss}{self._aux(', ')}" if self.body.results else loss
        otherwise = f"{target} = {evaluated.call(evaluate, shared)}" if target != "_" else ""
        return UpdateStep(name, lines, self._call(self.compiled.call(name, taken)), otherwise)

    def _is_clipped(self, clip: StepCall, modules: tuple[str, ...]) -> bool:
        if any(clips_groups(clip, one) and one.modules == modules for one in self.update.optimized):
            return True
        target = updated(clip.subject, self.at.scope, self.at.objects)
        return tuple(targets(target.target)) == modules if target.target else False


def base_of(flow: DataFlow, module: str) -> str:
    """The module that is passed for ``model.head``: the variable it is in."""
    node: ast.expr = ast.parse(module, mode="eval").body
    while flow.variable(node) is None and isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return ast.unparse(node)


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
