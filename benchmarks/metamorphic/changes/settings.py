"""Where a program has its numbers from: rates, sizes and counts as settings of several forms."""

from __future__ import annotations

import random
from collections.abc import Callable

import libcst as cst

from benchmarks.metamorphic.blocks import code_of, is_run, parsed
from benchmarks.metamorphic.change import change
from benchmarks.metamorphic.source import Source
from benchmarks.metamorphic.variables import with_imports

_NAMED = ("lr", "batch_size", "weight_decay", "momentum", "step_size", "gamma", "hidden", "epochs", "num_layers")


class _Numbers(cst.CSTTransformer):
    """Numbers outside of classes that are named by a keyword, count a loop, or size a module of this file."""

    def __init__(self, source: Source, spell: Callable[[str], str]) -> None:
        self.source, self.spell = source, spell
        self.values: dict[str, str] = {}

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        return False

    def visit_Parameters(self, node: cst.Parameters) -> bool:
        return False

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        args = list(updated_node.args)
        func = code_of(original_node.func)
        for index, argument in enumerate(args):
            keyword = argument.keyword.value if argument.keyword is not None else None
            if not isinstance(argument.value, cst.Integer | cst.Float) or argument.star:
                continue
            if keyword in _NAMED:
                stem = keyword
            elif func == "range" and len(args) == 1:
                stem = "rounds"
            elif func in self.source.classes and self.source.is_module_class(self.source.classes[func]):
                stem = keyword or "size"
            else:
                continue
            args[index] = argument.with_changes(value=cst.parse_expression(self.named(stem, code_of(argument.value))))
        return updated_node.with_changes(args=args)

    def named(self, stem: str, value: str) -> str:
        """How a setting of a value is read."""
        number, name = 1, stem
        while name in self.values and self.values[name] != value:
            number += 1
            name = f"{stem}{number}"
        self.values[name] = value
        return self.spell(name)


def _with_settings(
    source: Source, read: str, define: Callable[[str, dict[str, str]], str], imports: tuple[str, ...], stem: str
) -> cst.Module:
    """The module with its numbers as settings; ``read`` and ``define`` get the name of what holds them."""
    holder = source.fresh(stem)
    numbers = _Numbers(source, lambda name: read.format(holder=holder, name=name))
    module = source.module.visit(numbers)
    if not numbers.values:
        return source.module
    taken = [line for line in imports if line.split()[-1] in source.bound]
    if taken and imports:
        known = {f"import {full}" if full == name else full for name, full in source.imports.items()}
        if any(line not in known for line in taken):
            return source.module
    body = list(module.body)
    place = next(
        (i for i, s in enumerate(body) if is_run(s) or isinstance(s, cst.FunctionDef | cst.ClassDef)), len(body)
    )
    body[place:place] = parsed("\n" + define(holder, numbers.values))
    return with_imports(module.with_changes(body=body), [line for line in imports if line not in taken])


@change("settings as constants", programs=True)
def settings_as_constants(source: Source, rng: random.Random) -> cst.Module:
    """LR = 0.1 at the top, and lr=LR below."""
    prefix = source.fresh("SET")

    def lines(holder: str, values: dict[str, str]) -> str:
        return "".join(f"{prefix}_{name.upper()} = {value}\n" for name, value in values.items())

    numbers = _Numbers(source, lambda name: f"{prefix}_{name.upper()}")
    module = source.module.visit(numbers)
    body = list(module.body)
    place = next(
        (i for i, s in enumerate(body) if is_run(s) or isinstance(s, cst.FunctionDef | cst.ClassDef)), len(body)
    )
    body[place:place] = parsed("\n" + lines("", numbers.values)) if numbers.values else []
    return module.with_changes(body=body)


@change("settings in a table", programs=True)
def settings_in_a_table(source: Source, rng: random.Random) -> cst.Module:
    """Config = {"lr": 0.1} at the top, and lr=config["lr"] below."""

    def define(holder: str, values: dict[str, str]) -> str:
        entries = ", ".join(f'"{n}": {v}' for n, v in values.items())
        return f"{holder} = {{{entries}}}\n"

    return _with_settings(source, '{holder}["{name}"]', define, (), "config")


@change("settings in a namespace", programs=True)
def settings_in_a_namespace(source: Source, rng: random.Random) -> cst.Module:
    """Cfg = SimpleNamespace(lr=0.1) at the top, and lr=cfg.lr below."""

    def define(holder: str, values: dict[str, str]) -> str:
        return f"{holder} = types.SimpleNamespace({', '.join(f'{n}={v}' for n, v in values.items())})\n"

    return _with_settings(source, "{holder}.{name}", define, ("import types",), "cfg")


@change("settings in a dataclass", programs=True)
def settings_in_a_dataclass(source: Source, rng: random.Random) -> cst.Module:
    """A dataclass with lr: float = 0.1, and lr=cfg.lr below."""

    def define(holder: str, values: dict[str, str]) -> str:
        kind = source.fresh("Settings")
        fields = "".join(f"    {n}: {'int' if v.isdigit() else 'float'} = {v}\n" for n, v in values.items())
        return f"\n@dataclasses.dataclass\nclass {kind}:\n{fields}\n\n{holder} = {kind}()\n"

    return _with_settings(source, "{holder}.{name}", define, ("import dataclasses",), "cfg")


@change("settings in a class", programs=True)
def settings_in_a_class(source: Source, rng: random.Random) -> cst.Module:
    """Class Config: lr = 0.1 at the top, and lr=Config.lr below."""

    def define(holder: str, values: dict[str, str]) -> str:
        fields = "".join(f"    {n} = {v}\n" for n, v in values.items())
        return f"\nclass {holder}:\n{fields}\n\n"

    return _with_settings(source, "{holder}.{name}", define, (), "Config")


@change("settings from arguments", programs=True)
def settings_from_arguments(source: Source, rng: random.Random) -> cst.Module:
    """parser.add_argument("--lr", type=float, default=0.1), and lr=opts.lr below."""

    def define(holder: str, values: dict[str, str]) -> str:
        parser = source.fresh("options_parser")
        lines = [f"{parser} = argparse.ArgumentParser()"]
        for name, value in values.items():
            kind = "int" if value.isdigit() else "float"
            lines.append(f'{parser}.add_argument("--{name}", type={kind}, default={value})')
        return "\n".join([*lines, f"{holder} = {parser}.parse_args([])\n"])

    return _with_settings(source, "{holder}.{name}", define, ("import argparse",), "opts")
