"""Policy gradients whose loss is made of what an episode kept: what acts is compiled, and its gradients go back."""

from __future__ import annotations

from pathlib import Path

import pytest

from t2j_lsp import convert

PROGRAMS = Path(__file__).parents[1] / "programs"
REINFORCE = (PROGRAMS / "reinforce.py").read_text()
ACTOR_CRITIC = (PROGRAMS / "actor_critic.py").read_text()


def test_what_acts_is_compiled_and_its_gradients_are_pulled_back() -> None:
    code = convert(REINFORCE).code
    assert "@recorded\ndef act(policy, state, *, rngs: nnx.Rngs):" in code
    assert "return m.log_prob(action), action" in code
    assert "episode_gradients = jax.jit(jax.grad(episode_loss))" in code
    assert "cotangents = episode_gradients(stacked(saved_log_probs), returns)" in code
    assert "apply_gradients(policy, optimizer, pull_back(pullbacks, cotangents))" in code
    assert "self.saved_log_probs" not in code and "policy.rewards" not in code


def test_a_named_tuple_is_kept_as_a_whole() -> None:
    code = convert(ACTOR_CRITIC).code
    assert "return SavedAction(m.log_prob(action), state_value), action" in code
    assert "policy_losses, value_losses = jax.vmap(term)(saved_actions, returns)" in code
    assert "advantage = R - jax.lax.stop_gradient(value).reshape(())" in code


def test_several_lists_and_a_loss_that_is_read_later() -> None:
    text = REINFORCE.replace(
        "policy.saved_log_probs.append(m.log_prob(action))",
        "policy.saved_log_probs.append(m.log_prob(action))\n    policy.entropies.append(m.entropy())",
    )
    text = text.replace("        self.rewards = []", "        self.entropies = []\n        self.rewards = []")
    text = text.replace(
        "policy_loss = torch.cat(policy_loss).sum()",
        "policy_loss = torch.cat(policy_loss).sum() - torch.cat(policy.entropies).sum()",
    )
    text = text.replace("    del policy.rewards[:]", "    policy.entropies.clear()\n    del policy.rewards[:]")
    text = text.replace(
        "    del policy.saved_log_probs[:]", "    del policy.saved_log_probs[:]\n    return policy_loss.item()"
    )
    code = convert(text).code
    assert "(log_prob, entropy), action, pullback = act(policy, state, rngs=rngs)" in code
    assert "episode_gradients = jax.jit(jax.value_and_grad(episode_loss, argnums=(0, 1)))" in code
    assert "policy_loss, cotangents = episode_gradients(" in code


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    optimizer.zero_grad()\n", ""),
        ("    optimizer.step()\n", "    optimizer.step()\n    optimizer.step()\n"),
        ("    del policy.saved_log_probs[:]\n", ""),
        ("    R = 0\n", "    R = policy(torch.zeros(1, 3)).max()\n"),
        ("    R = 0\n", "    R = sum(p.pow(2).sum() for p in policy.parameters())\n"),
        ("    return action.item()\n", "    return action.item(), probs\n"),
        ("append(m.log_prob(action))", "append(action)"),
        ("append(m.log_prob(action))", "append((state, m.log_prob(action)))"),
        ("    probs = policy(state)\n", "    with torch.no_grad():\n        probs = policy(state)\n"),
        ("def select_action", "@torch.no_grad()\ndef select_action"),
        ("    probs = policy(state)\n", "    probs = policy(state)\n    print(probs)\n"),
        ("        state = env.reset()\n", "        state = env.reset()\n        policy(torch.zeros(1, 3)).sum()\n"),
        ("            if done:\n", "            policy.saved_log_probs.append(torch.zeros(1))\n            if done:\n"),
        ("    R = 0\n", "    R = len(2 * policy.saved_log_probs)\n"),
        ("    R = 0\n", "    R = len(policy.saved_log_probs[1:] + [0])\n"),
        ("    R = 0\n", "    kept = policy.saved_log_probs\n    R = 0\n"),
        ("policy_loss.backward()", "policy_loss.backward(retain_graph=True)"),
        ("        finish_episode()\n", "        for p in policy.parameters(): p.data.mul_(0.9)\n        finish_episode()\n"),  # noqa: E501
        ("        x = F.relu(x)\n", "        x = F.relu(x) + self.last\n        self.last = x\n"),
        ("eps = np", "critic = nn.Linear(3, 1)\nother = optim.Adam(critic.parameters())\neps = np"),
        ("policy = Policy()", "policy = Policy()\ntwin = Policy()\ntwin.affine1 = policy.affine1"),
    ],
)  # fmt: skip
def test_what_is_not_surely_an_episode_is_left_to_the_other_forms(old: str, new: str) -> None:
    assert old in REINFORCE
    assert "pull_back" not in convert(REINFORCE.replace(old, new)).code


def test_lists_may_stand_beside_the_module() -> None:
    text = REINFORCE.replace("        self.saved_log_probs = []\n        self.rewards = []\n", "")
    text = text.replace("policy = Policy()\n", "policy = Policy()\nsaved_log_probs = []\nrewards = []\n")
    text = text.replace("policy.saved_log_probs", "saved_log_probs").replace("policy.rewards", "rewards")
    code = convert(text).code
    assert "cotangents = episode_gradients(stacked(saved_log_probs), returns)" in code
    assert code.count("\nsaved_log_probs = []\n") == 1
    again = text.replace(
        "        finish_episode()\n", "        finish_episode()\n        saved_log_probs.append(torch.ones(1))\n"
    )
    assert "pull_back" not in convert(again).code


def test_gradients_are_clipped_where_the_update_clips_them() -> None:
    clip = "    nn.utils.clip_grad_norm_(policy.parameters(), 0.5)\n"
    code = convert(REINFORCE.replace("    optimizer.step()\n", f"{clip}    optimizer.step()\n")).code
    assert "apply_gradients(policy, optimizer, clip_grad_norm(pull_back(pullbacks, cotangents), 0.5))" in code
    for place in ("    optimizer.zero_grad()\n", "    policy_loss.backward()\n", "    del policy.rewards[:]\n"):
        assert "pull_back" not in convert(REINFORCE.replace(place, f"{clip}{place}")).code


def test_names_that_the_form_needs_are_not_taken_from_the_file() -> None:
    assert "pull_back" not in convert(REINFORCE.replace("running_reward", "pullbacks")).code
