"""``python -m t2j_lsp`` is the ``t2j`` command."""

from .cli import main

raise SystemExit(main())
