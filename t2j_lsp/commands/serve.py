"""``t2j serve``: the language server, over standard input and output or TCP."""

from __future__ import annotations

import argparse
import gc

from t2j_lsp.contract import T2JError


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "serve",
        help="run the language server",
        description="Run the language server, over standard input and output or TCP. Editors start it.",
    )
    parser.add_argument("--tcp", metavar="HOST:PORT", help="listen here for one client (port 0: any free one)")
    parser.add_argument("--stdio", action="store_true", help="standard input and output (the default)")
    levels = ("debug", "info", "warning", "error")
    parser.add_argument("--log-level", choices=levels, default="warning", help="of the log on standard error")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until the client says exit or goes away."""
    # Collecting while thousands of protocol classes are made costs a tenth of the start; `serve` turns it on again.
    gc.disable()
    try:
        from t2j_lsp.lsp.serving import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol", "cattrs", "attrs"):
            raise
        raise T2JError("the language server needs two packages: pip install 'pygls>=2' 'lsprotocol>=2025'") from None
    address = None
    if arguments.tcp:
        host, _, port = arguments.tcp.rpartition(":")
        if not port.isdigit() or int(port) > 65535:
            raise T2JError(f"--tcp takes HOST:PORT, not {arguments.tcp!r}")
        address = (host.strip("[]") or "127.0.0.1", int(port))
    return serve(address, arguments.log_level)
