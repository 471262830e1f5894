"""How two files train a module: the statements of both that make its optimizer, its schedule and its loss."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from t2j_lsp.check.arguments.recipe import Recipe
from t2j_lsp.check.arguments.recipes import (
    CLIPPING,
    CRITERION,
    OPTIMIZER,
    SCHEDULER,
    RecipeRefused,
    Wanted,
    cut,
    ignored_by,
)
from t2j_lsp.check.program.calls import flat, given_back
from t2j_lsp.check.program.frames import Frame, Imported, calls_method, frames, mentions
from t2j_lsp.check.program.objects import CheckedObject
from t2j_lsp.check.program.scopes import ModuleScope, bound, changed
from t2j_lsp.check.program.slice import Slicer

_LOSS = "t2j_loss"
"""The name of a loss that the program computes by a call of a function: ``loss = F.cross_entropy(output, target)``."""
_LOSSES = frozenset({
    "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "kl_div", "poisson_nll_loss", "soft_margin_loss", "multilabel_soft_margin_loss",
})  # fmt: skip
_MODEL_MAKERS = frozenset({"to", "cuda", "cpu", "double", "float", "train", "eval", "compile", "DataParallel"})


@dataclass(frozen=True)
class TrainingRecipes:
    """Both sides' recipes for a module, or why there are none. Without either the file trains no such module."""

    torch: Recipe | None = None
    jax: Recipe | None = None
    problem: str = ""
    each_update: bool = True
    """Whether the program steps its schedule once for every update, and not once an epoch."""
    left_out: tuple[str, ...] = ()
    """What the program does with gradients that is not done."""

    @property
    def clips_without_divisor(self) -> bool:
        """Whether torch's clipping of gradients is compared with optax's."""
        texts = [text for text, _ in self.jax.statements] if self.jax is not None else []
        clips = any("clip_by_global_norm" in text for text in texts)
        return clips and self.torch is not None and CLIPPING in self.torch.names

    def without_loss(self) -> TrainingRecipes:
        """The same, without the files' own loss."""
        assert self.torch is not None and self.jax is not None
        return replace(self, torch=self.torch.without(CRITERION), jax=self.jax.without(CRITERION))

    def place(self, observation: str) -> tuple[tuple[str, int], tuple[str, int]]:
        """The lines of both files that an observation is about: files and lines."""
        assert self.torch is not None and self.jax is not None
        kind = OPTIMIZER
        if re.search(r": (learning rates?|momentum|course of .*)$", observation):
            kind = SCHEDULER
        elif observation == "train loss":
            kind = CRITERION
        kind = kind if kind in self.torch.lines and kind in self.jax.lines else OPTIMIZER
        return (self.torch.path, self.torch.lines[kind]), (self.jax.path, self.jax.lines[kind])


def training_of(torch: Slicer, jax: Slicer, item: CheckedObject) -> TrainingRecipes:
    """How the two files train a module class."""
    names = Imported(torch.scope)
    for frame in frames(torch.scope.body):
        optimizer = _optimizer(frame, names, torch, item)
        if optimizer is None:
            continue
        index, model, wanted = optimizer
        line = frame.statements[index].lineno
        try:
            torch_recipe = cut(torch, frame, model, wanted)
        except RecipeRefused as error:
            return TrainingRecipes(problem=f"the optimizer in line {line} can't be made alone: {error}")
        other = _counterpart(jax, frame.name, wanted)
        if other is None:
            name = wanted[OPTIMIZER][0]
            return TrainingRecipes(
                problem=f"the optimizer in line {line} was not compared: no `{name}` in the converted file"
            )
        jax_frame, jax_names = other
        kept = {k: v for k, v in wanted.items() if k in jax_names or k == SCHEDULER}  # It may be inside the optimizer.
        try:
            torch_recipe = torch_recipe if len(kept) == len(wanted) else cut(torch, frame, model, kept)
            variable, trained = _model_of(jax_frame, jax_names, model)
            jax_recipe = replace(cut(jax, jax_frame, variable, jax_names, torch_recipe.given), trained=trained)
            if (place := _transformation(jax_frame, jax_names)) is not None:
                jax_recipe = jax_recipe.placed(OPTIMIZER, place)
            if CRITERION not in wanted:
                torch_recipe, jax_recipe = _with_loss(torch_recipe, jax_recipe, torch.scope, jax.scope, names)
            torch_recipe = _clipping(torch_recipe, jax_recipe, torch.scope)
        except RecipeRefused as error:
            return TrainingRecipes(problem=f"the optimizer in line {line} was not compared: converted, {error}")
        if _sets_rate(torch.scope):
            return TrainingRecipes(
                problem=f"the optimizer in line {line} gets its learning rates from the training loop"
            )
        if SCHEDULER in wanted and len(_stepped(frame, names, torch.scope)) > 1:
            return TrainingRecipes(problem=f"the optimizer in line {line} has more than one schedule")
        each = _each_update(torch.scope.body, wanted[SCHEDULER][0]) if SCHEDULER in wanted else True
        moved = SCHEDULER in jax_names and each != _steps_inside(jax.scope.body, jax_names[SCHEDULER][0], each)
        if moved:
            each_line = torch_recipe.lines.get(SCHEDULER, line)
            return TrainingRecipes(
                problem=f"the schedule in line {each_line} is stepped elsewhere in the converted loop"
            )
        if not each and SCHEDULER not in jax_names:
            each_line = torch_recipe.lines.get(SCHEDULER, line)
            return TrainingRecipes(
                problem=f"the schedule in line {each_line} goes on once an epoch; the converted one is in the optimizer"
            )
        return TrainingRecipes(torch_recipe, jax_recipe, "", each, _left_out(torch.scope, torch_recipe))
    return TrainingRecipes()


def _optimizer(frame: Frame, names: Imported, side: Slicer, item: CheckedObject) -> tuple[int, str, Wanted] | None:
    """The statement that makes the optimizer of this class's module; the module's name; what else is made there."""
    made = [(i, n, c, names.dotted(c.func)) for i, n, c in frame.assignments()]
    for index, name, call, dotted in made:
        if _makes_optimizer(names, side.scope, dotted):
            model = next((a.id for a in call.args if isinstance(a, ast.Name)), None)
        elif dotted.startswith("torch.optim.") and "lr_scheduler" not in dotted:
            model = _parameters_of(frame, index, call)
        else:
            continue
        if model is None or not _is_of(frame, side, item, model):
            continue
        wanted: Wanted = {OPTIMIZER: (name, index, dotted)}
        stepped = {n for _, n, _, _ in made if any(calls_method(s, "step", owner=n) for s in side.scope.body)}
        schedules = [
            (n, i, d or ast.unparse(c.func))
            for i, n, c, d in made
            if ("lr_scheduler." in d or n in stepped) and n != name and i >= index and mentions(c, name)
        ]
        whole = [(n, i, d) for i, n, c, d in made if "lr_scheduler." in d and any(mentions(c, s[0]) for s in schedules)]
        if schedules:
            wanted[SCHEDULER] = (whole or schedules)[-1]
        losses = {n: (n, i, d) for i, n, c, d in made if d.startswith("torch.nn.") and d.endswith("Loss")}
        if len(losses) == 1:
            wanted[CRITERION] = next(iter(losses.values()))
        return index, model, wanted
    return None


def _makes_optimizer(names: Imported, scope: ModuleScope, function: str) -> bool:
    """Whether a function of the file returns an optimizer under some condition, for what it is called with."""
    for statement in scope.statements(function):
        if isinstance(statement, ast.FunctionDef) and not isinstance(statement.body[-1], ast.Return):
            returned = [n.value for n in ast.walk(statement) if isinstance(n, ast.Return)]
            calls = [v.func for v in returned if isinstance(v, ast.Call)]
            return any(d.startswith("torch.optim.") and "lr_scheduler" not in d for d in map(names.dotted, calls))
    return False


def _parameters_of(frame: Frame, index: int, call: ast.Call) -> str | None:
    """The variable whose parameters a call is given, if need be by way of other variables."""
    todo, done = [*call.args, *(k.value for k in call.keywords)], set()
    while todo:
        node = todo.pop(0)
        for part in ast.walk(node):
            match part:
                case ast.Attribute(ast.Name(name), "parameters" | "named_parameters"):
                    return name
                case ast.Attribute(ast.Attribute(ast.Name(name)), "parameters") if name != "self":
                    return name
                case ast.Name(name) if name not in done:
                    done.add(name)
                    todo += [s for s in frame.statements[:index] if name in (*bound(s), *changed(s))]  # type: ignore[misc]
    return None


def _is_of(frame: Frame, side: Slicer, item: CheckedObject, model: str) -> bool:
    """Whether a variable of a frame holds a module of the class."""
    if model == "self":
        return frame.owner == item.name
    for _, name, call in frame.assignments():
        if name == model and (inner := _made_by(call)) is not None:
            return inner == item.name or item.name in _returned(side.scope, inner)
    classes = {s.name: s for s in side.scope.body if isinstance(s, ast.ClassDef) and "Module" in ast.unparse(s)}
    inside = {n.id for s in classes.values() for n in ast.walk(s) if isinstance(n, ast.Name)} - {"Module"}
    return [name for name in classes if name not in inside] == [item.name]


def _returned(scope: ModuleScope, function: str) -> set[str]:
    """What is called for the value that a function of the file returns."""
    nodes = [n for s in scope.statements(function) if isinstance(s, ast.FunctionDef) for n in ast.walk(s)]
    return {c for n in nodes if isinstance(n, ast.Return) and isinstance(n.value, ast.Call) if (c := _made_by(n.value))}


def _made_by(call: ast.Call) -> str | None:
    """``Net`` of ``Net(3).to(device)`` and of ``torch.compile(Net())``; None for a call of something else."""
    match call:
        case ast.Call(ast.Name(name)) if name[:1].isupper() and name not in _MODEL_MAKERS:
            return name
        case ast.Call(ast.Attribute(ast.Call() as inner, method)) if method in _MODEL_MAKERS:
            return _made_by(inner)
        case ast.Call(ast.Name(name) | ast.Attribute(attr=name), [ast.Call() as inner, *_]) if name in _MODEL_MAKERS:
            return _made_by(inner)
    return None


def _counterpart(jax: Slicer, frame: str, wanted: Wanted) -> tuple[Frame, Wanted] | None:
    """Where the converted file makes what has the same names: in the same function, or else in any.

    An optimizer of another name is the only one of the file.
    """
    candidates = sorted(frames(jax.scope.body), key=lambda f: f.name != frame)
    names = Imported(jax.scope)
    for candidate in candidates:
        made = {n: (n, i, names.dotted(c.func)) for i, n, c in candidate.assignments()}
        made |= {n: (n, i, "") for i, s in enumerate(candidate.statements) for n in bound(s) if n not in made}
        recipes = {kind: made[name] for kind, (name, _, _) in wanted.items() if name in made}
        if OPTIMIZER in recipes:
            return candidate, recipes
    optimizers = [
        (f, (n, i, "")) for f in candidates for i, n, c in f.assignments() if _is_optimizer(names.dotted(c.func))
    ]
    if len(optimizers) != 1:
        return None
    holder, optimizer = optimizers[0]
    bound_names = {n: (n, i, "") for i, s in enumerate(holder.statements) for n in bound(s)}
    others = {kind: bound_names[name] for kind, (name, _, _) in wanted.items() if name in bound_names}
    return holder, {**others, OPTIMIZER: optimizer}


def _is_optimizer(dotted: str) -> bool:
    """Whether a dotted name is that of NNX's optimizer."""
    return dotted.startswith(("flax.nnx.", "nnx.")) and dotted.rpartition(".")[2] in ("Optimizer", "ModelAndOptimizer")


def _model_of(frame: Frame, wanted: Wanted, otherwise: str) -> tuple[str, str]:
    """The variable of the module that ``nnx.Optimizer`` is given, and the expression of what it is given of it.

    Raises RecipeRefused where these are several modules.
    """
    for _, name, call in frame.assignments():
        if name == wanted[OPTIMIZER][0] and call.args and isinstance(call.func, ast.Attribute):
            roots = {n.id for n in ast.walk(call.args[0]) if isinstance(n, ast.Name)}
            if call.func.attr in ("Optimizer", "ModelAndOptimizer"):
                if len(roots) != 1:
                    raise RecipeRefused("it trains more than one module")
                return roots.pop(), ast.unparse(call.args[0])
    return otherwise, otherwise


def _transformation(frame: Frame, wanted: Wanted) -> int | None:
    """The line of the only statement that makes ``tx``, where the optimizer is ``nnx.Optimizer(model, tx, ...)``."""
    for _, name, call in frame.assignments():
        if name == wanted[OPTIMIZER][0] and len(call.args) == 2 and isinstance(tx := call.args[1], ast.Name):
            made = [s.lineno for s in frame.statements if tx.id in bound(s)]
            return made[0] if len(made) == 1 else None
    return None


def _with_loss(
    torch_recipe: Recipe, jax_recipe: Recipe, torch: ModuleScope, jax: ModuleScope, names: Imported
) -> tuple[Recipe, Recipe]:
    """The recipes with the loss that both files compute by a call, where there is one such call in each."""
    torch_calls = [(t, c) for t, c in _loss_calls(torch) if names.dotted(c.func).rpartition(".")[2] in _LOSSES]
    jax_calls = [(t, c) for t, c in _loss_calls(jax) if t in {name for name, _ in torch_calls}]
    if len(torch_calls) != 1 or len(jax_calls) != 1:
        return torch_recipe, jax_recipe
    return tuple(
        _and(r, c, names.dotted(torch_calls[0][1].func))
        for r, c in ((torch_recipe, torch_calls[0][1]), (jax_recipe, jax_calls[0][1]))
    )  # type: ignore[return-value]


def _loss_calls(scope: ModuleScope) -> list[tuple[str, ast.Call]]:
    """Calls that compute a loss of an output and a target as they are, and the names that their values get for good."""
    calls: list[tuple[str, ast.Call]] = []
    nodes = [n for s in scope.body for n in ast.walk(s)]
    for body in (scope.body, *(n.body for n in nodes if isinstance(n, ast.FunctionDef))):
        for statement in flat(body):
            match given_back(statement, body) or statement:
                case ast.Assign([ast.Name(name)], ast.Call(args=[output, target]) as call) if "loss" in name:
                    plain = all(isinstance(k.value, ast.Constant) for k in call.keywords)
                    again = sum(name in bound(s) for s in flat(body)) > 1
                    if plain and not again and _is_value(output) and _is_value(target):
                        calls.append((name, call))
    return calls


def _is_value(node: ast.expr) -> bool:
    """Whether an expression is a variable or what a module gives, not yet reshaped."""
    match node:
        case ast.Name() | ast.Attribute():
            return True
        case ast.Call(ast.Name() | ast.Attribute(ast.Name("self"))):
            return True
    return False


def _and(recipe: Recipe, call: ast.Call, dotted: str) -> Recipe:
    """A recipe with a loss: what a call computes, of any output and target."""
    more = "".join(f", {ast.unparse(k)}" for k in call.keywords)
    function = ast.unparse(call.func)
    text = f"{_LOSS} = lambda output, target: {function}(output, target{more})"
    return replace(
        recipe,
        names={**recipe.names, CRITERION: _LOSS},
        lines={**recipe.lines, CRITERION: call.lineno},
        statements=(*recipe.statements, (text, call.lineno)),
        code=(*recipe.code, function),
        calls={**recipe.calls, CRITERION: dotted},
        ignored=ignored_by(call),
    )


def _clipping(torch_recipe: Recipe, jax_recipe: Recipe, scope: ModuleScope) -> Recipe:
    """Torch's recipe with the program's clipping of gradients, where the converted optimizer has that inside.

    Raises RecipeRefused where the two can't be done alike.
    """
    text = " ".join(statement for statement, _ in jax_recipe.statements)
    if "MultiSteps" in text or "apply_every" in text:
        raise RecipeRefused("its optimizer adds gradients up over several updates")
    calls = [n for s in scope.body for n in ast.walk(s) if isinstance(n, ast.Call)]
    clips = [c for c in calls if ast.unparse(c.func).rpartition(".")[2] in ("clip_grad_norm_", "clip_grad_value_")]
    if "clip" not in text or not clips:
        return torch_recipe
    limit = [*(k.value for k in clips[0].keywords), *clips[0].args[1:]]
    if len(clips) > 1 or len(limit) != 1 or not isinstance(limit[0], ast.Constant):
        raise RecipeRefused("its optimizer clips gradients, by what can't be told from torch's program alone")
    name = ast.unparse(clips[0].func).rpartition(".")[2]
    made = f"{CLIPPING} = lambda parameters: __import__('torch').nn.utils.{name}(parameters, {ast.unparse(limit[0])})"
    return replace(
        torch_recipe,
        names={**torch_recipe.names, CLIPPING: CLIPPING},
        statements=(*torch_recipe.statements, (made, clips[0].lineno)),
    )


def _sets_rate(scope: ModuleScope) -> bool:
    """Whether a program sets learning rates itself: ``group["lr"] = rate``."""
    nodes = (
        n for s in scope.body for n in ast.walk(s) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)
    )
    return any(isinstance(n.slice, ast.Constant) and n.slice.value == "lr" for n in nodes)


def _left_out(scope: ModuleScope, recipe: Recipe) -> tuple[str, ...]:
    """The clipping of gradients that stays with the program's loop."""
    calls = (n for s in scope.body for n in ast.walk(s) if isinstance(n, ast.Call))
    clips = [c.lineno for c in calls if ast.unparse(c.func).rpartition(".")[2].startswith("clip_grad_")]
    return (f"the clipping in line {clips[0]}",) if clips and CLIPPING not in recipe.names else ()


def _stepped(frame: Frame, names: Imported, scope: ModuleScope) -> set[str]:
    """The schedules of a frame that the file steps."""
    made = {n for _, n, c in frame.assignments() if "lr_scheduler." in names.dotted(c.func)}
    return {name for name in made if any(calls_method(s, "step", owner=name) for s in scope.body)}


def _steps_inside(body: Sequence[ast.stmt], scheduler: str, otherwise: bool) -> bool:
    """Whether a converted schedule is stepped with every update: in a loop in another, with no loop in it.

    ``otherwise`` where the loops don't tell.
    """
    loops = [n for s in body for n in ast.walk(s) if isinstance(n, ast.For | ast.While)]
    stepping = [n for n in loops if calls_method(n, "step", owner=scheduler)]
    if len(stepping) > 1:
        return True
    inner = [n for n in ast.walk(stepping[0]) if isinstance(n, ast.For | ast.While)] if stepping else []
    return False if len(inner) > 1 else otherwise


def _each_update(body: Sequence[ast.stmt], scheduler: str) -> bool:
    """Whether the innermost loop that steps the schedule is one that computes gradients."""
    loops = [n for s in body for n in ast.walk(s) if isinstance(n, ast.For | ast.While)]
    stepping = [n for n in loops if calls_method(n, "step", owner=scheduler)]
    innermost = [n for n in stepping if not any(o is not n and o in stepping for o in ast.walk(n))]
    nested = (o for n in innermost for o in ast.walk(n) if isinstance(o, ast.For | ast.While) and o is not n)
    inner = {id(o) for o in nested}
    for loop in innermost:
        own = (n for n in ast.walk(loop) if id(n) not in inner)
        if any(calls_method(n, "backward") for n in own if isinstance(n, ast.stmt) and n is not loop):
            return not any(calls_method(o, "backward") for o in ast.walk(loop) if id(o) in inner)
    return False
