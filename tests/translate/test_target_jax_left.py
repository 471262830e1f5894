"""The target ``jax``: what is not made into functions, and what is said of it."""

from __future__ import annotations

import textwrap

import pytest

from t2j_lsp.api import convert

from .test_target_jax import HEAD, converted, module

STAYS = {
    "a layer without functions": (
        module("self.rnn = nn.LSTM(3, 4)", "return self.rnn(x)[0]"),
        "nn.LSTM has no function",
    ),
    "a method with a decorator": (
        module("self.fc = nn.Linear(3, 4)", "return self.fc(x)")
        + "\n    @torch.no_grad()\n    def extra(self, x):\n        return x\n",
        "it has a method extra with decorators",
    ),
    "a method that PyTorch calls": (
        module("self.fc = nn.Linear(3, 4)", "return self.fc(x)")
        + "\n    def train(self, mode=True):\n        return super().train(mode)\n",
        "it has a method train",
    ),
    "a method that calls itself": (
        module("self.fc = nn.Linear(3, 4)", "return self.again(x, 2)")
        + "\n    def again(self, x, n):\n        return self.again(self.fc(x), n - 1) if n else x\n",
        "its method again calls itself",
    ),
    "a method and buffers that change": (
        module("self.norm = nn.BatchNorm1d(3)", "return self.inner(x)")
        + "\n    def inner(self, x):\n        return self.norm(x)\n",
        "it has a method inner, and buffers that change",
    ),
    "a method whose function has a name of the file's": (
        "def net_inner(x):\n    return x\n\n\n"
        + module("self.fc = nn.Linear(3, 4)", "return self.inner(x)")
        + "\n    def inner(self, x):\n        return self.fc(x)\n",
        "something else is called net_inner",
    ),
    "rows of other lengths": (
        module(
            "self.layers = nn.ModuleList([nn.ModuleList([nn.Linear(3, 3)])])",
            "for a, b in self.layers:\n    x = b(a(x))\nreturn x",
        ),
        "the elements of self.layers are not lists of 2 layers",
    ),
    "an attribute that forward assigns": (module("self.n = 1", "self.n = x\nreturn x"), "its forward assigns self.n"),
    "the module itself": (module("self.fc = nn.Linear(3, 4)", "return helper(self, x)"), "hands the module itself on"),
    "layers that are applied in different ways": (
        module(
            "self.layers = nn.ModuleList([nn.Conv1d(3, 3, 1), nn.Conv1d(3, 3, 3, padding=1)])",
            "for layer in self.layers:\n    x = layer(x)\nreturn x",
        ),
        "applied in different ways",
    ),
    "a state inside a condition": (
        module("self.norm = nn.BatchNorm1d(3)", "return self.norm(x) if x.ndim == 3 else x"),
        "is called inside a condition",
    ),
    "random numbers": (module("self.n = 1", "return x + torch.randn_like(x)"), "draws numbers with torch.randn_like"),
    "a changed initial value": (
        module("self.fc = nn.Linear(3, 4)\nnn.init.zeros_(self.fc.weight)", "return self.fc(x)"),
        "nn.init.zeros_ changes what the constructor made",
    ),
    "a buffer that is written to": (
        module("self.register_buffer('seen', torch.zeros(3))", "self.seen[0] = 1\nreturn x + self.seen"),
        "its forward changes self.seen",
    ),
    "a buffer that a method changes": (
        module("self.register_buffer('seen', torch.zeros(3))", "self.seen.add_(1)\nreturn x + self.seen"),
        "its forward changes self.seen",
    ),
    "a parameter that is changed past its gradient": (
        module("self.w = nn.Parameter(torch.ones(3))", "self.w.data.clamp_(0)\nreturn x * self.w"),
        "its forward changes self.w",
    ),
    "a list that is filled": (
        module("self.seen = []", "self.seen.append(x)\nreturn x"),
        "its forward changes self.seen",
    ),
    "a setting that is another one each time": (
        module("self.number = next(COUNTER)", "return x * self.number"),
        "a setting is made by next, which may do so once only",
    ),
    "a setting that is drawn": (module("self.w = torch.randn(3)", "return x * self.w"), "a setting is drawn at random"),
    "a generator": (module("self.n = 1", "yield x"), "its forward is a generator"),
    "a setting that is given another value": (
        module("n = n + 1\nself.n = n", "return x + self.n", ", n"),
        "its constructor gives n another value",
    ),
}


@pytest.mark.parametrize("what", STAYS)
def test_what_has_no_functions_stays_and_says_why(what: str) -> None:
    source, reason = STAYS[what]
    result = converted(source)
    assert [reason in gap.reason for gap in result.gaps] == [True], result.gaps
    marked = result.code.replace(f"# TODO(t2j): {result.gaps[0].reason}\n", "")
    assert source.strip() in marked, "the class stays as it was"


def test_classes_that_hold_one_another_stay_together() -> None:
    source = module("self.rnn = nn.GRU(3, 4)", "return self.rnn(x)[0]").replace("Net", "Inner")
    source += "\n\n" + module("self.inner = Inner()", "return self.inner(x)")
    reasons = [gap.reason for gap in converted(source).gaps]
    assert reasons == [
        "Inner stays a class: nn.GRU has no function of its parameters yet",
        "Net stays a class: it holds Inner, which stays a class",
    ]


def test_uses_of_a_module_stay_with_a_reason_at_their_place() -> None:
    source = module("self.fc = nn.Linear(3, 4)", "return self.fc(x)")
    use = "\n\ndef train(model, x):\n    optimizer = torch.optim.Adam(model.parameters())\n"
    use += "    model(x).sum().backward()\n"
    use += "\n\nmodel = Net()\ntrain(model, torch.ones(2, 3))\n"
    result = converted(source + use)
    assert convert(result.code, target="jax", helpers="import").code == result.code
    assert use.partition("def train")[2].partition("\n\n\n")[0] in result.code
    lines = (HEAD + textwrap.dedent(source + use)).splitlines()
    places = {lines[gap.span.line - 1].strip(): gap.reason for gap in result.gaps}
    assert places["model = Net()"] == "Net is the functions init_net and net: call them here"
    assert "training code" in places["optimizer = torch.optim.Adam(model.parameters())"]


def test_what_calls_training_code_stays_with_it() -> None:
    source = (
        HEAD
        + """

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(x)


def train(steps):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(3, 4)).sum().backward()
        optimizer.step()
    torch.save(model.state_dict(), "net.pt")


def main():
    train(3)


def double(x):
    return 2 * torch.sin(x)


if __name__ == "__main__":
    main()
"""
    )
    result = convert(source, target="jax", helpers="import")
    assert [gap.reason for gap in result.gaps] == [
        "Net is the functions init_net and net: call them here",
        "train stays as it is, and is used here",
        "main stays as it is, and is used here",
    ]
    assert "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)" in result.code
    assert "\n    main()\n" in result.code and "rngs" not in result.code
    assert "2 * jnp.sin(x)" in result.code
    again = convert(result.code, target="jax", helpers="import")
    assert again.code == result.code


def test_findings_and_lines_are_those_of_the_source() -> None:
    source = module("self.fc = nn.Linear(3, 4)", "y = self.fc(x)\nreturn torch.bincount(y.long())")
    text = HEAD + source
    result = convert(text, target="jax")
    lines, code = text.splitlines(), result.code.splitlines()
    names = {
        lines[e.source_line - 1].strip(): code[e.line - 1].strip()
        for e in result.source_map
        if e.source_line == e.source_end_line
    }
    assert names["self.fc = nn.Linear(3, 4)"] == 'params["fc"] = init_dense(key, 3, 4)'
    assert names["y = self.fc(x)"] == 'y = dense(params["fc"], x)'
    for finding in result.findings:
        assert "bincount" in lines[finding.span.line - 1]
    rebuilt, position = "", 0
    for edit in result.edits:
        rebuilt += text[position : edit.start] + edit.new
        position = edit.end
    assert rebuilt + text[position:] == result.code
