"""Gold: the verdict that counts on a trace, given every labeller's latest label."""

from __future__ import annotations

from collections.abc import Iterable

from calibrate.types import GoldVerdict, Verdict


def resolve(latest: Iterable[Verdict]) -> GoldVerdict | None:
    """Agreement decides; `unsure` gives way to a definite verdict; two definite verdicts that differ are disputed.

    >>> resolve(["clean", "unsure"]), resolve(["clean", "hallucinated"]), resolve(["unsure"]), resolve([])
    ('clean', 'disputed', 'unsure', None)
    """
    verdicts = set(latest)
    definite = verdicts - {"unsure"}
    if len(definite) > 1:
        return "disputed"
    if definite:
        return definite.pop()
    return "unsure" if verdicts else None
