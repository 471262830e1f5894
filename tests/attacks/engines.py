"""Runs an attack: outside of a check, to see that it works; then by the command line, a language server, a pool."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from t2j_lsp.api import convert_file
from t2j_lsp.check.process.containment import probe
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.process.worker import Limits
from t2j_lsp.check.run import check_files
from t2j_lsp.contract import Options, VerdictKind
from tests.lsp.client import Client, ServerError

from .table import Attack, System
from .world import World

ROOT = Path(__file__).resolve().parents[2]
THROUGH = "the attack got through"
"""What a program says that has seen for itself that nothing stopped it."""
PLAIN = """
import torch
import torch.nn as nn


# t2j: x=f32[3, 5]
class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(5, 7)

    def forward(self, x):
        return torch.relu(self.fc(x))
"""
WRONG = "import jax.numpy as jnp\nfrom flax import nnx\n\n\nclass Net(nnx.Module):\n"
WRONG += "    def __init__(self, *, rngs: nnx.Rngs):\n        self.fc = nnx.Linear(3, 2, rngs=rngs)\n\n"
WRONG += "    def __call__(self, x):\n        return self.fc(x) + 1\n"


class Outside:
    """Runs programs outside of a check, one after the other, in a process that has PyTorch. A context manager."""

    def __enter__(self) -> Outside:
        command = [sys.executable, str(Path(__file__).with_name("outside.py"))]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def damage(self, attack: Attack) -> list[str]:
        """What the program does where nothing holds it; nothing where it is no attack at all."""
        with World(grace=0.5) as world:  # Here nothing ends what was left.
            program, output = world.write(attack.program), world.folder / "output"
            request = {"program": str(program), "folder": str(world.folder / "scratch"), "output": str(output)}
            assert self._process.stdin is not None and self._process.stdout is not None
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            assert self._process.stdout.readline() == "done\n"
            return _damage(world, output.read_text())


def _damage(world: World, answer: str) -> list[str]:
    texts = [THROUGH] if THROUGH in answer.replace(f'"{THROUGH}"', "") else []
    return [*texts, *world.damage(answer)]


def by_command(attack: Attack, world: World) -> list[str]:
    """The damage after ``t2j check`` of the program; none where all of it was held."""
    program = world.write(attack.program)
    command = [sys.executable, "-m", "t2j_lsp", "check", str(program), "--timeout", "30"]
    if attack.program == "forge":
        (world.project / "wrong.py").write_text(WRONG)
        world.write(attack.program)
        command.insert(-2, str(world.project / "wrong.py"))
    variables = {**world.environment(), "PYTHONPATH": str(ROOT)}
    output = world.folder / "output"
    with open(output, "w") as file:  # A pipe would stay open in whatever is left behind.
        run = subprocess.run(
            command, env=variables, cwd=world.project, stdout=file, stderr=file, timeout=300, check=False
        )
    said = output.read_text()
    damage = _damage(world, said)
    if attack.program == "forge" and run.returncode not in (1, 3):
        damage.append(f"exit code {run.returncode}: {said}")
    return [*damage, *([] if run.returncode in (0, 1, 3) else [f"the check failed: {said[-2000:]}"])]


def by_pool(attack: Attack, world: World, pool: Pool) -> list[str]:
    """The damage after a check with a pool of the world's project."""
    program = world.write(attack.program)
    code = WRONG if attack.program == "forge" else convert_file(program, Options()).translation.code
    report = check_files(program, code, pool=pool, timeout=20.0, stage="spec", eager=False, causes=False)
    damage = _damage(world, json.dumps(report.to_json()))
    if attack.program == "forge" and report.verdict is VerdictKind.EQUIVALENT:
        damage.append("a mistake passed")
    return damage


def by_server(attack: Attack, world: World, client: Client) -> list[str]:
    """The damage after a language server in the world's project has checked the program."""
    report = checked(client, world.write(attack.program))
    damage = _damage(world, json.dumps([report, client.messages]))
    if attack.program == "leave_patched":
        other = world.folder / "other" / "plain.py"
        other.parent.mkdir()
        (other.parent / "setup.cfg").touch()
        for path in (world.project / "plain.py", other):
            path.write_text(PLAIN)
            report = checked(client, path)
            if report["verdict"] != VerdictKind.EQUIVALENT:
                damage.append(f"the next check: {report}")
    return damage


def checked(client: Client, path: Path) -> dict[str, Any]:
    """Opens a file and has it checked, with a conversion made for it."""
    uri = path.as_uri()
    client.open(uri, path.read_text())
    client.state(uri, complete=True)
    try:
        report: dict[str, Any] = client.command("t2j.check", uri, timeout=300)
    except ServerError as error:
        return {"verdict": None, "error": str(error)}
    return report


def serving(world: World) -> Client:
    """A language server in a trusted workspace, which is the world's project."""
    client = Client(env=world.environment())
    client.initialize(world.project, None, {"trusted": True, "settings": {}})
    return client


def pool_of(world: World) -> Pool:
    """Workers with little memory for the world's project."""
    return Pool(device="cpu", limits=Limits(memory=2 * 1024**3), project=world.project)


def system_here() -> System:
    """Which kind of system this one is."""
    held = probe().files
    if held in ("namespace", "bubblewrap"):
        return "root" if os.getuid() == 0 else "user"
    return "none" if held == "python" else "no-namespaces"
