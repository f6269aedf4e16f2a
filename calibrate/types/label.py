"""Labels, and gold: the verdict that counts on a trace."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Verdict = Literal["clean", "hallucinated", "unsure"]
VERDICTS: tuple[Verdict, ...] = ("clean", "hallucinated", "unsure")
GoldVerdict = Literal["clean", "hallucinated", "unsure", "disputed"]
KINDS = ("fabrication", "contradiction", "extrapolation", "wrong_citation", "broken_contract", "other")


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the answer, in code points: answer[start:end]."""

    start: int
    end: int
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class Label:
    """One labeller's verdict on one trace. Append-only: the latest of a labeller counts. One that `adjudicates` decides
    gold, whatever others say. `guide` is the version of the labelling guide it was given under; None: nobody knows."""

    trace_id: str
    labeller: str
    verdict: Verdict
    kinds: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    note: str | None = None
    seconds: float | None = None
    created_at: datetime | None = None
    sample: str | None = None
    adjudicates: bool = False
    guide: int | None = None


def resolve_gold(latest: Iterable[Verdict], *, adjudicated: Verdict | None = None) -> GoldVerdict | None:
    """Agreement decides; `unsure` gives way to a definite verdict; two definite verdicts that differ are disputed.
    Where somebody has adjudicated, the latest adjudication decides, whatever is said besides, before or after it.

    >>> resolve_gold(["clean", "unsure"]), resolve_gold(["clean", "hallucinated"]), resolve_gold([])
    ('clean', 'disputed', None)
    >>> resolve_gold(["clean", "hallucinated"], adjudicated="hallucinated")
    'hallucinated'
    """
    if adjudicated is not None:
        return adjudicated
    verdicts = set(latest)
    definite = verdicts - {"unsure"}
    if len(definite) > 1:
        return "disputed"
    if definite:
        return definite.pop()
    return "unsure" if verdicts else None
