"""What the first argument of an optimizer says: whose parameters it updates, and with which options.

``model.parameters()``, lists and chains of these, filters by ``requires_grad``, groups of submodules, and groups that
a condition on names or ranks picks from ``named_parameters()``.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from t2j_lsp import symbols
from t2j_lsp.translate.rule.definitions import Instance, is_module
from t2j_lsp.translate.rule.facts import Layer, Tensor
from t2j_lsp.translate.rule.optimizer_plan import Group
from t2j_lsp.translate.training.program.objects import Objects, VariableScope

from .held_tensors import is_of_self
from .leaf_values import LeafValues
from .name_conditions import UnclearGroups, chosen_names, name_condition
from .numbered_parts import numbered_part
from .other_names import is_held_too, is_read_out_of_sight

UNKNOWN_PARAMETERS = "Can't tell which module these parameters are of: nnx.Optimizer takes the module itself."
BARE_TENSORS = "It updates bare tensors: optax works on any tree of arrays, without nnx.Optimizer."
KEPT = "It updates {name}, which another name, an object or a module keeps or reads, too: give it to each by its name."
PARTS = "Its groups take parameters of different modules: make one optimizer for each."


@dataclass(frozen=True)
class Updated:
    """What an optimizer updates. ``target`` is empty where that can't be said, and ``reason`` says why."""

    target: str = ""
    groups: tuple[Group, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class _Picked:
    """Parameters of a module for which a condition holds."""

    module: str
    condition: str | None = None
    alone: bool = False
    """Whether it is a parameter outside of modules."""


def updated(node: ast.expr, scope: VariableScope, objects: Objects) -> Updated:
    """What an optimizer with this first argument updates."""
    reader = _GroupReader(objects, scope)
    try:
        groups = reader.groups(node)
        if groups is not None:
            return _grouped(groups, reader)
        picked = reader.picked(node)
        if any(p.condition for p in picked):
            return _grouped([(picked, {})], reader)
    except UnclearGroups as problem:
        return Updated(reason=str(problem))
    modules = list(dict.fromkeys(p.module for p in picked))
    return Updated(modules[0] if len(modules) == 1 and not picked[0].alone else tuple_of(modules))


def tuple_of(names: Sequence[str]) -> str:
    """A tuple, as code."""
    return f"({names[0]},)" if len(names) == 1 else f"({', '.join(names)})"


class _GroupReader:
    def __init__(self, objects: Objects, scope: VariableScope) -> None:
        self.objects = objects
        self.scope = scope

    # --- one iterable of parameters -------------------------------------------------------------------------------

    def picked(self, node: ast.expr, depth: int = 0) -> list[_Picked]:
        """The modules whose parameters an iterable yields. Raises UnclearGroups."""
        if depth > 6:
            raise UnclearGroups(UNKNOWN_PARAMETERS)
        match node:
            case ast.Call(func=ast.Attribute(attr="parameters") as func, args=[], keywords=[]):
                return [self._all_of(func.value)]
            case ast.Call(func=ast.Name(id="list" | "tuple" | "iter"), args=[inner]):
                return self.picked(inner, depth + 1)
            case ast.Call(func=ast.Name(id="filter"), args=[condition, inner]) if _asks_grad(condition):
                return self.picked(inner, depth + 1)
            case ast.Call(func=ast.Attribute(attr="chain") | ast.Name(id="chain"), args=args) if args:
                return [p for a in args for p in self.picked(a, depth + 1)]
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                return self.picked(left, depth + 1) + self.picked(right, depth + 1)
            case ast.ListComp() | ast.GeneratorExp():
                return self._comprehension(node, depth)
            case ast.List() | ast.Tuple() if node.elts:
                if all(isinstance(e, ast.Starred) or self._parameter(e) is not None for e in node.elts):
                    items = (e.value if isinstance(e, ast.Starred) else e for e in node.elts)
                    return [p for item in items for p in self.picked(item, depth + 1)]
                raise UnclearGroups(BARE_TENSORS if self._tensors(node) else UNKNOWN_PARAMETERS)
            case ast.NamedExpr(value=inner):
                return self.picked(inner, depth + 1)
            case ast.Attribute() | ast.Name() if (one := self._parameter(node)) is not None:
                return [one]
            case ast.Name() | ast.Attribute():
                return self.picked(self.value(node), depth + 1)
        raise UnclearGroups(UNKNOWN_PARAMETERS)

    def _all_of(self, node: ast.expr) -> _Picked:
        """All parameters of a module. Raises UnclearGroups."""
        part = numbered_part(node, self.objects.ctx.inference)
        return _Picked(self.module(node)) if part is None else _Picked(self.module(part[0]), part[1])

    def _parameter(self, node: ast.expr) -> _Picked | None:
        """One parameter: a variable's, or one of a module by its name in PyTorch: ``net.fc.weight``."""
        if not isinstance(node, ast.Name | ast.Attribute) or not _variable(self.objects.ctx.fact(node)):
            return None
        if isinstance(node, ast.Name) or is_of_self(node) and not is_module(self.objects.ctx.fact(node.value)):
            self._check_alone(ast.unparse(node))
            return _Picked(ast.unparse(node), alone=True)
        names, owner = [node.attr], node.value
        while is_module(self.objects.ctx.fact(owner)):
            match owner:
                case ast.Attribute(value=outer, attr=name) if is_module(self.objects.ctx.fact(outer)):
                    names, owner = [name, *names], outer
                case ast.Subscript(value=outer, slice=ast.Constant(value=int() as index)) if index >= 0:
                    names, owner = [str(index), *names], outer
                case _:
                    return _Picked(self.module(owner), f'torch_name == "{".".join(names)}"')
        return None

    def _check_alone(self, text: str) -> None:
        """Raises UnclearGroups if a loss may read a parameter outside of modules by another name, or out of sight."""
        source, name = self.objects.ctx.source, text.rpartition(".")[2]
        if name == text:
            places: list[ast.expr] = list(self.objects.named(text, self.objects.home(text, self.scope)))
        else:
            places = [one for one in source.attributes.get(name, ()) if ast.unparse(one) == text]
        for one in places:
            if is_held_too(self.objects.ctx, one) or name == text and is_read_out_of_sight(self.objects, one):
                raise UnclearGroups(KEPT.format(name=text))
        if LeafValues(self.objects.ctx, self.objects, self.scope).share(text):
            raise UnclearGroups(KEPT.format(name=text))

    def module(self, node: ast.expr) -> str:
        """The text of a module expression that can be written again. Raises UnclearGroups."""
        inner = node
        while isinstance(inner, ast.Attribute | ast.Subscript):
            inner = inner.value
        if not isinstance(inner, ast.Name):
            raise UnclearGroups(UNKNOWN_PARAMETERS)
        return ast.unparse(node)

    def path(self, module: str) -> str:
        """A module's text as Flax's path of it: ``blocks[0]`` of a list is ``blocks.0``. Raises UnclearGroups."""
        match ast.parse(module, mode="eval").body:
            case ast.Attribute(value=owner, attr=name):
                return f"{self.path(ast.unparse(owner))}.{name}"
            case ast.Subscript(value=owner, slice=ast.Constant(value=int() as index)):
                text, facts = ast.unparse(owner), self.objects.ctx.inference.facts
                kinds = {f for n, f in facts.items() if isinstance(n, ast.expr) and _text(n) == text}
                if not kinds or not all(isinstance(f, Layer) and f.name == "torch.nn.ModuleList" for f in kinds):
                    raise UnclearGroups(UNKNOWN_PARAMETERS)
                return f"{self.path(text)}.{index}"
        return module

    def value(self, node: ast.expr) -> ast.expr:
        """The only value of a name. Raises UnclearGroups."""
        if isinstance(node, ast.Name):
            for statement in self.objects.statements(self.scope):
                if isinstance(statement, ast.AugAssign) and ast.unparse(statement.target) == node.id:
                    raise UnclearGroups(UNKNOWN_PARAMETERS)
        values = [v for v, where in self.objects.sources(node, self.scope) if where == self.scope]
        if len(values) != 1 or values[0] is None:
            raise UnclearGroups(BARE_TENSORS if isinstance(self.objects.ctx.fact(node), Tensor) else UNKNOWN_PARAMETERS)
        return values[0]

    def _tensors(self, node: ast.List | ast.Tuple) -> bool:
        return all(isinstance(self.objects.ctx.fact(e), Tensor) for e in node.elts)

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp, depth: int) -> list[_Picked]:
        if len(node.generators) != 1:
            raise UnclearGroups(UNKNOWN_PARAMETERS)
        generator = node.generators[0]
        match node.elt, generator.target:
            case ast.Name(id=element), ast.Name(id=target) if element == target:
                picked = self.picked(generator.iter, depth + 1)
                conditions = [name_condition(c, "", target) for c in _asked(generator.ifs, target)]
                return [_Picked(p.module, _both(p.condition, *conditions)) for p in picked]
            case ast.Name(id=element), ast.Tuple(elts=[ast.Name(id=name), ast.Name(id=parameter)]) if (
                element == parameter
            ):
                module = self.named(generator.iter)
                conditions = [name_condition(c, name, parameter) for c in _asked(generator.ifs, parameter)]
                return [_Picked(module, _both(*conditions))]
            case ast.Subscript(value=ast.Name(id=held), slice=ast.Name(id=key)), ast.Name(id=name) if key == name:
                dicts = {self._named_dict(v, held, depth) for v in self.objects.assigned(held, self.scope)} - {""}
                names = chosen_names(generator.iter)
                if len(dicts) == 1 and names is not None and not generator.ifs:
                    return [_Picked(dicts.pop(), f"torch_name in {names}")]
        raise UnclearGroups(UNKNOWN_PARAMETERS)

    def named(self, node: ast.expr, depth: int = 0) -> str:
        """The module whose ``named_parameters()`` an iterable of pairs yields. Raises UnclearGroups."""
        match node:
            case ast.Call(func=ast.Attribute(attr="named_parameters") as func, args=[], keywords=[]):
                return self.module(func.value)
            case ast.Call(func=ast.Name(id="list" | "dict"), args=[inner]):
                return self.named(inner, depth + 1)
            case ast.Call(func=ast.Attribute(attr="items", value=ast.Name() as held), args=[]):
                dicts = {self._named_dict(v, held.id, depth) for v in self.objects.assigned(held.id, self.scope)} - {""}
                if len(dicts) == 1:
                    return dicts.pop()
            case ast.Name() if depth < 4:
                return self.named(self.value(node), depth + 1)
        raise UnclearGroups(UNKNOWN_PARAMETERS)

    def _named_dict(self, value: ast.expr, name: str, depth: int) -> str:
        """The module behind ``{n: p for n, p in model.named_parameters()}``; empty for the dict made from itself."""
        match value:
            case ast.DictComp(key=ast.Name(id=k), value=ast.Name(id=v), generators=[generator]):
                target = generator.target
                if isinstance(target, ast.Tuple) and [getattr(e, "id", "") for e in target.elts] == [k, v]:
                    if all(_is_grad(c, v) for c in generator.ifs):
                        inner = generator.iter
                        if isinstance(inner, ast.Call) and ast.unparse(inner) == f"{name}.items()":
                            return ""
                        return self.named(inner, depth + 1)
            case ast.Call(func=ast.Name(id="dict"), args=[inner]):
                return self.named(inner, depth + 1)
        raise UnclearGroups(UNKNOWN_PARAMETERS)

    # --- groups ---------------------------------------------------------------------------------------------------

    def groups(self, node: ast.expr) -> list[tuple[list[_Picked], dict[str, ast.expr]]] | None:
        """The parameter groups of a list of dicts; None if it isn't one. Raises UnclearGroups."""
        if isinstance(node, ast.Name):
            values = self.objects.assigned(node.id, self.objects.home(node.id, self.scope))
            if len(values) != 1 or not isinstance(values[0], ast.List):
                return None
            node = values[0]
        if not isinstance(node, ast.List) or not node.elts or not all(isinstance(e, ast.Dict) for e in node.elts):
            return None
        out = []
        for item in node.elts:
            assert isinstance(item, ast.Dict)
            pairs = zip(item.keys, item.values, strict=True)
            options = {str(k.value): v for k, v in pairs if isinstance(k, ast.Constant)}
            if len(options) != len(item.keys) or "params" not in options:
                raise UnclearGroups(UNKNOWN_PARAMETERS)
            options.pop("name", None)
            if any(isinstance(n, ast.Call) for k, v in options.items() if k != "params" for n in symbols.walk(v)):
                raise UnclearGroups("An option of a parameter group is computed in place: give it a name first.")
            out.append((self.picked(options.pop("params")), options))
        return out


def _grouped(groups: list[tuple[list[_Picked], dict[str, ast.expr]]], reader: _GroupReader) -> Updated:
    """Labels and conditions for groups. Raises UnclearGroups."""
    if any(p.alone for picked, _ in groups for p in picked):
        raise UnclearGroups(PARTS)
    groups = [([replace(p, module=reader.path(p.module)) for p in picked], options) for picked, options in groups]
    everything = [p for picked, _ in groups for p in picked]
    root = _common(sorted({p.module for p in everything}))
    labels = _labels(groups, root)
    made: list[Group] = []
    for label, (picked, options) in zip(labels, groups, strict=True):
        conditions = [_inside(p, root) for p in picked]
        whole = any(c is None for c in conditions)
        made.append(Group(label, None if whole else " or ".join(c for c in conditions if c), options))
    if made[-1].condition is None and all(g.condition for g in made[:-1]):
        return Updated(root, tuple(made) if len(made) > 1 or made[0].options else ())
    if any(g.condition is None for g in made):
        raise UnclearGroups("Its parameter groups overlap.")
    if len(made) == 2 and _opposite(made[0].condition, made[1].condition) or _covers(made, everything, root, reader):
        made[-1] = Group(made[-1].label, None, made[-1].options)
    else:
        made.append(Group("frozen", None, {}, frozen=True))
    return Updated(root, tuple(made))


def _common(modules: list[str]) -> str:
    """The module that all others are parts of. Raises UnclearGroups."""
    parts = [m.split(".") for m in modules]
    shared: list[str] = []
    for level in zip(*parts, strict=False):
        if len(set(level)) > 1:
            break
        shared.append(level[0])
    if any(part.isdecimal() for part in shared):
        raise UnclearGroups(UNKNOWN_PARAMETERS)
    if not shared or shared == ["self"] and len(parts) > 1 and any(len(p) == 1 for p in parts):
        raise UnclearGroups(PARTS)
    return ".".join(shared)


def _inside(picked: _Picked, root: str) -> str | None:
    """The condition on a name that says it is in a submodule of the root."""
    rest = picked.module[len(root) + 1 :] if picked.module != root else ""
    parts = [f'name.startswith("{rest}.")'] if rest else []
    if picked.condition:
        parts.append(picked.condition)
    return " and ".join(parts) if parts else None


def _labels(groups: list[tuple[list[_Picked], dict[str, ast.expr]]], root: str) -> list[str]:
    """Names for the groups: their submodule's, or whether they are decayed."""
    names = []
    for index, (picked, options) in enumerate(groups):
        rest = picked[0].module[len(root) + 1 :].replace(".", "_")
        if rest.isdecimal():
            rest = f"{root.rpartition('.')[2]}_{rest}"
        decay = options.get("weight_decay")
        if rest and len(picked) == 1 and not picked[0].condition:
            names.append(rest)
        elif decay is not None and all(p.condition for p in picked):
            none = isinstance(decay, ast.Constant) and decay.value == 0
            names.append("no_decay" if none else "decay")
        else:
            names.append(f"group{index}")
    return names if len(set(names)) == len(names) else [f"group{i}" for i in range(len(names))]


def _covers(groups: list[Group], picked: list[_Picked], root: str, reader: _GroupReader) -> bool:
    """Whether the groups name every submodule and parameter that the root's class has."""
    fact = next(
        (f for n, f in reader.objects.ctx.inference.facts.items() if isinstance(n, ast.expr) and _text(n) == root),
        None,
    )
    if not isinstance(fact, Instance) or any(p.condition for p in picked):
        return False
    named = {p.module[len(root) + 1 :] for p in picked}
    held = {n for info in fact.cls.info.ancestry() for n, f in info.attributes.items() if is_module(f) or _variable(f)}
    return held <= named


def _text(node: ast.expr) -> str:
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""


def _variable(fact: object) -> bool:
    return isinstance(fact, Tensor) and fact.variable


# Conditions -------------------------------------------------------------------------------------------------------


def _asks_grad(node: ast.expr) -> bool:
    return isinstance(node, ast.Lambda) and len(node.args.args) == 1 and _is_grad(node.body, node.args.args[0].arg)


def _is_grad(node: ast.expr, name: str) -> bool:
    match node:
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[ast.Constant(value=True)]):
            node = left
    return isinstance(node, ast.Attribute) and node.attr == "requires_grad" and ast.unparse(node.value) == name


def _asked(conditions: list[ast.expr], parameter: str) -> list[ast.expr]:
    """What all has to hold besides that the parameter requires a gradient."""
    parts = [
        p for c in conditions for p in (c.values if isinstance(c, ast.BoolOp) and isinstance(c.op, ast.And) else [c])
    ]
    return [p for p in parts if not _is_grad(p, parameter)]


def _both(*conditions: str | None) -> str | None:
    """All conditions in one; None where there is none."""
    return " and ".join(c for c in conditions if c) or None


_OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "==", "in": "not in", "not in": "in"}


def _opposite(a: str | None, b: str | None) -> bool:
    """Whether exactly one of two conditions holds."""
    if a is None or b is None:
        return False
    if f"not {a}" == b or f"not {b}" == a:
        return True
    for sign, other in _OPPOSITE.items():
        left, parts, right = a.partition(f" {sign} ")
        if parts and "(" not in a and " and " not in a and " or " not in a and f"{left} {other} {right}" == b:
            return True
    return False


def apart(one: Sequence[Group], other: Sequence[Group]) -> bool:
    """Whether the groups of two optimizers of one module are known to share no parameter."""
    conditions = [[g.condition for g in groups if not g.frozen] for groups in (one, other)]
    return all(conditions) and all(_opposite(a, b) for a in conditions[0] for b in conditions[1])
