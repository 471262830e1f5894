"""The model lane: models are asked for what the rules refuse, and a check of both programs decides.

``repair`` asks for a file, ``repair_async`` does so in an event loop, ``repair_translation`` takes a conversion and
a judge of your own, ``prompt`` says what would be sent. The openai package is imported when a model is asked.
"""

from .dialogue import Dialogue, Turn
from .drafts import Budget, Draft, Repair
from .files import prompt, repair, repair_async
from .judging import Judge
from .model import Endpoint, ModelError
from .prompts import Prompt, Style
from .repair import repair_async as repair_translation

__all__ = [
    "Budget", "Dialogue", "Draft", "Endpoint", "Judge", "ModelError", "Prompt", "Repair", "Style", "Turn", "prompt",
    "repair", "repair_async", "repair_translation",
]  # fmt: skip
