"""The Python functions for asking models about a file: what ``t2j convert --llm`` does, for other programs.

The parts that convert and check are imported where they are called: those parts import this package.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from t2j_lsp.contract import Options, T2JError

from .dialogue import append
from .drafts import Budget, Repair
from .model import Endpoint, ModelClient, key_from_environment
from .prompts import Prompt, Style, first_prompt
from .repair import repair_async as repair_translation
from .spans import with_all

P = ParamSpec("P")
T = TypeVar("T")


async def repair_async(
    source: Path | str,
    models: Sequence[Endpoint | str],
    *,
    base_url: str | None = None,
    always: bool = False,
    style: Style = "augmented",
    budget: Budget | None = None,
    options: Options | None = None,
    torch_python: str | None = None,
    jax_python: str | None = None,
    embeddings: Endpoint | str | None = None,
    cache: Path | None = None,
    dialogues: Path | None = None,
    on_progress: Callable[[str], None] = lambda line: None,
    on_text: Callable[[str], None] = lambda text: None,
) -> Repair:
    """Converts a file by the rules, and asks models for what these refuse until a check finds it equivalent.

    Runs code of the file, in contained workers, and sends its text to the models.

    Args:
        source: a ``.py`` file.
        models: asked in this order, each for what those before it did not solve. A name alone stands for that model at
            ``base_url`` with the key of the environment (``T2J_LLM_KEY``, ``OPENAI_API_KEY``).
        base_url: an endpoint of OpenAI's protocol; None for OpenAI's own.
        always: ask for what the rules convert, too; their code stays unless an answer is verified.
        style: ``"augmented"`` shows fixed bugs in the prompt, ``"standard"`` none.
        budget: when to end without success.
        options: how the rules convert.
        torch_python: the interpreter with torch; None for this one.
        jax_python: the interpreter with jax, flax and optax; None for this one.
        embeddings: a model of embeddings, for the search of fixed bugs; a name alone as with ``models``. It is sent the
            fixed bugs and the code in question. Without, or where it does not answer, the search is full-text alone.
        cache: a folder that keeps answers.
        dialogues: a file to which what was asked and answered is added, with unit tests and how they end.
        on_progress: called with a line for each step.
        on_text: called with an answer as it comes.

    Returns:
        ``code`` is the conversion with every verified answer. Drafts that ran and were not found equivalent stand in it
        under ``# TODO(t2j): unverified draft by MODEL``, and ``left`` has their spans. An endpoint that can't be
        reached is no error: ``ended`` is then ``"no answer"``.

    Raises:
        SourceError: where the file can't be read or parsed.
        T2JError: where it is a notebook, no model is given, or the openai package is missing.
        asyncio.CancelledError: where the task is cancelled: the request and the check end, and nothing is written.
    """
    from t2j_lsp.api import convert_file

    from .asking import Interpreters, file_judge, file_tester, index_with

    path, endpoints = _path(source), _endpoints(models, base_url)
    index = index_with(_endpoints([embeddings], base_url)[0] if embeddings else None, on_progress)
    translation = (await asyncio.to_thread(convert_file, path, options or Options())).translation
    client = ModelClient(cache)
    where = Interpreters(torch_python, jax_python)
    recorded = file_tester(path, where) if dialogues is not None else contextlib.nullcontext()
    with file_judge(path, where) as judge, recorded as tester:
        try:
            result = await repair_translation(
                translation, endpoints, judge, index, style=style, budget=budget, client=client,
                python=jax_python, always=always, tester=tester, on_progress=on_progress,
                on_text=on_text,
            )  # fmt: skip
        finally:
            await client.close()
    if dialogues is not None and result.dialogue.turns:
        append(dialogues, result.dialogue)
    return result


def _waited_for(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """A coroutine function as one that runs it."""

    @functools.wraps(function)
    def wait(*arguments: P.args, **options: P.kwargs) -> T:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(function(*arguments, **options))
        raise T2JError(f"an event loop runs here: await t2j_lsp.assist.{function.__name__}(...)")

    return wait


repair = _waited_for(repair_async)
repair.__name__ = repair.__qualname__ = "repair"
repair.__doc__ = """``repair_async``, waited for. Ctrl-C ends the request and the check.

Raises T2JError also where an event loop runs in this thread: await ``repair_async`` there.
"""


def prompt(
    source: Path | str, *, style: Style = "augmented", always: bool = False, options: Options | None = None
) -> Prompt:
    """What a model would be sent for a file; nothing is sent, and no code runs.

    Its ``spans`` are empty where the rules refuse nothing. Raises SourceError where the file can't be read or parsed,
    and T2JError where it is a notebook.
    """
    from t2j_lsp.api import convert_file
    from t2j_lsp.plugins import load_fixed_bugs

    translation = convert_file(_path(source), options or Options()).translation
    return first_prompt(with_all(translation) if always else translation, style, load_fixed_bugs())


def _path(source: Path | str) -> Path:
    path = Path(source)
    if path.suffix == ".ipynb" or path.is_dir():
        raise T2JError(f"{path} is no .py file")
    return path


def _endpoints(models: Sequence[Endpoint | str], base_url: str | None) -> list[Endpoint]:
    if isinstance(models, str) or not models:
        raise T2JError("models is a list of names or endpoints, with one of them at least")
    key = key_from_environment()
    return [Endpoint(model, base_url, key) if isinstance(model, str) else model for model in models]
