"""To which hosts a folder's code may go: what the user agreed to, for clients that don't keep that themselves.

Kept in the user's state folder, where no repository can write.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from t2j_lsp.files.written import replace_file, state_folder


def is_agreed(folder: Path, host: str) -> bool:
    """Whether the user agreed that code of a folder goes to a host."""
    return host in _kept().get(str(folder), [])


def agree(folder: Path, host: str) -> None:
    """Remember that the user agreed. OSError where nothing can be written: then the next time asks again."""
    kept = _kept()
    kept[str(folder)] = sorted({*kept.get(str(folder), []), host})
    replace_file(_file(), json.dumps(kept, indent=1).encode())


def _file() -> Path:
    return state_folder() / "hosts.json"


def _kept() -> dict[str, list[str]]:
    try:
        data: Any = json.loads(_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) and all(isinstance(hosts, list) for hosts in data.values()) else {}
