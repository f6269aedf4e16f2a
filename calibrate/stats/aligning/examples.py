"""Which labelled traces a judge's prompt quotes: hard ones, unlike each other, of both verdicts, no two of a group."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrate.errors import BadInput
from calibrate.stats.sweep.design import Bools, Floats

UNSURE = 0.5  # how hard a trace is that the judge could not score
HARDER = 0.5  # of each verdict, the share that is looked at


def hardness(labels: Bools, suspicion: Floats) -> Floats:
    """How far a judge is from the verdicts of people.

    Parameters
    ----------
    labels : array of bool, shape (labels,)
        True for hallucinated.
    suspicion : array of float, shape (labels,)
        The judge's scores, 0 (supported) to 1 (hallucinated); NaN where it has none.

    Returns
    -------
    array of float, shape (labels,)
        0 where it is surely right, 1 where it is surely wrong, 0.5 where it is unsure or has no score.
    """
    off = np.abs(np.asarray(suspicion, dtype=np.float64) - np.asarray(labels, dtype=bool))
    return np.where(np.isnan(off), UNSURE, off)


def choose_examples(
    labels: ArrayLike,
    vectors: ArrayLike,
    hard: ArrayLike,
    *,
    most: int,
    groups: Sequence[Hashable] | None = None,
) -> NDArray[np.int64]:
    """Choose labelled traces for a prompt.

    The verdicts take turns, hallucinated first. Of each verdict the harder half is looked at, and at least `most`
    traces. The first is the hardest; each further one is the furthest from those chosen so far (farthest-first, within
    twice the best radius of a k-center), the harder of two that are as far. A group gives one trace at most.

    Parameters
    ----------
    labels : array of bool, shape (labels,)
        True for hallucinated.
    vectors : array of float, shape (labels, dimensions)
        Embeddings; distances are one minus the cosine.
    hard : array of float, shape (labels,)
        How hard each trace is, as `hardness` has it.
    most : int
        How many at most, 0 or more.
    groups : sequence of hashable, optional
        The sources that a trace shares with others, None for a trace on its own; default: none shares any.

    Returns
    -------
    array of int, shape (chosen,)
        Places of the chosen traces in the order chosen. The verdicts differ by one at most, so that there are fewer
        than `most` where one verdict has few.

    Raises
    ------
    BadInput
        For lengths that differ, and for a negative number.

    References
    ----------
    Gonzalez, Theoretical Computer Science 38 (1985).
    """
    y, each, off = np.asarray(labels, dtype=bool), _unit(vectors), np.asarray(hard, dtype=np.float64)
    if not len(y) == len(each) == len(off) or (groups is not None and len(groups) != len(y)):
        raise BadInput(f"{len(y)} labels, {len(each)} embeddings and {len(off)} errors: give one of each per label")
    if most < 0:
        raise BadInput(f"{most} examples cannot be chosen: ask for 0 or more")
    group = _codes(groups, len(y))
    open_ = np.zeros(len(y), dtype=bool)
    for verdict in (True, False):
        rows = np.flatnonzero(y == verdict)
        harder = rows[np.argsort(-off[rows], kind="stable")]
        open_[harder[: max(most, int(np.ceil(HARDER * len(rows))))]] = True
    chosen: list[int] = []
    nearest = np.full(len(y), np.inf)  # distance to the chosen trace that is nearest
    for turn in range(most):
        rows = np.flatnonzero(open_ & (y == (turn % 2 == 0)))
        if not len(rows):
            break
        far = nearest[rows]
        best = rows[np.lexsort((rows, -off[rows], -np.round(far, 12)))[0]]
        chosen.append(int(best))
        nearest = np.minimum(nearest, 1 - each @ each[best])
        open_ &= group != group[best]
    return np.array(chosen, dtype=np.int64)


def _unit(vectors: ArrayLike) -> Floats:
    rows = np.atleast_2d(np.asarray(vectors, dtype=np.float64))
    if rows.size == 0:
        return rows.reshape(len(rows) if rows.shape[-1] else 0, -1)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0))


def _codes(groups: Sequence[Hashable] | None, n: int) -> NDArray[np.int64]:
    numbers: dict[Hashable, int] = {}
    keys = [("", i) if groups is None or groups[i] is None else ("g", groups[i]) for i in range(n)]
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
