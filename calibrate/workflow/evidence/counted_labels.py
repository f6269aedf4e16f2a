"""Which labels count for figures: of a sample, the unbroken prefix of its queue.

Members are in random order, so those from the first up to the first without a verdict are a random part of the sample,
whoever labelled them and why. What lies behind that gap waits: labels that were imported, or that people gave because a
trace stood out, and whatever comes after a skipped trace would make the sample look like what they were chosen for.
A skip is no verdict; unsure is one, and so is a dispute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calibrate.stats.sampling.designs import count_prefix
from calibrate.types import Sample
from calibrate.workflow.evidence import merging
from db import Store
from db.scores import Config, Row

NOBODY = Config(0, "", "", {}, "")  # no detector is asked: the labels alone
DEFINITE = ("clean", "hallucinated")


@dataclass(frozen=True)
class CountedLabels:
    """The labels that figures are made from, beside one configuration's scores, in labelling order.

    `rows` have a definite gold verdict. `undecided` are unsure or disputed: they hold their place in the draw, and are
    in no figure. `waiting` labels lie behind a member without a verdict and do not count yet.
    """

    rows: tuple[Row, ...]
    undecided: tuple[Row, ...] = ()
    waiting: int = 0


def count_labels(store: Store, config: Config, sample: Sample | None) -> CountedLabels:
    """The labels that count of a sample, or of several merged; None stands for every label there is."""
    if sample is None:
        return _sort_out(store.scores.labelled(config.id), 0)
    prefixes, waiting = [], 0
    for part in sample.parts or (sample,):
        members = store.scores.members(config.id, part.id)
        prefix = take_prefix(members)
        waiting += sum(row.gold is not None for row in members[len(prefix) :])
        prefixes.append((part, prefix))
    if not sample.parts:
        return _sort_out(prefixes[0][1], waiting)
    return _sort_out(merging.merge_repeats(merging.share_out(store, prefixes)), waiting)


def take_prefix(members: Sequence[Row]) -> list[Row]:
    """The members of a sample, in labelling order, up to the first without a verdict."""
    return list(members[: count_prefix([row.gold for row in members])])


def _sort_out(rows: Sequence[Row], waiting: int) -> CountedLabels:
    definite = tuple(row for row in rows if row.gold in DEFINITE)
    return CountedLabels(definite, tuple(row for row in rows if row.gold not in DEFINITE), waiting)
