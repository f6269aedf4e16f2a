"""What a detector found in the sentences of an answer, as a few numbers: what the head of `learned` reads."""

from __future__ import annotations

import math

from calibrate.orientation import flags, suspicion
from calibrate.types import FlagWhen, Score

STATISTICS = ("answer", "worst", "worst_two", "mean", "share")
"""The answer's own score; of the values of its sentences the most suspicious one, the mean of the two most suspicious,
the mean of all, and the share of them on the suspicious side of the detector's usual threshold."""


def sentence_statistics(score: Score, *, flag_when: FlagWhen, usual: float) -> tuple[float, ...] | None:
    """The STATISTICS of a score, in the detector's units; None without a score.

    A sentence's value is a piece of evidence about a place of the answer. Where there is none, the answer's score
    stands for its one sentence: most detectors list only sentences that lack something.
    """
    if score.value is None or not math.isfinite(score.value):
        return None
    located = [piece.value for piece in score.evidence if piece.value is not None and piece.start is not None]
    values = sorted(
        (value for value in located if math.isfinite(value)), key=lambda value: -suspicion(value, flag_when)
    ) or [score.value]
    two = values[:2]
    suspicious = sum(flags(value, usual, flag_when) for value in values)
    return (
        score.value,
        values[0],
        math.fsum(two) / len(two),
        math.fsum(values) / len(values),
        suspicious / len(values),
    )
