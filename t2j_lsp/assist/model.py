"""Asks a model at any endpoint of OpenAI's protocol: streaming, with retries, a cache on disk, a count of tokens."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2j_lsp.contract import T2JError

from .prompts import ChatMessage

if TYPE_CHECKING:
    from openai import AsyncOpenAI

KEYS = ("T2J_LLM_KEY", "OPENAI_API_KEY")
"""Environment variables that hold a key, the first that is set counts."""


class ModelError(T2JError):
    """An endpoint gave no answer. The text says which and why, and holds no key."""


@dataclass(frozen=True)
class Endpoint:
    """A model and where it is. ``price`` is US dollars for a million tokens in and out, where known."""

    model: str
    base_url: str | None = None
    key: str = field(default="", repr=False)
    price: tuple[float, float] = (0.0, 0.0)
    temperature: float = 0.2
    timeout: float = 120.0
    retries: int = 4

    @property
    def host(self) -> str:
        """Where the text goes."""
        from urllib.parse import urlsplit

        return urlsplit(self.base_url or "https://api.openai.com/v1").netloc


@dataclass(frozen=True)
class Reply:
    """What came back: the text, why it ended, the tokens it took, and whether it came from the cache."""

    text: str
    finish: str
    tokens_in: int
    tokens_out: int
    cached: bool = False

    def cost(self, endpoint: Endpoint) -> float:
        """In US dollars; 0 from the cache."""
        if self.cached:
            return 0.0
        return (self.tokens_in * endpoint.price[0] + self.tokens_out * endpoint.price[1]) / 1e6


class ModelClient:
    """Answers from endpoints. ``cache`` is a folder for answers, or None; it never holds a key."""

    def __init__(self, cache: Path | None = None) -> None:
        self._cache = cache
        self._clients: dict[Endpoint, AsyncOpenAI] = {}

    async def ask(
        self, endpoint: Endpoint, messages: Sequence[ChatMessage], on_text: Callable[[str], None] = lambda text: None
    ) -> Reply:
        """One answer, streamed to ``on_text`` as it comes. Raises ModelError; cancelling ends the request."""
        key = self._key(endpoint, messages)
        kept = self._kept(key)
        if kept is not None:
            on_text(kept.text)
            return kept
        import openai

        try:
            reply = await asyncio.wait_for(self._stream(endpoint, messages, on_text), endpoint.timeout)
        except TimeoutError:
            raise ModelError(f"{endpoint.host} gave no whole answer in {endpoint.timeout:.0f} s") from None
        except openai.APIStatusError as error:
            raise ModelError(f"{endpoint.host} answered {error.status_code}") from None
        except (openai.APIError, OSError, ValueError) as error:
            raise ModelError(f"{endpoint.host}: {type(error).__name__}") from None
        if reply.finish == "stop":
            self._keep(key, reply)
        return reply

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()
        self._clients.clear()

    async def _stream(
        self, endpoint: Endpoint, messages: Sequence[ChatMessage], on_text: Callable[[str], None]
    ) -> Reply:
        completions: Any = self._client(endpoint).chat.completions  # Any: Message is the shape that it asks for
        stream = await completions.create(
            model=endpoint.model,
            messages=list(messages),
            temperature=endpoint.temperature,
            stream=True,
            stream_options={"include_usage": True},
        )
        parts: list[str] = []
        finish, used = "", None
        async for chunk in stream:
            used = chunk.usage or used
            for choice in chunk.choices[:1]:
                if choice.delta.content:
                    parts.append(choice.delta.content)
                    on_text(choice.delta.content)
                finish = choice.finish_reason or finish
        text = "".join(parts)
        if used is None:
            return Reply(text, finish, sum(len(m["content"]) for m in messages) // 4, len(text) // 4)
        return Reply(text, finish, used.prompt_tokens, used.completion_tokens)

    def _client(self, endpoint: Endpoint) -> AsyncOpenAI:
        if endpoint not in self._clients:
            try:
                from openai import AsyncOpenAI
            except ImportError:
                raise T2JError("asking a model needs the openai package: pip install 't2j-lsp[llm]'") from None
            self._clients[endpoint] = AsyncOpenAI(
                api_key=endpoint.key or "none", base_url=endpoint.base_url, max_retries=endpoint.retries
            )
        return self._clients[endpoint]

    def _key(self, endpoint: Endpoint, messages: Sequence[ChatMessage]) -> str:
        asked = [endpoint.base_url, endpoint.model, endpoint.temperature, list(messages)]
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()

    def _kept(self, key: str) -> Reply | None:
        if self._cache is None:
            return None
        try:
            data = json.loads((self._cache / f"{key}.json").read_text(encoding="utf-8"))
            return Reply(data["text"], data["finish"], data["tokens_in"], data["tokens_out"], cached=True)
        except (OSError, ValueError, KeyError):
            return None

    def _keep(self, key: str, reply: Reply) -> None:
        if self._cache is not None:
            self._cache.mkdir(parents=True, exist_ok=True)
            data = {
                "text": reply.text,
                "finish": reply.finish,
                "tokens_in": reply.tokens_in,
                "tokens_out": reply.tokens_out,
            }
            partial = self._cache / f"{key}.{os.getpid()}"
            partial.write_text(json.dumps(data), encoding="utf-8")
            partial.replace(self._cache / f"{key}.json")


def key_from_environment() -> str:
    """The key that the environment holds; empty where none is set, which local servers accept."""
    return next((os.environ[name] for name in KEYS if os.environ.get(name)), "")
