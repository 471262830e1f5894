"""``python -m t2j_lsp`` is the ``t2j`` command."""

from t2j_lsp.cli import main

raise SystemExit(main())
