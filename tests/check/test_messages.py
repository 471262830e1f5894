"""Workers' answers cross as plain data and are the same values again."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from t2j_lsp.check.crossing import Message
from t2j_lsp.check.inputs import Arguments, ArraySpec, Code
from t2j_lsp.check.messages import (
    DrawProblem,
    Failure,
    GenerateCall,
    HalfCast,
    JaxGenerated,
    JaxObserved,
    Prepared,
    RecordedDraw,
    StatementSite,
    TorchGenerated,
    TorchObserved,
    TorchTrained,
    Traced,
    TraceEvent,
    TrainingReference,
)
from t2j_lsp.check.program.slice import Slice, SlicedModule
from t2j_lsp.check.protocol import pack, unpack
from t2j_lsp.check.requests import JaxRequest, JaxTraceRequest, ParameterPairing
from t2j_lsp.contract import ChannelsLast

FAILURE = Failure("ValueError", ["ValueError", "Exception"], "no", [("/a.py", 3, "f")])
DRAW = DrawProblem("reuse", "twice", [("/a.py", 4, "g")])
DRAWN = RecordedDraw("uniform", np.float64(0.5))  # type: ignore[arg-type]
MESSAGES: tuple[Message, ...] = (
    FAILURE,
    TorchObserved(
        state={"fc.weight": [1.0]},
        parameters={"fc.weight": True},
        observed={"eval output": [1.0, {"a": (2, None)}]},
        cotangents={},
        elements=12,
        tapes={"eval": [DRAWN]},
        halves=False,
        uncontrolled={"eval": False},
        varies=True,
        generate=TorchGenerated({"generate": [3]}, {"generate": GenerateCall(Arguments(), [DRAWN])}, []),
    ),
    JaxObserved(
        observed={"eval under jit": {"eval output": 1.0}},
        errors={"eval": FAILURE},
        draws={"eval": [DRAW]},
        seconds={"eval": 0.5},
        halves=[HalfCast("bfloat16", [("/a.py", 5, "h")])],
        first=0.25,
        paired=False,
        paired_by_order=False,
        x64=True,
        generate=JaxGenerated(draws={"generate": [DRAW]}, error=FAILURE),
    ),
    Prepared(problems=["with nothing: no"]),
    TorchTrained(
        reference=TrainingReference(
            Arguments(), {"train": []}, None, {}, True, False, False, False, 0, "fc.weight", 0, {"optimizer": "SGD"}, []
        )
    ),
    Traced([StatementSite("/a.py", 3, "f", "x", ("y",))], [TraceEvent(0, 1.0, None)], False, FAILURE),
)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: type(m).__name__)
def test_a_message_is_the_same_behind_the_border(message: Message) -> None:
    text, buffers = pack(message.to_plain())
    assert type(message).from_plain(unpack(text, b"".join(buffers))) == message


def test_arrays_are_not_copied_into_lists() -> None:
    array = np.arange(6.0).reshape(2, 3)
    reference = TrainingReference(Arguments(), {}, array, {}, True, False, False, False, 0, "", 0, {}, [])
    text, buffers = pack(reference.to_plain())
    again = TrainingReference.from_plain(unpack(text, b"".join(buffers))).target
    assert isinstance(again, np.ndarray)
    assert again.dtype == array.dtype
    assert (again == array).all()


def test_what_is_no_such_message_is_not_taken_for_one() -> None:
    with pytest.raises(KeyError, match="surplus"):
        Failure.from_plain({**FAILURE.to_plain(), "surplus": 1})
    missing = FAILURE.to_plain()
    del missing["frames"]
    with pytest.raises(TypeError, match="frames"):
        Failure.from_plain(missing)


def test_every_field_of_a_message_has_a_type_that_can_be_read() -> None:
    """What holds messages says so by a list, a dict or an option of them: nothing else is made again."""
    for message in MESSAGES:
        again = type(message).from_plain(message.to_plain())
        for field in dataclasses.fields(again):  # type: ignore[arg-type]
            assert type(getattr(again, field.name)) is type(getattr(message, field.name)), field.name


def test_a_request_is_the_same_behind_the_border() -> None:
    """With the values of its own that are in it, as the worker reads them by attribute."""
    part = Slice("m", "Net", (SlicedModule("m", "/m.py", "x = 1\n", ((0, None),)),))
    call = GenerateCall(Arguments([ArraySpec("int64", (2, 3))]), [DRAWN])
    request = JaxRequest(
        slice=part,
        wide=True,
        init=Arguments([Code("nn.ReLU()")], {"bias": True}),
        inputs=Arguments([[1, (2, 3.5)]]),
        variants={"eval output (batch of 1)": Arguments([ArraySpec("float32", (1, 3))])},
        pairing=ParameterPairing(True, ["init"], {"w": "fc.weight"}, layout=ChannelsLast(2, ("x",), True)),
        generate={"generate": call},
    )
    text, buffers = pack(request.to_plain())
    assert JaxRequest.from_plain(unpack(text, b"".join(buffers))) == request
    trace = request.as_a(JaxTraceRequest, mode="eval", construct=False, wide=False)
    assert (trace.slice, trace.wide, trace.variants, trace.mode) == (part, False, request.variants, "eval")
