"""Scores: what a detector makes of a trace, why, and at what cost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from calibrate.types.point import FlagWhen

PURGED = "purged"
"""The reason of a score that the texts of a purged trace do not allow, and what stands where one was."""
ScoreStatus = Literal["scored", "abstained", "failed", "refusal"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What made a score, to be shown on the trace card.

    `start`/`end` are code-point offsets into the answer (None: not about one place of it). `source` is the number of
    the source compared with, `window` the offsets of the best passage in that source. `value` is in the detector's
    units. `text` is a short plain-language remark ("cites [7], but there are 3 sources").
    """

    text: str
    value: float | None = None
    start: int | None = None
    end: int | None = None
    source: str | None = None
    window: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What a score cost at a chat endpoint. `cost` is in US dollars, None where the model's price is not known; answers
    taken from the cache are counted in `cached` and cost nothing."""

    requests: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0

    def __add__(self, other: Usage) -> Usage:
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return Usage(
            self.requests + other.requests,
            self.cached + other.cached,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            cost,
        )


@dataclass(frozen=True, slots=True)
class Score:
    """A detector's raw value on a trace; None with a reason for "could not" (never 0, never NaN).

    `refusal` is the status of an answer that declines to answer: there is nothing in it to be right or wrong.
    """

    trace_id: str
    value: float | None
    reason: str | None = None
    status: ScoreStatus = "scored"
    evidence: tuple[Evidence, ...] = ()
    seconds: float = 0.0
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class StatedScore:
    """A score that was computed elsewhere: a finite value for a trace, with the reason that came along."""

    trace_id: str
    value: float
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ExternalDetector:
    """A detector whose scores are computed elsewhere and imported.

    `flag_when` is None until somebody has told which side is suspicious. `low` and `high` bound the values, None where
    nobody gave a bound. `revision` is the one that new scores belong to.
    """

    name: str
    flag_when: FlagWhen | None
    unit: str | None
    low: float | None
    high: float | None
    revision: str
    created_by: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a detector's statistic looks like on clean answers of one model: a robust centre and spread.

    `spread` is 1.4826 times the median absolute deviation (a standard deviation, for normal data). `n` answers with a
    clean gold label were used.
    """

    statistic: str
    model: str
    centre: float
    spread: float
    n: int
    fitted_at: datetime
