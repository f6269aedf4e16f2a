"""Which labels count for figures: of a sample, the unbroken prefix of its queue.

Members are in random order, so those from the first up to the first without a verdict are a random part of the sample,
whoever labelled them and why. What lies behind that gap waits: labels that were imported, or that people gave because a
trace stood out, and whatever comes after a skipped trace would make the sample look like what they were chosen for.
A skip is no verdict; unsure is one, and so is a dispute.

Labels that fitted a detector flatter it, so they do not count for it: the rest of a queue in random order is as random.

Labels that were set aside for a judge's prompt count no more, for any detector (docs/adr/0027): the judge has read what
people say of them. They were dealt out at random, so the others of the sample stay a random part of it.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from calibrate.stats.sampling.designs import count_prefix
from calibrate.types import Sample
from calibrate.workflow.detection.team_workspace import labels_behind, shorten
from calibrate.workflow.evidence import merging
from db import Store
from db.scores import Config, Row

NOBODY = Config(0, "", "", {}, "")  # no detector is asked: the labels alone
DEFINITE = ("clean", "hallucinated")


@dataclass(frozen=True)
class CountedLabels:
    """The labels that figures are made from, beside one configuration's scores, in labelling order.

    `rows` have a definite gold verdict. `undecided` are unsure or disputed: they hold their place in the draw, and are
    in no figure. `waiting` labels lie behind a member without a verdict and do not count yet. `fitted` labels were what
    this detector was fitted to: they never count for it. `in_prompts` were set aside for a judge's prompt.
    """

    rows: tuple[Row, ...]
    undecided: tuple[Row, ...] = ()
    waiting: int = 0
    fitted: int = 0
    in_prompts: int = 0


def count_labels(store: Store, config: Config, sample: Sample | None) -> CountedLabels:
    """The labels that count of a sample, or of several merged; None stands for every label there is."""
    behind = labels_behind(store, config.name, config.revision)
    aside = store.prompt_examples.set_aside()
    if sample is None:
        every = store.scores.labelled(config.id)
        left = [row for row in every if row.pk not in aside]
        return replace(_sort_out(left, 0, behind), in_prompts=len(every) - len(left))
    prefixes, waiting = [], 0
    for part in sample.parts or (sample,):
        members = store.scores.members(config.id, part.id)
        prefix = take_prefix(members)
        waiting += sum(row.gold is not None for row in members[len(prefix) :])
        prefixes.append((part, prefix))
    if not sample.parts:
        left = [row for row in prefixes[0][1] if row.pk not in aside]
        return replace(_sort_out(left, waiting, behind), in_prompts=len(prefixes[0][1]) - len(left))
    parts = [(part, [row for row in prefix if row.pk not in aside]) for part, prefix in prefixes]
    counted = _sort_out(merging.merge_repeats(merging.share_out(store, parts)), waiting, behind)
    return replace(counted, in_prompts=len(aside & {row.pk for _, prefix in prefixes for row in prefix}))


def without_set_aside(store: Store, rows: Sequence[Row]) -> list[Row]:
    """The rows whose labels were not set aside for a judge's prompt."""
    aside = store.prompt_examples.set_aside()
    return [row for row in rows if row.pk not in aside]


def take_prefix(members: Sequence[Row]) -> list[Row]:
    """The members of a sample, in labelling order, up to the first without a verdict."""
    return list(members[: count_prefix([row.gold for row in members])])


def _sort_out(rows: Sequence[Row], waiting: int, behind: Set[str]) -> CountedLabels:
    fresh = [row for row in rows if shorten(row.content_hash) not in behind] if behind else rows
    definite = tuple(row for row in fresh if row.gold in DEFINITE)
    undecided = tuple(row for row in fresh if row.gold not in DEFINITE)
    return CountedLabels(definite, undecided, waiting, len(rows) - len(fresh))
