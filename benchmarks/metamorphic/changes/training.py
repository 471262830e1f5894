"""Steps of training and evaluation, spelled otherwise."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterable, Sequence

import libcst as cst
import libcst.matchers as m
import torch

from benchmarks.metamorphic.blocks import Blocks, Statement, code_of, line, single
from benchmarks.metamorphic.change import change
from benchmarks.metamorphic.source import Source
from benchmarks.metamorphic.variables import Spelling, with_imports

_MODES = ("torch.no_grad", "torch.inference_mode")
_OF_CRITERIA = {
    "CrossEntropyLoss": "cross_entropy", "MSELoss": "mse_loss", "NLLLoss": "nll_loss", "L1Loss": "l1_loss",
    "BCEWithLogitsLoss": "binary_cross_entropy_with_logits", "BCELoss": "binary_cross_entropy",
    "SmoothL1Loss": "smooth_l1_loss", "HuberLoss": "huber_loss",
}  # fmt: skip


def _is_call(statement: cst.CSTNode, method: str) -> bool:
    """Whether a statement is a call of a method, and of nothing else."""
    return m.matches(statement, m.SimpleStatementLine([m.Expr(m.Call(func=m.Attribute(attr=m.Name(method))))]))


class _ZeroGrad(Blocks):
    """``zero_grad()`` goes to right before the backward pass of its block, or to right behind the step."""

    def __init__(self, source: Source, behind: bool) -> None:
        super().__init__(source)
        self.behind = behind

    def block(self, body: list[Statement]) -> Sequence[Statement]:
        zeros = [i for i, s in enumerate(body) if _is_call(s, "zero_grad")]
        backward = [i for i, s in enumerate(body) if _is_call(s, "backward")]
        steps = [i for i, s in enumerate(body) if _is_call(s, "step")]
        if len(zeros) != 1 or len(backward) != 1 or zeros[0] > backward[0] or not steps:
            return body
        zero = body[zeros[0]]
        place = steps[0] + 1 if self.behind else backward[0]
        moved = [*body[: zeros[0]], *body[zeros[0] + 1 : place], zero, *body[place:]]
        return moved if place > zeros[0] + 1 else body


@change("zero_grad before backward", programs=True)
def zero_grad_late(source: Source, rng: random.Random) -> cst.Module:
    """optimizer.zero_grad() between the loss and its backward pass."""
    return source.module.visit(_ZeroGrad(source, False))


@change("zero_grad behind the step", programs=True)
def zero_grad_behind(source: Source, rng: random.Random) -> cst.Module:
    """optimizer.zero_grad() behind optimizer.step()."""
    return source.module.visit(_ZeroGrad(source, True))


class _Methods(cst.CSTTransformer):
    """Calls of methods without arguments under another spelling."""

    def __init__(self, method: str, template: str) -> None:
        self.method, self.template = method, template

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        func = updated_node.func
        if updated_node.args or not isinstance(func, cst.Attribute) or func.attr.value != self.method:
            return updated_node
        if m.matches(func.value, m.Call(func=m.Name("super"))):
            return updated_node
        value = code_of(func.value)
        return cst.parse_expression(self.template.format(value))


@change("zero_grad(set_to_none=True)", programs=True)
def zero_grad_to_none(source: Source, rng: random.Random) -> cst.Module:
    """optimizer.zero_grad(set_to_none=True) for optimizer.zero_grad()."""
    return source.module.visit(_Methods("zero_grad", "{}.zero_grad(set_to_none=True)"))


@change("item() to float()", programs=True)
def item_to_float(source: Source, rng: random.Random) -> cst.Module:
    """float(loss) for loss.item()."""
    return source.module.visit(_Methods("item", "float({})"))


@change("item() of a detached copy", programs=True)
def item_of_detached(source: Source, rng: random.Random) -> cst.Module:
    """loss.detach().cpu().item() for loss.item()."""
    return source.module.visit(_Methods("item", "{}.detach().cpu().item()"))


@change("item() of an array", programs=True)
def item_of_array(source: Source, rng: random.Random) -> cst.Module:
    """loss.data.numpy().item() for loss.item()."""
    return source.module.visit(_Methods("item", "{}.detach().numpy().item()"))


@change("train(False)", programs=True)
def train_false(source: Source, rng: random.Random) -> cst.Module:
    """model.train(False) for model.eval()."""
    return source.module.visit(_Methods("eval", "{}.train(False)"))


@change("train(mode=True)", programs=True)
def train_true(source: Source, rng: random.Random) -> cst.Module:
    """model.train(mode=True) for model.train()."""
    return source.module.visit(_Methods("train", "{}.train(mode=True)"))


class _Modes(cst.CSTTransformer):
    """``torch.no_grad()`` under another name."""

    def __init__(self, source: Source, template: str) -> None:
        self.source, self.template = source, template

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        if self.source.dotted(original_node.func) != "torch.no_grad" or original_node.args:
            return updated_node
        home = code_of(updated_node.func).rpartition(".")[0]
        return cst.parse_expression(f"{home}.{self.template}") if home else updated_node


@change("inference_mode", programs=True)
def inference_mode(source: Source, rng: random.Random) -> cst.Module:
    """torch.inference_mode() for torch.no_grad()."""
    return source.module.visit(_Modes(source, "inference_mode()"))


@change("set_grad_enabled(False)", programs=True)
def grad_disabled(source: Source, rng: random.Random) -> cst.Module:
    """torch.set_grad_enabled(False) for torch.no_grad()."""
    return source.module.visit(_Modes(source, "set_grad_enabled(False)"))


class _Decorated(Blocks):
    """``with torch.no_grad():`` around a whole function as a decorator, and the other way round."""

    def statement(self, statement: Statement) -> Iterable[Statement]:
        return [statement]

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.BaseStatement:
        super().leave_FunctionDef(original_node, updated_node)
        node, body = updated_node, updated_node.body
        if not isinstance(body, cst.IndentedBlock) or m.findall(body, m.Yield()):
            return node
        match body.body:
            case [*before, cst.With(items=[cst.WithItem(item=item, asname=None)], body=cst.IndentedBlock(body=inner))]:
                plain = all(_is_call(s, "eval") or _is_docstring(s) for s in before)
                if plain and self._is_mode(item):
                    decorator = cst.Decorator(item)
                    new = body.with_changes(body=[*before, *inner])
                    return node.with_changes(body=new, decorators=[*node.decorators, decorator])
        match node.decorators:
            case [*others, cst.Decorator(decorator=item)] if self._is_mode(item):
                code = item if isinstance(item, cst.Call) else cst.Call(item)
                docs = [s for s in body.body[:1] if _is_docstring(s)]
                inside = cst.With([cst.WithItem(code)], cst.IndentedBlock(body.body[len(docs) :]))
                return node.with_changes(decorators=others, body=body.with_changes(body=[*docs, inside]))
        return node

    def _is_mode(self, item: cst.BaseExpression) -> bool:
        if isinstance(item, cst.Call):
            return not item.args and self.source.dotted(item.func) in _MODES
        return self.source.dotted(item) in _MODES


def _is_docstring(statement: cst.CSTNode) -> bool:
    return m.matches(statement, m.SimpleStatementLine([m.Expr(m.SimpleString())]))


@change("no_grad as a decorator", programs=True)
def no_grad_decorator(source: Source, rng: random.Random) -> cst.Module:
    """@torch.no_grad() on a function for a with statement around its body, and the other way round."""
    return source.module.visit(_Decorated(source))


class _Criteria(cst.CSTTransformer):
    """Calls of a loss that is a variable, made without arguments, as the function of the same name."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.names: dict[str, str] = {}
        for node in ast.walk(source.tree):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(args=[], keywords=[], func=func)):
                    full = source.dotted(cst.parse_expression(ast.unparse(func))) or ""
                    home, _, kind = full.rpartition(".")
                    if home == "torch.nn" and kind in _OF_CRITERIA and source.bound[name] == 1:
                        self.names[name] = f"torch.nn.functional.{_OF_CRITERIA[kind]}"

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        func = updated_node.func
        if isinstance(func, cst.Name) and func.value in self.names and updated_node.args:
            return updated_node.with_changes(func=cst.parse_expression(self.names[func.value]))
        return updated_node


@change("criteria to functions", programs=True)
def criteria_to_functions(source: Source, rng: random.Random) -> cst.Module:
    """torch.nn.functional.mse_loss(a, b) for criterion(a, b), where criterion = nn.MSELoss()."""
    criteria = _Criteria(source)
    if not criteria.names or source.imports.get("torch", "torch") != "torch":
        return source.module
    changed = source.module.visit(criteria)
    known = "torch" in source.imports or changed.deep_equals(source.module)
    return changed if known else with_imports(changed, ["import torch"])


@change("from torch.optim import Adam", programs=True)
def optimizers_by_name(source: Source, rng: random.Random) -> cst.Module:
    """Optimizers, schedules and loaders by their bare names."""
    homes = ("torch.optim", "torch.optim.lr_scheduler", "torch.utils.data", "torch.nn.utils")
    texts: dict[str, str] = {}

    def bare(full: str) -> str | None:
        home, _, name = full.rpartition(".")
        if home not in homes or name in source.bound or not _exists(full):
            return None
        texts[name] = home
        return name

    changed = source.module.visit(Spelling(source, bare))
    return with_imports(changed, [f"from {home} import {name}" for name, home in texts.items()])


def _exists(full: str) -> bool:
    value: object = torch
    for part in full.split(".")[1:]:
        value = getattr(value, part, None)
    return callable(value) and not isinstance(value, type(torch))


class _Made(Blocks):
    """What is assigned to the variables that hold a module of this file's own, or an optimizer."""

    def statement(self, statement: Statement) -> Iterable[Statement]:
        match single(statement):
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)], value=cst.Call() as value):
                own = isinstance(value.func, cst.Name) and value.func.value in self.source.classes
                if own and self.source.is_module_class(self.source.classes[code_of(value.func)]):
                    return self.made(statement, name, value)
                if (self.source.dotted(value.func) or "").startswith("torch.nn.Sequential"):
                    return self.made(statement, name, value)
        return [statement]

    def made(self, statement: Statement, name: cst.Name, value: cst.Call) -> Iterable[Statement]:
        """What stands for an assignment of a new module."""
        raise NotImplementedError


class _Annotated(_Made):
    def made(self, statement: Statement, name: cst.Name, value: cst.Call) -> Iterable[Statement]:
        annotation = cst.Annotation(value.func)
        return [line(cst.AnnAssign(name, annotation, value), statement)]


@change("models annotated", programs=True)
def models_annotated(source: Source, rng: random.Random) -> cst.Module:
    """model: Net = Net() for model = Net()."""
    return source.module.visit(_Annotated(source))


class _Moved(_Made):
    def made(self, statement: Statement, name: cst.Name, value: cst.Call) -> Iterable[Statement]:
        torch_name = next((n for n, full in self.source.imports.items() if full == "torch"), None)
        if torch_name is None:
            return [statement]
        to = cst.parse_expression(f'{torch_name}.device("cuda" if {torch_name}.cuda.is_available() else "cpu")')
        new = cst.Call(cst.Attribute(value, cst.Name("to")), [cst.Arg(to)])
        return [line(cst.Assign([cst.AssignTarget(name)], new), statement)]


@change("models moved to a device", programs=True)
def models_moved(source: Source, rng: random.Random) -> cst.Module:
    """Model = Net().to(torch.device(...)) for model = Net()."""
    return source.module.visit(_Moved(source))


class _Parts(_Made):
    def made(self, statement: Statement, name: cst.Name, value: cst.Call) -> Iterable[Statement]:
        own = cst.Name(self.fresh(f"new_{name.value}"))
        first = line(cst.Assign([cst.AssignTarget(own)], value), statement)
        return [first, line(cst.Assign([cst.AssignTarget(name)], own))]


@change("models under a second name", programs=True)
def models_second_name(source: Source, rng: random.Random) -> cst.Module:
    """new_model = Net() and model = new_model for model = Net()."""
    return source.module.visit(_Parts(source))


class _Forward(cst.CSTTransformer):
    def __init__(self, source: Source) -> None:
        self.names: set[str] = set()
        for node in ast.walk(source.tree):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id=kind))):
                    own = kind in source.classes and source.is_module_class(source.classes[kind])
                    if own and source.bound[name] == 1:
                        self.names.add(name)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        func = updated_node.func
        if isinstance(func, cst.Name) and func.value in self.names:
            return updated_node.with_changes(func=cst.Attribute(func, cst.Name("forward")))
        return updated_node


@change("calls of forward", programs=True)
def calls_of_forward(source: Source, rng: random.Random) -> cst.Module:
    """model.forward(x) for model(x)."""
    return source.module.visit(_Forward(source))
