"""Recall by kind of error: of the hallucinations of each kind, the share that a threshold flags."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibrate.errors import BadInput
from calibrate.stats.intervals.sweep_intervals import figures
from calibrate.stats.sweep.design import Design
from calibrate.stats.sweep.sweep import sweep
from calibrate.types import FlagWhen, Interval


@dataclass(frozen=True, slots=True)
class KindRecall:
    """Recall among the hallucinations of one kind; `kind` is None for those to which nobody gave any.

    `labels` were given the kind and `flagged` of them are flagged: labels themselves, where `recall` is weighted.
    """

    kind: str | None
    labels: int
    flagged: int
    recall: Interval


def recall_by_kind(
    kinds: Sequence[Collection[str]],
    labels: ArrayLike,
    scores: ArrayLike,
    threshold: float,
    *,
    design: Design | None = None,
    groups: Sequence[Hashable] | None = None,
    flag_when: FlagWhen = "above",
) -> tuple[KindRecall, ...]:
    """Recall at a threshold among the hallucinations of each kind, end to end: a trace without a score is not flagged.

    The hallucinations of a kind are a domain of the sample, so the estimate is that of recall with the kind in place of
    the verdict, and so is its interval. A trace of several kinds counts in each; the shares are not of a whole.

    Parameters
    ----------
    kinds : sequence of collection of str, length (labels,)
        The kinds of every trace; those of a clean one are left out.
    labels : array of bool, shape (labels,)
        True for hallucinated.
    scores : array of float, shape (labels,)
        Scores in the detector's units, NaN where it has none.
    threshold : float
        In the detector's units.
    design : Design, optional
        How the labels were drawn; default: at random.
    groups : sequence of hashable, optional
        The sources that a trace shares with others; default: none shares any.
    flag_when : {"above", "below"}
        The detector's suspicious side.

    Returns
    -------
    tuple of KindRecall
        Most labels first, then by name; those without a kind last, and only where there are any.

    Raises
    ------
    BadInput
        For lengths that differ, and what `sweep` refuses.

    References
    ----------
    Särndal, Swensson and Wretman, Model Assisted Survey Sampling (1992), chapter 10: domains.
    """
    hallucinated = np.asarray(labels).astype(bool)
    if len(kinds) != len(hallucinated):
        raise BadInput(f"{len(kinds)} lists of kinds for {hallucinated.size} labels: give one per label")
    of_kind: dict[str | None, list[int]] = {}
    for row in np.flatnonzero(hallucinated).tolist():
        named: set[str | None] = set(kinds[row])
        for kind in named or {None}:
            of_kind.setdefault(kind, []).append(row)
    rows = []
    for kind in sorted(of_kind, key=lambda kind: (kind is None, -len(of_kind[kind]), kind or "")):
        domain = np.zeros(len(hallucinated), dtype=bool)
        domain[of_kind[kind]] = True
        curve = sweep(domain, scores, design=design, groups=groups, flag_when=flag_when)
        measured = figures(curve, threshold)
        rows.append(KindRecall(kind, len(of_kind[kind]), measured.true_positives, measured.recall))
    return tuple(rows)
