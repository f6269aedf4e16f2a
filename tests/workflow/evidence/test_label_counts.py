"""What is said of labels: those up to the first gap count, the rest waits, and nothing undecided is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from calibrate.report.sentences.labelling import labels as sentences
from calibrate.types import Label, TraceFilter, Verdict
from calibrate.workflow.evidence import basis
from calibrate.workflow.evidence.label_counts import Gap, LabelCounts, find_gap, label_counts
from calibrate.workflow.labelling.agreement import adjudicate
from calibrate.workflow.sampling import sample as sampling
from db import Store
from tests.workflow.making import NOW, fill, keep_sample

Given = Sequence[Verdict]  # by each of several labellers; none, and the trace is a gap


def keep(store: Store, verdicts: Sequence[Given], *, name: str = "w47") -> None:
    """A sample of t0, t1 … with these verdicts."""
    fill(store, [None] * len(verdicts), [0.5] * len(verdicts))
    keep_sample(store, ["all"] * len(verdicts), {"all": 100}, name=name)
    for place, each in enumerate(verdicts):
        for who, verdict in zip(("ann", "ben"), each, strict=False):
            give(store, place, verdict, who)


def give(store: Store, place: int, verdict: Verdict, who: str = "ann") -> None:
    pk = store.traces.find(f"t{place}")
    assert pk is not None
    store.labels.add(pk, Label("", who, verdict), sample_id=None, now=NOW)


def counts(store: Store, *names: str) -> LabelCounts:
    return label_counts(store, basis.resolve_sample(store, names))


DISPUTE: Given = ("clean", "hallucinated")


@pytest.mark.both_databases
def test_labels_behind_the_first_gap_wait(store: Store) -> None:
    keep(store, [["clean"], ["unsure"], DISPUTE, ["hallucinated"], [], ["clean"], DISPUTE, []])
    assert counts(store, "w47") == LabelCounts(4, 8, clean=1, hallucinated=1, unsure=1, disputed=1, waiting=2)
    give(store, 4, "unsure")  # is a verdict
    assert counts(store, "w47") == LabelCounts(7, 8, clean=2, hallucinated=1, unsure=2, disputed=2, waiting=0)


def test_a_skip_is_a_gap(store: Store) -> None:
    keep(store, [[], ["clean"], ["clean"]])
    sample = store.samples.list()[0]
    store.labels.skip(store.samples.members(sample.id)[0].trace_pk, sample_id=sample.id, labeller="ann", now=NOW)
    assert counts(store, "w47") == LabelCounts(0, 3, 0, 0, 0, 0, waiting=2)


def test_a_gap_is_what_nobody_labelled_before_the_last_label(store: Store) -> None:
    keep(store, [("clean",), (), ("clean",), (), ("unsure",), ()])
    sample = store.samples.get("w47")
    assert sample is not None
    assert find_gap(store, sample) == Gap(skipped=2, waiting=2)
    assert sentences.held_back(Gap(3, 57)) == "3 skipped traces hold back 57 labels"
    give(store, 1, "clean")
    assert find_gap(store, sample) == Gap(1, 1)
    give(store, 3, "unsure")
    assert find_gap(store, sample) is None


def test_a_settled_dispute_is_a_label_like_any(store: Store) -> None:
    keep(store, [["clean"], DISPUTE])
    pk = store.traces.find("t1")
    assert pk is not None
    adjudicate(store, pk, "hallucinated", by="lead", now=NOW)
    assert counts(store, "w47") == LabelCounts(2, 2, 1, 1, 0, 0, 0)


def test_without_a_sample_every_label_counts(store: Store) -> None:
    keep(store, [["clean"], [], DISPUTE])
    assert counts(store) == LabelCounts(2, 3, clean=1, hallucinated=0, unsure=0, disputed=1, waiting=0)


def test_a_trace_of_two_samples_is_one_trace(store: Store) -> None:
    """It counts where it counts in one of them, though it waits in the other."""
    keep(store, [["clean"], [], ["hallucinated"], ["clean"]])
    third = TraceFilter(since=NOW - timedelta(hours=2, minutes=30), until=NOW - timedelta(minutes=90))
    sampling.draw(store, "w48", size=1, design="random", by=None, where=third, seed=1, now=NOW)
    assert counts(store, "w47") == LabelCounts(1, 4, 1, 0, 0, 0, waiting=2)
    assert counts(store, "w48") == LabelCounts(1, 1, 0, 1, 0, 0, waiting=0)  # t2 alone
    assert counts(store, "w47", "w48") == LabelCounts(2, 4, 1, 1, 0, 0, waiting=1)


ANY: list[Given] = [["clean"], ["hallucinated"], ["unsure"], DISPUTE, ("unsure", "clean")]


def test_every_verdict_is_counted_or_waits(store: Store) -> None:
    rng = np.random.default_rng(3)
    verdicts = [ANY[rng.integers(len(ANY))] if place not in (31, 44) else [] for place in range(60)]
    keep(store, verdicts)
    result = counts(store, "w47")
    assert (result.labelled, result.waiting, result.total) == (31, 27, 60)
    assert result.disputed == verdicts[:31].count(DISPUTE)
    assert result.clean + result.hallucinated + result.undecided == 31


FEW = LabelCounts(80, 80, 58, 3, 0, 19, 0)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (FEW, "80 of 80 labelled · 19 disputed"),
        (replace(FEW, unsure=1, disputed=0), "80 of 80 labelled · 1 unsure"),
        (replace(FEW, labelled=1_080, total=2_000, unsure=2), "1,080 of 2,000 labelled · 2 unsure · 19 disputed"),
        (replace(FEW, disputed=0), "80 of 80 labelled"),
        (LabelCounts(0, 0, 0, 0, 0, 0, 0), "0 of 0 labelled"),
    ],
)
def test_parts_that_are_zero_are_left_out(result: LabelCounts, words: str) -> None:
    assert sentences.labelled(result) == words


def test_what_waits_says_what_to_do() -> None:
    assert sentences.waiting(FEW) is None
    several = sentences.waiting(replace(FEW, waiting=12)) or ""
    assert several.startswith("12 labels wait behind a trace that nobody has labelled: they count once")
    assert (sentences.waiting(replace(FEW, waiting=1)) or "").startswith("1 label waits behind")
