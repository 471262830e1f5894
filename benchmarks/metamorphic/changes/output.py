"""What programs print, written otherwise."""

from __future__ import annotations

import random
import re

import libcst as cst
import libcst.matchers as m

from benchmarks.metamorphic.blocks import code_of, is_run, parsed
from benchmarks.metamorphic.change import change
from benchmarks.metamorphic.source import Source

_PERCENT = re.compile(r"[-+0 ]?\d*(\.\d+)?[dfeg]?")


class _Percent(cst.CSTTransformer):
    """``%`` for f-strings whose fields have specs that ``%`` knows."""

    def leave_FormattedString(
        self, original_node: cst.FormattedString, updated_node: cst.FormattedString
    ) -> cst.BaseExpression:
        text, values = "", []
        for part in updated_node.parts:
            if isinstance(part, cst.FormattedStringText):
                text += part.value.replace("%", "%%")
                continue
            spec = _spec(part)
            if spec is None or not _PERCENT.fullmatch(spec) or spec and not spec[-1].isalpha():
                return updated_node
            text += f"%{spec or 's'}"
            values.append(f"{code_of(part.expression)},")
        if not values or updated_node.start.lower() not in ('f"', "f'"):
            return updated_node
        quote = updated_node.end
        text = text.replace("{{", "{").replace("}}", "}")
        return cst.parse_expression(f"({quote}{text}{quote} % ({' '.join(values)}))")

    def visit_ConcatenatedString(self, node: cst.ConcatenatedString) -> bool:
        return False


def _spec(part: cst.FormattedStringExpression) -> str | None:
    """The text of a field's spec; None where it has fields of its own or a conversion."""
    spec = part.format_spec or ()
    if part.conversion or part.equal or not all(isinstance(s, cst.FormattedStringText) for s in spec):
        return None
    return "".join(s.value for s in spec if isinstance(s, cst.FormattedStringText))


@change("f-strings to %", programs=True)
def f_strings_to_percent(source: Source, rng: random.Random) -> cst.Module:
    """ "%.3f" % (x,) for f"{x:.3f}"."""
    return source.module.visit(_Percent())


class _Joined(cst.CSTTransformer):
    """Texts added up for f-strings."""

    def leave_FormattedString(
        self, original_node: cst.FormattedString, updated_node: cst.FormattedString
    ) -> cst.BaseExpression:
        parts: list[str] = []
        if updated_node.start.lower() not in ('f"', "f'"):
            return updated_node
        for part in updated_node.parts:
            if isinstance(part, cst.FormattedStringText):
                text = part.value.replace("{{", "{").replace("}}", "}")
                parts.append(f"{updated_node.end}{text}{updated_node.end}")
                continue
            assert isinstance(part, cst.FormattedStringExpression)
            spec = _spec(part)
            if spec is None:
                return updated_node
            value = code_of(part.expression)
            parts.append(f'format({value}, "{spec}")' if spec else f"str({value})")
        return cst.parse_expression(f"({' + '.join(parts)})") if parts else updated_node

    def visit_ConcatenatedString(self, node: cst.ConcatenatedString) -> bool:
        return False


@change("f-strings added up", programs=True)
def f_strings_added_up(source: Source, rng: random.Random) -> cst.Module:
    """ "loss " + format(x, ".3f") for f"loss {x:.3f}"."""
    return source.module.visit(_Joined())


class _Prints(cst.CSTTransformer):
    """An f-string for several things that are printed."""

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        args = updated_node.args
        if not m.matches(updated_node.func, m.Name("print")) or len(args) < 2:
            return updated_node
        if any(a.keyword is not None or a.star for a in args):
            return updated_node
        text = ""
        for index, argument in enumerate(args):
            code = code_of(argument.value)
            if set(code) & {'"', "\\", "\n"} and not isinstance(argument.value, cst.SimpleString):
                return updated_node
            if isinstance(argument.value, cst.SimpleString):
                inner = argument.value.evaluated_value
                if not isinstance(inner, str) or set(inner) & set('"\\{}\n'):
                    return updated_node
                piece = inner
            else:
                piece = f"{{{code}}}" if code[0] != "{" else f"{{ {code} }}"
            text += f" {piece}" if index else piece
        return updated_node.with_changes(args=[cst.Arg(cst.parse_expression(f'f"{text}"'))])


@change("print of an f-string", programs=True)
def print_of_f_string(source: Source, rng: random.Random) -> cst.Module:
    """print(f"loss {x}") for print("loss", x)."""
    return source.module.visit(_Prints())


class _Renamed(cst.CSTTransformer):
    def __init__(self, name: str) -> None:
        self.name = name
        self.used = False

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        if m.matches(updated_node.func, m.Name("print")):
            self.used = True
            return updated_node.with_changes(func=cst.Name(self.name))
        return updated_node


@change("prints through a function", programs=True)
def prints_through_a_function(source: Source, rng: random.Random) -> cst.Module:
    """log(x) for print(x), with a function that prints what it is given."""
    name = source.fresh("log")
    renamed = _Renamed(name)
    module = source.module.visit(renamed)
    if not renamed.used or "print" in source.bound:
        return source.module
    function = parsed(f"\n\ndef {name}(*values, **options):\n    print(*values, **options)\n\n\n")
    return with_definitions(module, function)


def with_definitions(module: cst.Module, definitions: list[cst.BaseStatement]) -> cst.Module:
    """The module with definitions in front of its first statement that is no import."""
    body = list(module.body)
    place = next((i for i, s in enumerate(body) if is_run(s) or isinstance(s, cst.FunctionDef | cst.ClassDef)), 0)
    space = [cst.EmptyLine(indent=False), cst.EmptyLine(indent=False)]
    spaced = [s.with_changes(leading_lines=space) for s in definitions]
    return module.with_changes(body=[*body[:place], *spaced, *body[place:]])
