"""Evaluations with a scripted model and the real check: what is counted, and that no judge model counts for a check."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.fixed_bugs import CheckJudge
from benchmarks.scripted_endpoint import Step, serve
from t2j_lsp import convert
from t2j_lsp.assist import lint
from t2j_lsp.assist.alike import same_program
from t2j_lsp.assist.drafts import Budget
from t2j_lsp.assist.evaluation import figures, report
from t2j_lsp.assist.evaluation.arms import arm, shown
from t2j_lsp.assist.evaluation.cases import EvaluatedProgram
from t2j_lsp.assist.evaluation.comparing import ArmComparison
from t2j_lsp.assist.evaluation.recording import Placed, QuestionRecorder, Replayer
from t2j_lsp.assist.evaluation.run import Bench, Evaluation, EvaluationSettings, evaluate
from t2j_lsp.assist.judging import Judge
from t2j_lsp.assist.model import Endpoint
from t2j_lsp.contract import ObjectVerdict, T2JError
from t2j_lsp.fixes.record import CATEGORIES, Query
from t2j_lsp.retrieval import Index, dataset

from .test_repair import KEY, RIGHT, SOURCE, WRONG, answer

EXAMPLES = dataset()
PAIRS = [pair for example in EXAMPLES for pair in example.pairs]
ROWS = "import torch\n\n\n# t2j: x=f32[5, 4]\ndef rows(x):\n    d = torch.ops.aten.cumsum(x, dim=0)\n    return d\n"
JNP = "import jax.numpy as jnp"
ROWS_RIGHT = answer("d = jnp.cumsum(x, axis=0)", head=JNP)
ROWS_WRONG = answer("d = jnp.cumsum(x, axis=1)", head=JNP, claim="unsure")
REFERENCE = "import jax.numpy as jnp\n\n\ndef rows(x):\n    return jnp.cumsum(x, axis=0)\n"

Script = Callable[[dict[str, Any]], Step]


def text_of(request: dict[str, Any]) -> str:
    return "\n".join(message["content"] for message in request["messages"])


def is_judge(request: dict[str, Any]) -> bool:
    return request["model"] == "judge"


def program(name: str, source: str, reference: str | None = None) -> EvaluatedProgram:
    return EvaluatedProgram(
        name, Path(name), convert(source), frozenset(), reference, "equivalent" if reference else None
    )


def model(request: dict[str, Any]) -> Step:
    """Right about rows at once; wrong about Slope first, right when told; the judge likes what it sees first."""
    text = text_of(request)
    if is_judge(request):
        return "BETTER: A" if "Translation B" in text else "SCORE: 4"
    if "class Slope" not in text:
        return ROWS_RIGHT
    return RIGHT if "SPAN 1 failed" in text else WRONG


@pytest.fixture(scope="module", autouse=True)
def looked_up_once() -> Iterator[None]:
    """The same answer comes often here: what the lint finds in it is found once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lint, "problems", functools.cache(lint.problems))
        yield


@pytest.fixture(scope="module")
def judge(judge: CheckJudge) -> Judge:
    """The check, run once for each candidate."""
    return functools.cache(judge.__call__)


@pytest.fixture
def evaluated(judge: Judge) -> Callable[..., Evaluation]:
    """``evaluated(script, programs, ...)``: an evaluation with that server."""

    def start(
        script: Script,
        programs: list[EvaluatedProgram],
        arms: str = "standard,retrieved",
        client: Placed | None = None,
        rounds: int = 3,
        models: str = "model",
        **bench: Any,
    ) -> Evaluation:
        with serve(script) as served:
            endpoints = tuple(Endpoint(name, served.url, KEY, retries=0) for name in models.split(","))
            judge_model = Endpoint("judge", served.url, KEY, retries=0)
            chosen = tuple(arm(name) for name in arms.split(","))
            settings = EvaluationSettings(endpoints, chosen, judge_model, Budget(rounds=rounds))
            given: dict[str, Any] = {"judges": lambda one: judge, **bench}
            return asyncio.run(
                evaluate(programs, settings, Bench(given.pop("judges"), INDEX, PAIRS, client or Placed(), **given))
            )

    return start


INDEX = Index(EXAMPLES)
TWO = [program("slope.py", SOURCE), program("rows.py", ROWS, REFERENCE)]


def test_each_program_is_a_case_of_each_arm_with_steps_rounds_and_tokens(evaluated: Callable[..., Evaluation]) -> None:
    result = evaluated(model, TWO)
    cases = {(case.program, case.arm): case for case in result.cases}
    assert len(cases) == 4 and all(case.verified for case in cases.values())
    slope, rows = cases["slope.py", "standard"], cases["rows.py", "retrieved"]
    assert [a.outcome for a in slope.answers] == ["numeric", "equivalent"] and not slope.fixes
    assert slope.fix_cost is not None and (slope.fix_cost.steps, slope.fix_cost.lines) == (1, 1)
    assert rows.fix_cost is not None and rows.fix_cost.steps == 0 and rows.fixes
    assert slope.bleu_draft is None and rows.bleu_draft is not None and 0 < rows.bleu_draft.score < 1
    arm_figures = figures.of_arm([case for case in result.cases if case.arm == "standard"])
    assert arm_figures["verified"] == arm_figures["n"] == 2 and arm_figures["verified_by_round"] == [1, 2]
    assert arm_figures["fix_cost"]["steps"]["n"] == 2 and arm_figures["fix_cost"]["steps"]["sum"] == 1
    assert arm_figures["tokens"]["all"] == sum(case.tokens for case in result.cases if case.arm == "standard") > 0
    assert arm_figures["claims"]["answers_claimed"] == 3 and arm_figures["claims"]["answers_verified"] == 2
    assert (
        arm_figures["claims"]["overclaim_answers"] == pytest.approx(100 / 3)
        and arm_figures["claims"]["overclaim_cases"] == 0
    )


def test_a_judge_model_that_lies_verifies_nothing(evaluated: Callable[..., Evaluation]) -> None:
    def lies(request: dict[str, Any]) -> Step:
        return "SCORE: 4" if is_judge(request) else ROWS_WRONG

    result = evaluated(lies, [TWO[1]], "standard", rounds=1)
    (case,) = result.cases
    assert set(case.scores.values()) == {4} and len(case.scores) == 4
    assert not case.verified and case.fix_cost is None and not case.claimed
    arm_figures = figures.of_arm(result.cases)
    assert arm_figures["verified"] == 0 and arm_figures["fix_cost"]["never_verified"] == 1
    assert arm_figures["fix_cost"]["steps"] == {"n": 0, "sum": 0, "mean": None, "median": None, "max": None}
    assert arm_figures["scores"]["functional correctness, with reference"]["mean"] == 4
    assert "unverified draft" in case.code


def test_what_the_loop_calls_verified_is_checked_again_where_no_run_showed_it(
    evaluated: Callable[..., Evaluation], judge: Judge
) -> None:
    """A check that changes its mind about the whole program: it is not verified then."""
    said: list[str] = []

    def fickle(source: str, candidate: str, name: str) -> ObjectVerdict:
        said.append(name)
        return judge(source, candidate if len(said) <= 2 else candidate.replace("axis=", "axis=1 - "), name)

    both = SOURCE + "\n\n" + ROWS.split("\n\n\n")[1]
    # One span is solved in the first round, the other in the second, so the whole stands first at the end.
    steps = iter([answer("d = jnp.cumsum(x, axis=0)", 2), RIGHT, RIGHT])
    result = evaluated(
        lambda request: "SCORE: 0" if is_judge(request) else next(steps), [program("both.py", both)], "standard",
        judges=lambda one: fickle,
    )  # fmt: skip
    assert len(said) > 2 and not result.cases[0].verified and result.cases[0].fix_cost is None


def test_malformed_answers_of_a_judge_are_counted_and_never_guessed(evaluated: Callable[..., Evaluation]) -> None:
    def vague(request: dict[str, Any]) -> Step:
        return "I would give it 3 or 4, A is fine" if is_judge(request) else ROWS_WRONG if _first(request) else RIGHT

    def _first(request: dict[str, Any]) -> bool:
        return "Error_Code" in text_of(request)

    result = evaluated(vague, [TWO[1]], rounds=1)
    assert all(score is None for case in result.cases for score in case.scores.values())
    arm_figures = figures.of_arm([case for case in result.cases if case.arm == "standard"])["scores"]
    assert {row["malformed"] for row in arm_figures.values()} == {1} and {
        row["mean"] for row in arm_figures.values()
    } == {None}
    (comparison,) = result.comparisons
    assert comparison.malformed == 1 and comparison.scores == {} and comparison.score is None


def compared(evaluated: Callable[..., Evaluation], prefers: Script) -> ArmComparison:
    """The comparison of a standard draft, which is wrong, with a retrieved one, which is right."""

    def script(request: dict[str, Any]) -> Step:
        if is_judge(request):
            return prefers(request) if "Translation B" in text_of(request) else "SCORE: 2"
        return ROWS_RIGHT if "Error_Code" in text_of(request) else ROWS_WRONG

    (comparison,) = evaluated(script, [TWO[1]], rounds=1).comparisons
    assert (comparison.first, comparison.second) == ("standard", "retrieved")
    return comparison


def test_a_judge_that_reads_gives_the_same_in_both_orders(evaluated: Callable[..., Evaluation]) -> None:
    def reads(request: dict[str, Any]) -> Step:
        text = text_of(request)
        return "BETTER: A" if text.index("axis=0") < text.index("axis=1") else "BETTER: B"

    comparison = compared(evaluated, reads)
    assert comparison.score == 0.0 and comparison.orders_agree == comparison.asked == 1
    assert (comparison.shown_first, comparison.decided) == (1, 2)


def test_a_judge_that_always_takes_the_first_is_seen_to(evaluated: Callable[..., Evaluation]) -> None:
    comparison = compared(evaluated, lambda request: "BETTER: A")
    assert (
        comparison.score == 0.5
        and comparison.ties == 1
        and comparison.orders_agree == 0
        and comparison.shown_first == comparison.decided == 2
    )


def test_the_same_draft_is_a_tie_without_asking_and_a_missing_one_loses(evaluated: Callable[..., Evaluation]) -> None:
    asked: list[str] = []

    def script(request: dict[str, Any]) -> Step:
        text = text_of(request)
        if is_judge(request):
            asked.append(text)
            return "SCORE: 1"
        if "class Slope" in text:
            return "Sorry." if "Error_Code" in text else WRONG
        return ROWS_RIGHT

    (comparison,) = evaluated(script, TWO, rounds=1).comparisons
    assert comparison.unasked == 2 and comparison.scores == {"slope.py": 1.0, "rows.py": 0.5}
    assert not any("Translation B" in text for text in asked)


def test_cheap_models_first_and_what_each_solved_and_cost(evaluated: Callable[..., Evaluation]) -> None:
    def script(request: dict[str, Any]) -> Step:
        if is_judge(request):
            return "SCORE: 0"
        if request["model"] == "dear":
            return RIGHT
        return "Sorry." if "class Slope" in text_of(request) else ROWS_RIGHT

    result = evaluated(script, TWO, "standard", models="cheap,dear", rounds=1)
    arm_figures = figures.of_models(result.cases, ["cheap", "dear"])
    assert arm_figures["cheap"]["cases"] == 2 and arm_figures["cheap"]["spans_verified"] == 1
    assert arm_figures["dear"]["cases"] == 1 and arm_figures["dear"]["spans_verified"] == 1
    assert [a.outcome for a in result.cases[0].answers] == ["no answer", "equivalent"]


def test_a_replay_asks_nobody_and_finds_the_same(evaluated: Callable[..., Evaluation], tmp_path: Path) -> None:
    recorded = evaluated(model, TWO, client=QuestionRecorder(tmp_path))

    def nobody(request: dict[str, Any]) -> Step:
        raise AssertionError("somebody was asked")

    replayed = evaluated(nobody, TWO, client=Replayer(tmp_path))
    timeless = [
        [{**case.to_json(), "answers": [a.outcome for a in case.answers]} for case in one.cases]
        for one in (recorded, replayed)
    ]
    assert timeless[0] == timeless[1]
    assert [c.to_json() for c in recorded.comparisons] == [c.to_json() for c in replayed.comparisons]
    assert KEY not in "".join(file.read_text() for file in tmp_path.rglob("*.json"))


def test_a_missing_answer_is_an_error_that_names_it(evaluated: Callable[..., Evaluation], tmp_path: Path) -> None:
    evaluated(model, [TWO[1]], "standard", client=QuestionRecorder(tmp_path))
    (file,) = (tmp_path / "rows.py" / "standard").glob("model-*.json")
    assert json.loads(file.read_text())["answers"][0]["text"] == ROWS_RIGHT
    file.unlink()
    with pytest.raises(T2JError, match=r"lacks an answer of model for rows\.py/standard"):
        evaluated(model, [TWO[1]], "standard", client=Replayer(tmp_path))
    with pytest.raises(T2JError, match=r"lacks an answer of model for slope\.py/standard"):
        evaluated(model, [TWO[0]], "standard", client=Replayer(tmp_path))


def test_the_same_question_twice_has_two_answers_and_no_third(tmp_path: Path) -> None:
    async def twice(client: Placed, url: str, times: int) -> list[str]:
        client.at("p", "standard")
        said = [(await client.ask(Endpoint("m", url), [{"role": "user", "content": "?"}])).text for _ in range(times)]
        await client.close()
        return said

    with serve(["one", "two"]) as script:
        assert asyncio.run(twice(QuestionRecorder(tmp_path), script.url, 2)) == ["one", "two"]
    assert asyncio.run(twice(Replayer(tmp_path), "http://127.0.0.1:9/v1", 2)) == ["one", "two"]
    with pytest.raises(T2JError, match="only 2 recorded"):
        asyncio.run(twice(Replayer(tmp_path), "", 3))


@pytest.mark.parametrize("name", ["retrieved", "all", "without=training"])
def test_fixed_bugs_of_the_program_itself_are_never_shown(name: str) -> None:
    for example in EXAMPLES[::6]:
        renamed = example.input_code.replace("def ", "def my_")
        for path, source in ((Path("other.py"), renamed), (Path(f"{example.program}.py"), "x = 1\n")):
            same = same_program(path, source, EXAMPLES)
            assert example.program in same
            result = shown(arm(name), INDEX, PAIRS, same)
            pairs = result.pairs
            if pairs is None:
                assert result.index is not None
                query = Query(example.input_code, example.weak_output, "", example.title)
                pairs = tuple(one.pair for one in result.index.search(query, limit=500))
            assert pairs and not {pair.example.program for pair in pairs} & same
            assert name != "without=training" or all(pair.bug.category != "training" for pair in pairs)
            if name == "all":
                assert len(pairs) == len([pair for pair in PAIRS if pair.example.program not in same])


def test_another_program_shares_too_little_to_be_left_out() -> None:
    assert same_program(Path("slope.py"), SOURCE, EXAMPLES) == frozenset()


@pytest.mark.parametrize(("name", "said"), [("best", "there is no arm"), ("without=x", "no category 'x'")])
def test_an_unknown_arm_is_named(name: str, said: str) -> None:
    with pytest.raises(T2JError, match=said):
        arm(name)
    assert all(arm(f"without={category}").without == category for category in CATEGORIES)


def test_the_report_says_n_everywhere_and_is_json(evaluated: Callable[..., Evaluation]) -> None:
    settings = EvaluationSettings((Endpoint("model"),), (arm("standard"), arm("retrieved")), Endpoint("judge"))
    whole = [*TWO, program("plain.py", "import torch\n\n\ndef f(a):\n    return torch.cat([a, a])\n")]
    data = report.to_json("folder", whole, settings, evaluated(model, whole), {"t2j": "0"})
    assert json.loads(json.dumps(data)) == data
    tables = report.tables(data)
    titles = {table.title for table in tables}
    assert titles >= {"Success", "FixCost", "Tokens", "Claims", "Similarity and judge", "Comparison", "Models"}
    for table in tables:
        assert all(len(row) == len(table.headers) for row in table.rows)
        assert any(word in " ".join([*table.headers, table.note]) for word in ("n", "(n)", "answers"))
    page = report.markdown(data)
    assert "3 programs of folder: the rules convert 1 without a gap; models were asked about 2." in page
    assert "## Correlation with FixCost" in page and "Not defined: usefulness, without reference is the" in page
