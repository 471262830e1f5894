"""Helper modules that get more helpers: nothing that stands there goes, and what is added runs."""

from __future__ import annotations

import ast

import pytest

from t2j_lsp.files.helper_modules import extended, helpers_in, module_source


def run(text: str) -> dict[str, object]:
    namespace: dict[str, object] = {"__name__": "torch_helpers"}
    exec(compile(text, "torch_helpers.py", "exec"), namespace)
    return namespace


def test_a_module_as_t2j_writes_it_is_known_and_made_anew() -> None:
    text = module_source({"uniform_bias"})
    for present in (text, text.replace("\n", "\r\n")):
        module_text = extended(present, {"max_pool2d"})
        assert module_text.as_written and not module_text.complete
        assert module_text.fresh == module_source({"uniform_bias", "max_pool2d"})
    assert extended(text, {"uniform_bias"}).complete
    assert not extended("", {"max_pool2d"}).as_written
    assert extended("", {"max_pool2d"}).fresh == module_source({"max_pool2d"})


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_an_edited_module_keeps_every_line(newline: str) -> None:
    present = module_source({"uniform_bias"}) + "\n\n# A page\f of mine.\nMINE = 'a\\u2028b'\n"
    present = present.replace("\n", newline)
    module_text = extended(present, {"max_pool2d", "uniform_bias"})
    assert not module_text.as_written
    kept = iter(module_text.kept.split(newline))
    assert all(line in kept for line in present.split(newline) if line)
    assert "\n" not in module_text.kept.replace("\r\n", "") or newline == "\n"
    assert helpers_in(module_text.kept) == helpers_in(module_source({"max_pool2d", "uniform_bias"}))
    namespace = run(module_text.kept)
    assert namespace["MINE"] and callable(namespace["max_pool2d"])
    assert extended(module_text.kept, {"max_pool2d", "uniform_bias"}).complete
    # An import that is there is not written again.
    imports = [ast.unparse(n) for n in ast.parse(module_text.kept).body if isinstance(n, ast.Import | ast.ImportFrom)]
    assert len(imports) == len(set(imports))


def test_a_module_without_imports_gets_them_behind_its_docstring() -> None:
    module_text = extended('"""Mine."""\n\nONE = 1\n', {"max_pool2d"})
    assert module_text.kept.startswith('"""Mine."""\n\n') and run(module_text.kept)["ONE"] == 1
    assert extended("from elsewhere import max_pool2d\n", {"max_pool2d"}).kept.count("def max_pool2d") == 0
    with pytest.raises(SyntaxError):
        extended("def (", {"max_pool2d"})
