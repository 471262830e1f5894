"""The loop against a real server of OpenAI's protocol: `transformers serve` with a tiny model of random weights.

    python -m benchmarks.real_endpoint [--folder FOLDER] [--programs N]

Makes an environment of its own in FOLDER (by default ``~/.cache/t2j/real_endpoint``) with transformers and its server,
beside the torch of this one; makes the model there: 2 layers of 32, its tokenizer trained on the fixed bugs. Nothing is
downloaded but packages. Then N programs with a place left open are repaired, judged by real checks. What such a model
says is noise, so that this shows two things: that a real server's protocol is spoken (streaming, token counts, answers
that end for want of room, a model that isn't there), and that noise is never called verified. Exit status 1 where it
is.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import venv
from collections.abc import Iterator
from pathlib import Path

from t2j_lsp.assist.drafts import Budget
from t2j_lsp.assist.model import Endpoint, ModelClient, ModelError
from t2j_lsp.assist.repair import repair_async
from t2j_lsp.assist.spans import MARK
from t2j_lsp.retrieval import dataset

from .fixed_bugs import PAGES, check_judge
from .repairs import planted_gap

MODEL = """
import pathlib, sys
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed

folder, pages, tokens = sys.argv[1], sys.argv[2], int(sys.argv[3])
set_seed(0)
words = Tokenizer(models.BPE())
words.pre_tokenizer, words.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
alphabet = pre_tokenizers.ByteLevel.alphabet()
special = ["<pad>", "<s>", "</s>"]
trainer = trainers.BpeTrainer(vocab_size=2000, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
words.train_from_iterator((p.read_text() for p in sorted(pathlib.Path(pages).glob("*.md"))), trainer)
fast = PreTrainedTokenizerFast(tokenizer_object=words, bos_token="<s>", eos_token="</s>", pad_token="<pad>")
fast.chat_template = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\\n{% endfor %}assistant: "
fast.save_pretrained(folder)
config = LlamaConfig(
    vocab_size=len(fast), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=32768, bos_token_id=1, eos_token_id=2, pad_token_id=0,
)
model = LlamaForCausalLM(config)
model.generation_config.max_new_tokens = tokens
model.generation_config.do_sample = True
model.save_pretrained(folder)
"""
TOKENS = 300
STARTING = 300
"""Tokens of an answer at most, and seconds for the server to start."""
BUDGET = Budget(rounds=3)


def prepared(folder: Path) -> tuple[Path, Path]:
    """The environment's Python and the model, made where they are not there."""
    home, model = folder / "env", folder / "tiny"
    python = home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not (folder / "ready").exists():
        venv.create(home, with_pip=True)
        import torch

        own = subprocess.check_output(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
        )
        Path(own.strip(), "zz_torch.pth").write_text(f"{Path(torch.__file__).parents[1]}\n")
        subprocess.run([python, "-m", "pip", "install", "-q", "transformers[serving]"], check=True)
        subprocess.run([str(python), "-c", MODEL, str(model), str(PAGES), str(TOKENS)], check=True)
        (folder / "ready").touch()
    return python, model


@contextlib.contextmanager
def server(python: Path, model: Path, log: Path) -> Iterator[str]:
    """`transformers serve`, as long as the context lasts. Its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(python.parent / "transformers"), "serve", str(model), "--host", "127.0.0.1", "--port", str(port)]
    with log.open("wb") as out:
        process = subprocess.Popen([*command, "--device", "cpu"], stdout=out, stderr=out)
        try:
            end = time.monotonic() + STARTING
            while not _healthy(port):
                if process.poll() is not None or time.monotonic() > end:
                    raise SystemExit(f"the server did not start; see {log}")
                time.sleep(0.5)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            process.wait()


def _healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


async def nobody(url: str) -> str:
    """What is said where the model isn't there."""
    client = ModelClient()
    try:
        await client.ask(Endpoint("no/such-model", url, retries=0, timeout=60), [{"role": "user", "content": "?"}])
    except ModelError as error:
        return str(error)
    finally:
        await client.close()
    return "an answer"


def run(url: str, model: Path, count: int) -> int:
    """Repairs programs with the model; how many spans were wrongly called verified."""
    pairs = [next(example.pairs) for example in dataset()[:: max(1, len(dataset()) // count)]][:count]
    rounds = tokens = verified = 0
    ended: dict[str, int] = {}
    tags: dict[str, int] = {}
    pieces = 0

    def piece(text: str) -> None:
        nonlocal pieces
        pieces += 1

    start = time.monotonic()
    with check_judge() as judge:
        for pair in pairs:
            endpoint = Endpoint(str(model), url, temperature=1.0, timeout=300, retries=0)
            # The standard prompt: the fixed bugs are long, and it is not what the model reads that counts.
            result = asyncio.run(
                repair_async(planted_gap(pair), [endpoint], judge, style="standard", budget=BUDGET, on_text=piece)
            )
            rounds, tokens = rounds + result.rounds, tokens + result.tokens
            verified += sum(draft.verified for draft in result.drafts.values()) + (MARK not in result.code)
            ended[result.ended] = ended.get(result.ended, 0) + 1
            for tag in (tag for turn in result.dialogue.turns for tag in turn.tags):
                tags[tag] = tags.get(tag, 0) + 1
    print(
        f"{len(pairs)} programs: {rounds} rounds, {tokens} tokens as the server counts them, {pieces} pieces streamed"
    )
    print(f"ended: {json.dumps(ended)}; rounds: {json.dumps(tags)}; {time.monotonic() - start:.0f} s")
    print(f"called verified: {verified}")
    return verified


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path.home() / ".cache/t2j/real_endpoint")
    parser.add_argument("--programs", type=int, default=5)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    python, model = prepared(arguments.folder.resolve())
    with server(python, model, arguments.folder / "server.log") as url:
        print(f"a model that isn't there: {asyncio.run(nobody(url))}")
        return 1 if run(url, model, arguments.programs) else 0


if __name__ == "__main__":
    sys.exit(main())
