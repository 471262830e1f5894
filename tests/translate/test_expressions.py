"""Calls become what their rules say: arguments bound, brackets right, nothing evaluated twice."""

from __future__ import annotations

import pytest

from .convert import body, expect, expression, run


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("torch.cat([x, y], 1)", "jnp.concatenate([x, y], axis=1)"),
        ("torch.cat(dim=1, tensors=[x, y])", "jnp.concatenate([x, y], axis=1)"),
        ("torch.cat([x, y])", "jnp.concatenate([x, y])"),
        ("torch.add(x, y) * 2", "(x + y) * 2"),
        ("torch.mul(x + y, 2)", "(x + y) * 2"),
        ("(x + y).transpose(0, 1)", "(x + y).swapaxes(0, 1)"),
        ("-torch.add(x, y)", "-(x + y)"),
        ("torch.sub(x, torch.sub(y, x))", "x - (y - x)"),
        ("torch.pow(torch.neg(x), 2)", "(-x)**2"),
        ("x.view(2, -1).permute(1, 0)", "x.reshape(2, -1).T"),
        ("x.permute(0, 2, 1).contiguous().view(x.size(0), -1)", "x.transpose(0, 2, 1).reshape(x.shape[0], -1)"),
        ("F.gelu(x)", "jax.nn.gelu(x, approximate=False)"),
        ("F.softmax(x, dim=-1)", "jax.nn.softmax(x, axis=-1)"),
        ("x.mean(dim=(2, 3), keepdim=True)", "x.mean(axis=(2, 3), keepdims=True)"),
        ("x[[-1]]", "x[-1:]"),
        ("x[:, [0, 2]]", "x[:, jnp.array([0, 2])]"),
        ("torch.max(x, 1)[1]", "jnp.argmax(x, axis=1)"),
        ("x.to(torch.float16)", "x.astype(jnp.float16)"),
        ("x.type() != y.data.type()", "x.dtype != y.dtype"),
        ("(x + y).type() == y.type() and x.any()", "(x + y).dtype == y.dtype and x.any()"),
        ("x.cuda().detach()", "jax.lax.stop_gradient(x)"),
        ("[t.unsqueeze(0) for t in (x, y)]", "[t[None] for t in (x, y)]"),
        ("f'{x.size(0)} rows'", "f'{x.shape[0]} rows'"),
        ("f'rows: {x.size(0):>4} of {x.numel()}'", "f'rows: {x.shape[0]:>4} of {x.size}'"),
        ('"a" f"b {x.size(0)}" f"{x.dim()!r}"', '"a" f"b {x.shape[0]}" f"{x.ndim!r}"'),
    ],
)
def test_a_call_becomes_what_its_rule_says(source: str, wanted: str) -> None:
    assert expression(source) == wanted


def test_an_argument_with_an_effect_is_bound_once() -> None:
    code = body("""
    def f(g, x: Tensor):
        a, b = torch.max(g(x).relu(), 1)
        return a, b
    """)
    assert code.count("g(x)") == 1


def test_parts_of_a_pair_that_nobody_reads_are_not_computed() -> None:
    expect(
        """
        def f(x: Tensor):
            _, best = torch.max(x, 1)
            return best
        """,
        """
        def f(x: jax.Array):
            best = jnp.argmax(x, axis=1)
            return best
        """,
    )


def test_an_argument_that_the_template_does_not_know_is_refused_and_reported() -> None:
    result = run("def f(x: Tensor):\n    return torch.tensor(x, requires_grad=flag), torch.gelu_made_up(x)\n")
    assert "torch.gelu_made_up(x)" in result.code
    assert [gap.name for gap in result.gaps] == ["torch.gelu_made_up"]


def test_a_gap_is_marked_above_its_statement_and_torch_stays_imported() -> None:
    result = run("def f(x: Tensor):\n    y = x + 1\n    return torch.ops.my.op(y)\n")
    lines = result.code.splitlines()
    marked = next(i for i, line in enumerate(lines) if "TODO(t2j)" in line)
    assert lines[marked].startswith("    # TODO(t2j): ")
    assert lines[marked + 1] == "    return torch.ops.my.op(y)"
    assert "import torch" in lines


def test_functions_as_values_become_functions() -> None:
    expect(
        "ACT = F.relu\nGELU = F.gelu\n", "ACT = jax.nn.relu\nGELU = functools.partial(jax.nn.gelu, approximate=False)"
    )


def test_a_partial_of_a_torch_function_is_called_as_if_written_out() -> None:
    expect(
        """
        from functools import partial
        def f(x: Tensor):
            arange = partial(torch.arange, device=x.device)
            return arange(5)
        """,
        """
        def f(x: jax.Array):
            return jnp.arange(5)
        """,
    )


def test_comments_inside_a_rewritten_call_survive() -> None:
    code = body("""
    def f(x: Tensor, y: Tensor):
        return torch.where(
            x > 0,  # positive
            x,
            # negative
            y,
        )
    """)
    assert "# positive" in code
    assert "# negative" in code


def test_a_negative_index_counts_from_the_end() -> None:
    code = body("""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.f = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Conv1d(4, 4, 1))
            nn.init.zeros_(self.f[-2].weight)
            nn.init.zeros_(self.f[-3].weight)
    """)
    assert "self.f[-2].scale[...] =" in code and "self.f[-3].kernel[...] =" in code


def test_an_f_string_of_several_lines_converts() -> None:
    source = """
        def f(x: Tensor, name: str):
            print(f'{name} has '
                  f'{x.size(0)} rows')
    """
    assert "f'{x.shape[0]} rows'" in body(source)


def test_a_module_moved_to_a_memory_format_stays() -> None:
    assert "memory_format" not in body(
        "def f(model: nn.Linear):\n    return model.to(memory_format=torch.channels_last)\n"
    )


def test_a_part_of_a_buffer_needs_no_flag() -> None:
    source = """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("pe", torch.zeros(1, 5, 2))

            def forward(self, x):
                return x + self.pe[:, : x.size(1)].requires_grad_(False)
    """
    assert "return x + self.pe[:, : x.shape[1]]" in body(source)
