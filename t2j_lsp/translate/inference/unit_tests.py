"""Unit tests: functions that pytest or unittest calls, and what fixtures and parameter lists say of their parameters.

Nobody passes such a function an ``rngs``: under pytest it asks for the fixture of that name, which the output then has;
elsewhere it makes its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.rule.binding import argument
from t2j_lsp.translate.rule.definitions import FunctionInfo
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, Qual, Scalar
from t2j_lsp.translate.rule.join import element, join_all
from t2j_lsp.translate.rule.library import Trait, names_with

from .file import Inference

CASES = ("unittest.TestCase", "unittest.IsolatedAsyncioTestCase", "torch.testing._internal.common_utils.TestCase")
FIXTURES = ("pytest.fixture", "pytest.yield_fixture", "pytest_asyncio.fixture")
SET_UP = frozenset({
    "setUp", "tearDown", "setUpClass", "tearDownClass", "asyncSetUp", "asyncTearDown", "setup_method", "setup_class",
    "setup_function", "setup_module", "teardown_method", "teardown_class", "teardown_function", "teardown_module",
})  # fmt: skip
INSTANCE_SET_UP = frozenset({"setUp", "asyncSetUp", "setup_method"})
SCOPES = ("function", "class", "module", "package", "session")


def caller_of(info: FunctionInfo, inference: Inference) -> str:
    """What calls a function of a test file: ``pytest``, which passes fixtures, or ``own``: what passes none."""
    if not inference.holds_tests or info.outer is not None:
        return ""
    if fixture_of(info, inference) is not None:
        return "pytest"
    case = info.owner is not None and any(base in CASES for base in info.owner.torch_bases)
    if info.name in SET_UP or case and info.name.startswith("test"):
        return "own"
    collected = info.owner is None or info.owner.name.startswith("Test")
    if not (info.name.startswith("test_") and collected):
        return ""
    return "pytest" if _imports_pytest(inference) else "own"


def _imports_pytest(inference: Inference) -> bool:
    return any(isinstance(f, Qual) and f.name == "pytest" for f in inference.env.values())


def fixture_of(info: FunctionInfo, inference: Inference) -> ast.expr | None:
    """The decorator that makes a function a fixture."""
    for decorator in info.node.decorator_list:
        fact = inference.facts.get(symbols.called_decorator(decorator))
        name = ast.unparse(symbols.called_decorator(decorator))
        if name in FIXTURES or isinstance(fact, Qual) and fact.name in FIXTURES:
            return decorator
    return None


def seeds_all(info: FunctionInfo, inference: Inference) -> bool:
    """Whether a fixture's seed is that of the fixture ``rngs``, from which the tests after it draw as well."""
    return (
        info.called_by == "pytest"
        and any(seed_of(node, inference) for node in symbols.walk(info.node))
        and bool(fixture_of(info, inference))
    )


def seed_of(node: ast.AST, inference: Inference) -> ast.expr | None:
    """The constant that a call seeds torch's generator with."""
    given = argument(node, 0, "seed") if isinstance(node, ast.Call) else None
    if not (isinstance(node, ast.Call) and isinstance(given, ast.Constant)):
        return None
    fact = inference.facts.get(node.func)
    seeds = isinstance(fact, Qual) and fact.name in names_with(Trait.SEED)
    return given if seeds else None


def with_fixture_facts(inference: Inference) -> Inference:
    """The inference, knowing what fixtures and ``parametrize`` give to the parameters of tests."""
    for _ in range(3):
        assumed = {a: fact for a, fact in _given(inference) if inference.assumed.get(a, UNKNOWN) != fact}
        if not assumed:
            break
        inference = inference.knowing({**inference.assumed, **assumed})
    return inference


def _given(inference: Inference) -> Iterator[tuple[ast.AST, Fact]]:
    fixtures: dict[str, Fact] = {}
    conftest = inference.beside("conftest")
    for one in filter(None, (conftest, inference)):
        for info in one.functions.values():
            if (decorator := fixture_of(info, one)) is not None:
                given = keyword_of(decorator, "name")
                name = given.value if isinstance(given, ast.Constant) else info.name
                yields = any(isinstance(n, ast.Yield) for n in symbols.walk(info.node))
                fixtures[str(name)] = element(info.returns or UNKNOWN) if yields else info.returns or UNKNOWN
    for info in inference.functions.values():
        if not caller_of(info, inference):
            continue
        known = {**fixtures, **_parametrized(info, inference)}
        for parameter in [*info.node.args.args, *info.node.args.kwonlyargs]:
            fact = known.get(parameter.arg, UNKNOWN)
            if fact != UNKNOWN and not (isinstance(fact, Scalar) and fact.kind == "none"):
                yield parameter, fact


def _parametrized(info: FunctionInfo, inference: Inference) -> dict[str, Fact]:
    """What ``pytest.mark.parametrize`` gives, as far as the values share a fact."""
    by_parameter: dict[str, Fact] = {}
    for decorator in info.node.decorator_list:
        if not (isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("mark.parametrize")):
            continue
        match decorator.args:
            case [ast.Constant(value=str(text)), ast.List(elts=rows) | ast.Tuple(elts=rows)]:
                names = [name.strip() for name in text.split(",") if name.strip()]
            case [ast.List(elts=listed) | ast.Tuple(elts=listed), ast.List(elts=rows) | ast.Tuple(elts=rows)]:
                names = [str(n.value) for n in listed if isinstance(n, ast.Constant)]
            case _:
                continue
        columns = [[r] for r in rows] if len(names) == 1 else [getattr(r, "elts", []) for r in rows]
        for index, name in enumerate(names):
            facts = [inference.facts.get(row[index], UNKNOWN) for row in columns if len(row) == len(names)]
            if facts and UNKNOWN not in facts:
                by_parameter[name] = join_all([Scalar(f.kind) if isinstance(f, Scalar) else f for f in facts])
    return by_parameter


def keyword_of(decorator: ast.expr, name: str) -> ast.expr | None:
    keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
    return next((k.value for k in keywords if k.arg == name), None)
