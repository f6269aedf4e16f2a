"""What a thresholds file says against its own thresholds, in sentences. Light to import: production says it, too."""

from __future__ import annotations

from collections.abc import Iterable

from calibrate.sanitize import one_line
from calibrate.thresholds.states import Judged


def cautions(judged: Iterable[Judged]) -> list[str]:
    """Say of each threshold that is known to be bad that it went out all the same, and for what reason."""
    return [_caution(each) for each in judged if each.state.known_bad]


def _caution(judged: Judged) -> str:
    given = f"for this reason: {one_line(judged.reason, 200)}" if judged.reason else "and no reason was given"
    why = f" ({judged.state.why})" if judged.state.why else ""
    return f"{one_line(judged.name, 80)}: when it was released, its state was do not release{why}; it is out {given}"
