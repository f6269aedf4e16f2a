"""How far each labeller agrees with gold, where gold is not their own word alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrate.stats.intervals.binomial_intervals import wilson
from calibrate.types import Interval, Sample
from db import Store
from db.labels import Reading


@dataclass(frozen=True, slots=True)
class GoldAgreement:
    """What a labeller said of the traces whose gold verdict, clean or hallucinated, somebody else stands for as well.

    `traces` are those with a definite verdict of theirs, `same` is the share on which it is gold's. Of `hallucinated`
    traces they `missed` some, and of `clean` ones they called some hallucinated (`false_calls`). `unsure` counts those
    they were unsure of.
    """

    labeller: str
    traces: int
    same: Interval
    hallucinated: int = 0
    missed: int = 0
    clean: int = 0
    false_calls: int = 0
    unsure: int = 0


def gold_agreement(store: Store, sample: Sample | None, readings: Sequence[Reading]) -> tuple[GoldAgreement, ...]:
    """Measure each labeller against gold, in the order of their names; whoever labelled no such trace has 0 `traces`.

    `readings` are the traces of the sample, or of the store, with more than one label. Disputes that wait have no gold,
    so until they are decided the figures are too high.
    """
    people = store.labels.who_labelled(sample.id if sample else None)
    return tuple(_measure(who, [reading for reading in readings if _is_checked(reading, who)]) for who in people)


def _is_checked(reading: Reading, who: str) -> bool:
    """Whether gold tells something of this labeller: they said something, and gold does not rest on them alone."""
    if reading.gold not in ("clean", "hallucinated") or who not in reading.verdicts:
        return False
    if reading.adjudicated is not None:
        return reading.by != who
    return any(verdict != "unsure" for other, verdict in reading.verdicts.items() if other != who)


def _measure(who: str, readings: Sequence[Reading]) -> GoldAgreement:
    pairs = [(reading.verdicts[who], reading.gold) for reading in readings if reading.verdicts[who] != "unsure"]
    unsure = len(readings) - len(pairs)
    if not pairs:
        return GoldAgreement(who, 0, Interval(None), unsure=unsure)
    same = float(np.mean([mine == gold for mine, gold in pairs]))
    reach = wilson(np.array([same]), np.array([float(len(pairs))]))
    of_hallucinated = [mine for mine, gold in pairs if gold == "hallucinated"]
    of_clean = [mine for mine, gold in pairs if gold == "clean"]
    return GoldAgreement(
        who,
        len(pairs),
        Interval(same, float(reach.low[0]), float(reach.high[0])),
        hallucinated=len(of_hallucinated),
        missed=of_hallucinated.count("clean"),
        clean=len(of_clean),
        false_calls=of_clean.count("hallucinated"),
        unsure=unsure,
    )
