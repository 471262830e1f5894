"""``torch.distributions``: those of policy gradients, as helpers with PyTorch's methods."""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import Object, Tensor
from t2j_lsp.translate.rule.library import Trait, trait
from t2j_lsp.translate.rule.record import Call, Piece, refuse, rule

PREFIX = "torch.distributions."
PARAMETERS = {
    "Normal": "loc, scale",
    "Categorical": "probs=None, logits=None",
    "Bernoulli": "probs=None, logits=None",
}
"""Distributions, and what they are made from."""


def register(name: str, parameters: str) -> None:
    module = f"{PREFIX}{name.lower()}.{name}"
    drawn = "int" if name == "Categorical" else "float"

    @rule(
        f"{PREFIX}{name}({parameters}, validate_args=None)",
        jax=f"{name}({parameters.replace('=None', '')})",
        aliases=[module],
        ignore=["validate_args"],
        result=lambda call: Object("distribution", PREFIX + name),
    )
    def make(call: Call) -> Piece:
        given = [p.partition("=")[0] for p in parameters.split(", ")]
        named = "=None" in parameters
        parts = [f"{p}={{{p}}}" if named else f"{{{p}}}" for p in given if call.given(p)]
        return call.emit(f"{name}({', '.join(parts)})")

    trait(Trait.DISTRIBUTION, PREFIX + name)
    for method in ("sample", "rsample") if name == "Normal" else ("sample",):

        @rule(
            f"{PREFIX}{name}.{method}(self, sample_shape=torch.Size([]))",
            jax=f"distribution.{method}(rngs=rngs)",
            random=True,
            result=lambda call: Tensor(None, drawn),
        )
        def draw(call: Call, method: str = method) -> Piece:
            shape = "{sample_shape:shape}, " if call.given("sample_shape") else ""
            return call.emit(f"{{self}}.{method}({shape}rngs={{rngs}})", rngs=call.site.rngs())

    for method, signature in {"log_prob": "(self, value)", "entropy": "(self)"}.items():

        @rule(f"{PREFIX}{name}.{method}{signature}", jax=f"distribution.{method}", result="tensor")
        def ask(call: Call, method: str = method) -> Piece:
            return call.emit(f"{{self}}.{method}({'{value}' if method == 'log_prob' else ''})")


for one, stated in PARAMETERS.items():
    register(one, stated)
refuse("torch.distributions.*", "This distribution is in distrax and numpyro; jax.scipy.stats has many densities.")
