"""Gold: the verdict that counts on a trace, given every labeller's latest label and the adjudication."""

from __future__ import annotations

from collections.abc import Iterable

from calibrate.types import GoldVerdict, Verdict


def resolve(latest: Iterable[Verdict], *, adjudicated: Verdict | None = None) -> GoldVerdict | None:
    """Agreement decides; `unsure` gives way to a definite verdict; two definite verdicts that differ are disputed.
    Where somebody has adjudicated, the latest adjudication decides, whatever is said besides, before or after it.

    >>> resolve(["clean", "unsure"]), resolve(["clean", "hallucinated"]), resolve(["unsure"]), resolve([])
    ('clean', 'disputed', 'unsure', None)
    >>> resolve(["clean", "hallucinated"], adjudicated="hallucinated")
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
