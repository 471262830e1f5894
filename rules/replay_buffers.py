"""Replay buffers of Stable-Baselines3: they stay, and what is drawn from them becomes JAX arrays where it is drawn.

They keep numpy arrays, and make tensors of PyTorch's of them when they are asked for a batch, which is a named tuple.
"""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import Object
from t2j_lsp.translate.rule.library import Trait, torch_class, trait
from t2j_lsp.translate.rule.record import CLOSE, Row

MODULE = "stable_baselines3.common.buffers"
BUFFER = f"{MODULE}.ReplayBuffer"
HELD = Object("replay buffer")

for name in ("ReplayBuffer", "DictReplayBuffer"):
    Row(
        f"{MODULE}.{name}(buffer_size, observation_space, action_space, device='auto', n_envs=1, "
        "optimize_memory_usage=False, handle_timeout_termination=True)",
        f'{name}({{buffer_size}}, {{observation_space}}, {{action_space}}, device="cpu", n_envs={{n_envs?}}, '
        "optimize_memory_usage={optimize_memory_usage?}, handle_timeout_termination={handle_timeout_termination?})",
        ignore=["device"],
        fidelity=CLOSE,
        note="The buffer stays PyTorch's, on the CPU; what is drawn from it becomes JAX arrays.",
        result=lambda call: HELD,
    )
    called = HELD.kind if name == "ReplayBuffer" else None
    torch_class(f"{MODULE}.{name}", annotation=name, fact=HELD, called=called)
trait(Trait.KEPT_METHODS, BUFFER)
Row(
    f"{BUFFER}.sample(self, batch_size, env=None)",
    "jax.tree.map(jnp.asarray, {self}.sample({batch_size}, env={env?}))",
    result="unknown",
)
