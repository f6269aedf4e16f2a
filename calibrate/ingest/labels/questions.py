"""How other tools' projects may name the question for a verdict, for kinds, for a note."""

from __future__ import annotations

from typing import Any

from calibrate.types import VERDICTS

VERDICT_NAMES = frozenset(("verdict", "label", "hallucination"))
KINDS_NAMES = frozenset(("kinds", "kind"))
NOTE_NAMES = frozenset(("note", "comment", "explanation"))


def is_verdict(value: Any) -> bool:
    return isinstance(value, str) and value.strip().lower() in VERDICTS
