"""Samples in the store: members in labelling order, extended by all or nothing."""

from __future__ import annotations

import pytest

from calibrate.errors import BadInput
from calibrate.types import Member, Sample, SampleOptions, TraceFilter
from db import Store
from db.samples import MemberLine
from tests.db.make import NOW, label, records


@pytest.fixture
def sample(store: Store) -> Sample:
    """Members 7, 2 and 9 of ten traces, in two strata."""
    store.traces.add(records(10), labels_as=None, now=NOW)
    members = [Member(7, 0.5, "a"), Member(2, 0.25, "b"), Member(9, 0.5, "a")]
    return store.samples.add(
        "w", design="random", by="model", seed=2**40, pool=8, undated=0, where=TraceFilter(models=("a",)),
        strata={"a": (4, 2), "b": (4, 1)}, members=members, now=NOW, options=SampleOptions(fresh=True),
    )  # fmt: skip


def test_a_sample_comes_back_whole_and_its_name_is_taken_once(store: Store, sample: Sample) -> None:
    assert (sample.seed, sample.filter, sample.options) == (
        2**40,
        TraceFilter(models=("a",)),
        SampleOptions(fresh=True),
    )
    assert sample.strata == {"a": (4, 2), "b": (4, 1)}
    with pytest.raises(BadInput, match="there is a sample 'w'"):
        store.samples.add(
            "w", design="random", by=None, seed=1, pool=10, undated=0, where=TraceFilter(), strata={},
            members=[], now=NOW,
        )  # fmt: skip
    assert store.samples.get("w") == sample
    assert store.samples.list() == [sample]
    assert [member.trace_pk for member in store.samples.members(sample.id)] == [7, 2, 9]
    assert [store.samples.at(sample.id, position) for position in (0, 2, 3)] == [7, 9, None]
    hashes = dict(next(store.traces.keys(TraceFilter())))
    assert list(store.samples.keys(sample.id)) == [(pk, hashes[pk]) for pk in (7, 2, 9)]


def test_members_are_listed_with_their_gold(store: Store, sample: Sample) -> None:
    for pk, verdict in ((7, "clean"), (9, "clean"), (2, "hallucinated"), (3, "clean")):
        store.labels.add(pk, label(verdict), sample_id=None, now=NOW)
    assert list(store.samples.lines(sample.id))[1] == MemberLine("t2", "b", 0.25, "hallucinated")


def test_further_members_come_last_and_all_have_the_new_chances(store: Store, sample: Sample) -> None:
    strata = {"a": (4, 3), "b": (4, 1)}
    larger = store.samples.extend(sample, [Member(1, 0.75, "a")], strata=strata, options=SampleOptions(fresh=False))
    assert (larger.size, larger.strata, larger.options) == (4, strata, SampleOptions(fresh=False))
    members = [(member.trace_pk, member.inclusion_probability) for member in store.samples.members(sample.id)]
    assert members == [(7, 0.75), (2, 0.25), (9, 0.75), (1, 0.75)]
    with pytest.raises(BadInput, match="somebody topped up 'w'"):
        store.samples.extend(sample, [Member(3, 0.75, "a")], strata=strata, options=SampleOptions())
    assert store.samples.get("w") == larger
