"""Hidden repeats: a few traces come to their labeller once more, to see how far people agree with themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from calibrate.errors import BadInput
from calibrate.stats.intervals.binomial_intervals import wilson
from calibrate.types import VERDICTS, Interval, Sample
from db import Store

SHARE = 0.03  # of a labeller's own traces
GAP = 20  # labels in between: who remembers the answer repeats the verdict, not the judgement
SECOND = -1  # stands for the key of a second verdict, which is no label


@dataclass(frozen=True, slots=True)
class SelfAgreement:
    """How often somebody said the same of a trace twice, of `traces` with two definite verdicts; `unsure` counts those
    with one that is not."""

    labeller: str
    traces: int
    same: Interval
    unsure: int


def hand_out(store: Store, sample: Sample, labeller: str, *, held: Collection[int] = (), now: datetime) -> list[int]:
    """The key of a trace that comes to its labeller again now, unannounced; none where none is due."""
    pk = store.repeats.hand_out(sample.id, labeller, share=SHARE, gap=GAP, held=held, now=now)
    return [] if pk is None else [pk]


def take(store: Store, labeller: str, pk: int, verdict: object, *, changes: bool = False, now: datetime) -> bool:
    """Keep a second verdict; False where the trace did not come again, so that the verdict is a label. `changes`: the
    labeller has seen that it was kept, and says otherwise. Raises BadInput for what is no verdict."""
    if verdict != "skip" and verdict not in VERDICTS:
        raise BadInput(f"a verdict is one of {', '.join(VERDICTS)}, not {str(verdict)[:40]!r}")
    chosen = next((each for each in VERDICTS if each == verdict), None)
    return store.repeats.answer(labeller, pk, chosen, again=changes, now=now)


def self_agreement(store: Store, sample: Sample | None = None) -> tuple[SelfAgreement, ...]:
    """How far each labeller agrees with themselves, with 95% intervals, in the order of their names."""
    pairs: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for repeat in store.repeats.answered(sample.id if sample else None):
        pairs[repeat.labeller].append((repeat.before, repeat.again))
    figures = []
    for who, both in sorted(pairs.items()):
        definite = [first == second for first, second in both if "unsure" not in (first, second)]
        same = Interval(None)
        if definite:
            share = float(np.mean(definite))
            reach = wilson(np.array([share]), np.array([float(len(definite))]))
            same = Interval(share, float(reach.low[0]), float(reach.high[0]))
        figures.append(SelfAgreement(who, len(definite), same, len(both) - len(definite)))
    return tuple(figures)
