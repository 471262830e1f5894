"""t2j as a libcst codemod.

    python -m libcst.tool codemod -x t2j_lsp.codemod.ConvertCommand PATH

Files are rewritten in place, as codemods do; `t2j convert` writes new ones. libcst's tool formats them with black, or
not at all with ``--no-format``. Classes that a file imports from its neighbours are looked up beside it. What has no
rule is a warning, and is marked in the file.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import libcst as cst
from libcst.codemod import CodemodCommand, CodemodContext, SkipFile

from t2j_lsp.contract import HelperPlacement, Options, Severity, SourceError
from t2j_lsp.files.importers import used_elsewhere
from t2j_lsp.files.sources import neighbours
from t2j_lsp.translate import translate


class ConvertCommand(CodemodCommand):
    """Converts PyTorch to Flax NNX. A file without torch stays as it is; one that can't be read is skipped."""

    DESCRIPTION = "Convert PyTorch to Flax NNX, in place."

    def __init__(self, context: CodemodContext, helpers: HelperPlacement = "inline", x64: bool = False) -> None:
        super().__init__(context)
        self.helpers: HelperPlacement = helpers
        self.x64 = x64

    @staticmethod
    def add_args(arg_parser: argparse.ArgumentParser) -> None:
        """The options of ``t2j convert`` that concern one file alone."""
        arg_parser.add_argument(
            "--helpers",
            choices=("inline", "import"),
            default="inline",
            help="put helper functions into the file (default), or import them from t2j",
        )
        arg_parser.add_argument("--x64", action="store_true", help="keep 64-bit dtypes (for JAX with jax_enable_x64)")

    def transform_module_impl(self, tree: cst.Module) -> cst.Module:
        """The converted module. Raises SkipFile where t2j does not convert it."""
        path = self.context.filename
        resolve = neighbours(Path(path)) if path is not None else None
        used = used_elsewhere(Path(path)) if path is not None else None
        options = Options(helpers=self.helpers, x64=self.x64, path=path, resolve=resolve, used_elsewhere=used)
        try:
            translation = translate(tree.code, options)
        except SourceError as error:
            raise SkipFile(str(error)) from error
        for finding in translation.findings:
            if finding.severity is Severity.GAP:
                self.warn(f"{path or 'line'}:{finding.span.line}: {finding.name}: {finding.reason}")
        return cst.parse_module(translation.code)
