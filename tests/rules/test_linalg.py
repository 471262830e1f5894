"""Products, solvers, factorisations and Fourier transforms: what they become, and what is left alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from .conversion import INPUTS, _load, agrees, converted, left_alone, refused

PRODUCTS = [
    ("torch.matmul(x, s)", "x @ s", "xs"),
    ("a.mm(b.t())", "a @ b.T", "ab"),
    ("torch.bmm(x, y.transpose(1, 2)) + 1", "x @ y.swapaxes(1, 2) + 1", "xy"),
    ("(x + y).matmul(s - 1)", "(x + y) @ (s - 1)", "xys"),
    ("s.mv(u)", "s @ u", "su"),
    ("torch.dot(u, u)", "jnp.dot(u, u)", "u"),
    ("torch.outer(u, v)", "jnp.outer(u, v)", "uv"),
    ("torch.einsum('bij,kj->bik', x, s)", "jnp.einsum('bij,kj->bik', x, s)", "xs"),
    ("torch.einsum('ij,ij->i', [a, b])", "jnp.einsum('ij,ij->i', a, b)", "ab"),
    ("ops = (a, b); torch.einsum('ij,ij->', *ops)", "ops = (a, b); jnp.einsum('ij,ij->', *ops)", "ab"),
    ("torch.tensordot(x, s, dims=1)", "jnp.tensordot(x, s, axes=1)", "xs"),
    ("torch.addmm(a, s[:3, :3], b)", "a + s[:3, :3] @ b", "asb"),
    ("torch.addmm(a, s[:3, :3], b, beta=0.5, alpha=2)", "0.5 * a + 2 * (s[:3, :3] @ b)", "asb"),
    ("a.addmm(0.5, 2, s[:3, :3], b)", "0.5 * a + 2 * (s[:3, :3] @ b)", "asb"),
    ("a.addmm(0.5, s[:3, :3], b)", "0.5 * a + s[:3, :3] @ b", "asb"),
    ("torch.baddbmm(x, x, s.expand(2, 4, 4), beta=0, alpha=0.5)", "0.5 * (x @ jnp.broadcast_to(s, (2, 4, 4)))", "xs"),
    ("torch.cross(a, b, dim=0)", "jnp.cross(a, b, axis=0)", "ab"),
    ("torch.trace(s)", "jnp.trace(s)", "s"),
    ("torch.linalg.cross(a[:, :3], b[:, 1:4])", "jnp.cross(a[:, :3], b[:, 1:4])", "ab"),
    ("torch.cross(a, b)", "jnp.cross(a, b, axis=a.shape.index(3))", "ab"),
    ("torch.cdist(a, b)", "cdist(a, b)", "ab"),
    ("torch.cdist(a, b, p=1)", "cdist(a, b, p=1)", "ab"),
    ("torch.kron(a, u)", "jnp.kron(a, u)", "au"),
]

SOLVERS = [
    ("torch.linalg.solve(s.expand(2, 4, 4), s[:2])", "solve(jnp.broadcast_to(s, (2, 4, 4)), s[:2])", "s"),
    ("torch.linalg.lstsq(s, s[:, :2]).solution", "lstsq(s, s[:, :2]).solution", "s"),
    ("torch.linalg.lu_factor_ex(s)[0]", "lu_factor_ex(s)[0]", "s"),
    ("torch.linalg.det(s)", "jnp.linalg.det(s)", "s"),
    ("sign, log = torch.linalg.slogdet(s); log", "sign, log = jnp.linalg.slogdet(s); log", "s"),
    ("torch.linalg.slogdet(s).logabsdet", "jnp.linalg.slogdet(s).logabsdet", "s"),
    ("torch.linalg.matrix_power(s, 3)", "jnp.linalg.matrix_power(s, 3)", "s"),
    ("torch.linalg.eigvalsh(s @ s.T)", "jnp.linalg.eigvalsh(of_triangle(s @ s.T))", "s"),
    ("torch.linalg.eigvalsh(s, UPLO='U')", "jnp.linalg.eigvalsh(of_triangle(s, UPLO='U'))", "s"),
    ("_, d, _ = torch.linalg.svd(a); d", "d = jnp.linalg.svdvals(a); d", "a"),
    ("torch.linalg.svd(a).S", "jnp.linalg.svdvals(a)", "a"),
    ("torch.svd(a)[1]", "jnp.linalg.svdvals(a)", "a"),
    ("torch.linalg.svdvals(a)", "jnp.linalg.svdvals(a)", "a"),
    (
        "a, b = s.reshape(4, 4), s.reshape(4, 4); torch.linalg.solve_triangular(a, b, upper=False)",
        "a, b = s.reshape(4, 4), s.reshape(4, 4); jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=True)",
        "s",
    ),
    ("torch.cov(a)", "jnp.cov(a, ddof=1)", "a"),
    *(
        (
            f"torch.linalg.solve_triangular({a}, {b}, upper={upper}{others})",
            f"solve_triangular({a}, {b}, upper={upper}{others})",
            inputs,
        )
        for a, b, upper, others, inputs in [
            ("s[None]", "x.mT", True, "", "sx"),
            ("s", "x.mT", False, "", "sx"),
            ("s", "x", True, ", left=False", "sx"),
            ("s[None, None]", "x.mT[:, None]", True, ", unitriangular=True", "sx"),
        ]
    ),
    ("torch.triangular_solve(x.mT, s)[0]", "solve_triangular(s, x.mT, upper=True)", "xs"),
    ("torch.triangular_solve(x.mT, s[None], True, True)[0]", "solve_triangular(s[None].mT, x.mT, upper=False)", "xs"),
]

SPECTRAL = [
    ("torch.fft.rfft(x, dim=1).abs()", "absolute(jnp.fft.rfft(x, axis=1))", "x"),
    ("torch.fft.fft2(x).real", "jnp.fft.fft2(x).real", "x"),
    ("torch.fft.fftn(x, dim=[0, 2]).imag", "jnp.fft.fftn(x, axes=(0, 2)).imag", "x"),
    ("torch.fft.irfft(c, n=5, norm='ortho')", "jnp.fft.irfft(c, n=5, norm='ortho')", "C"),
    ("torch.fft.fftshift(x, dim=1)", "jnp.fft.fftshift(x, axes=1)", "x"),
    ("torch.hann_window(6, dtype=torch.float64)", "jnp.hanning(6 + 1)[:-1].astype(jnp.float64)", ""),
    ("torch.hamming_window(6, False, dtype=torch.float64)", "jnp.hamming(6).astype(jnp.float64)", ""),
    ("c.conj()", "c.conj()", "C"),
]


@pytest.mark.filterwarnings("ignore:This overload of")
@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
@pytest.mark.parametrize(
    ("torch_code", "jax_code", "inputs"),
    [*PRODUCTS, *SOLVERS, *SPECTRAL],
    ids=[r[0] for r in [*PRODUCTS, *SOLVERS, *SPECTRAL]],
)
def test_becomes(torch_code: str, jax_code: str, inputs: str) -> None:
    agrees(torch_code, jax_code, inputs)


REBUILT = [
    ("u, s, v = torch.svd(a); u @ torch.diag(s) @ v.T", "svd_with_v(a)"),
    ("u, s, vh = torch.linalg.svd(a, full_matrices=False); u @ torch.diag(s) @ vh", "full_matrices=False"),
    ("q, r = torch.linalg.qr(a); q @ r", "jnp.linalg.qr(a)"),
    ("q, r = torch.qr(a, some=True); q @ r", "jnp.linalg.qr(a)"),
]


@pytest.mark.parametrize(("torch_code", "jax_code"), REBUILT)
def test_factors_multiply_to_the_matrix(torch_code: str, jax_code: str) -> None:
    text, translation = converted(torch_code, "a")
    assert jax_code in text
    np.testing.assert_allclose(_load(translation.code)(INPUTS["a"]), INPUTS["a"], atol=1e-5)


def test_eigenvectors_diagonalise_the_matrix() -> None:
    text, translation = converted("w, q = torch.linalg.eigh(s); q @ torch.diag(w) @ q.T", "s")
    assert text.startswith("w, q = jnp.linalg.eigh(of_triangle(s))")
    matrix = INPUTS["s"] + INPUTS["s"].T
    np.testing.assert_allclose(_load(translation.code)(matrix), matrix, atol=1e-5)


def test_what_differs_is_noted() -> None:
    _, translation = converted("torch.linalg.inv(s)", "s")
    assert translation.findings


def test_least_squares_is_converted_where_it_is_unpacked() -> None:
    text, translation = converted(
        "solution, residuals, rank, values = torch.linalg.lstsq(a.T, v[:5, None]); solution", "av"
    )
    assert "jnp.linalg.lstsq(a.T, v[:5, None])" in text
    wanted = torch.linalg.lstsq(torch.tensor(INPUTS["a"].T), torch.tensor(INPUTS["v"][:5, None])).solution
    np.testing.assert_allclose(_load(translation.code)(INPUTS["a"], INPUTS["v"]), wanted, atol=1e-4)


NOT_TORCH = [
    "def f(a, b):\n    return np.dot(a, b), np.linalg.norm(a)",
    "def f(a, b):\n    return a @ b",
    "def f(vector, other):\n    return vector.dot(other)",
    "def f(matrix):\n    return matrix.inverse()",
    "def f(frame):\n    return frame.cov(), frame.corrcoef()",
    "def f(point):\n    return point.cross(point)",
    "def f(a):\n    return np.fft.fft(a)",
]


@pytest.mark.parametrize("source", NOT_TORCH)
def test_code_that_is_not_torchs_stays(source: str) -> None:
    left_alone(source)


REFUSED = [
    ("torch.linalg.solve(s, s, left=False)", "no left=False", "s"),
    ("torch.linalg.lu_factor(s, pivot=False)", "exchanges rows", "s"),
    ("torch.addmm(0.5, a, 2, s[:3, :3], b)", "older order", "asb"),
    ("torch.svd(s, compute_uv=False)", "jnp.linalg.svdvals", "s"),
    ("torch.svd_lowrank(s)", "randomised", "s"),
    ("torch.fft.hfft2(c, norm=how)", "in plain sight", "c"),
    ("torch.hamming_window(6, alpha=0.5)", "alpha=0.54", ""),
    ("torch.hann_window(6, periodic=flag)", "spell out periodic", ""),
]


@pytest.mark.parametrize(("torch_code", "reason", "inputs"), REFUSED)
def test_is_refused(torch_code: str, reason: str, inputs: str) -> None:
    refused(torch_code, reason, inputs)
