"""Hidden repeats: a trace comes again after a gap, and what is said then is no label and in no figure."""

from __future__ import annotations

import pytest

from calibrate.report.sentences.labelling import agreement as sentences
from calibrate.types import Sample
from calibrate.workflow.labelling import repeats
from db import Store
from tests.workflow.labelling.test_assignment import NOW, draw, say

N = 400


@pytest.mark.both_databases
def test_a_few_come_again_after_a_gap_and_change_no_label(store: Store) -> None:
    sample = draw(store, N)
    asked: dict[int, int] = {}
    for n in range(1, N + 1):
        say(store, sample, n, "ann")
        if n % 5:
            continue
        for pk in repeats.hand_out(store, sample, "ann", now=NOW):
            assert pk not in asked, "each comes once"
            assert n - pk >= repeats.GAP
            assert repeats.hand_out(store, sample, "ann", now=NOW) == [pk], "asked again, it is the same one"
            assert repeats.hand_out(store, sample, "ann", held=[pk], now=NOW) == []
            asked[pk] = n
            assert repeats.take(store, "ann", pk, "hallucinated" if len(asked) == 1 else "clean", now=NOW)
    assert 2 <= len(asked) <= 25  # 3% of 380: 11, within four standard deviations
    assert repeats.hand_out(store, sample, "bob", now=NOW) == [], "nobody else's"
    labels = list(store.labels.export(sample.id))
    assert (len(labels), {label.verdict for label in labels}) == (N, {"clean"})
    assert store.labels.gold_counts() == {"clean": N}
    (own,) = repeats.self_agreement(store, sample)
    assert (own.labeller, own.traces, own.unsure) == ("ann", len(asked), 0)
    assert own.same.value == pytest.approx(1 - 1 / len(asked))
    assert own.same.low is not None
    assert own.same.low < own.same.value < 1
    assert f"{len(asked) - 1} of {len(asked)} traces that came again" in sentences.self_agreement(own)


def labelled(store: Store) -> Sample:
    sample = draw(store, N)
    for n in range(1, 300):
        say(store, sample, n, "ann")
    return sample


def test_a_reply_that_was_lost_and_a_change_of_mind_stay_with_the_repeat(store: Store) -> None:
    sample = labelled(store)
    (pk,) = repeats.hand_out(store, sample, "ann", now=NOW)
    other = next(n for n in range(1, 300) if n != pk)
    assert not repeats.take(store, "ann", other, "clean", now=NOW), "it did not come again"
    assert not repeats.take(store, "bob", pk, "clean", now=NOW), "nor to bob"
    assert repeats.take(store, "ann", pk, "unsure", now=NOW)
    assert repeats.take(store, "ann", pk, "unsure", now=NOW), "sent again"
    assert repeats.take(store, "ann", pk, "hallucinated", changes=True, now=NOW)
    assert [repeat.again for repeat in store.repeats.answered()] == ["hallucinated"]
    (skipped,) = repeats.hand_out(store, sample, "ann", now=NOW)
    assert repeats.take(store, "ann", skipped, "skip", now=NOW)
    assert len(store.repeats.answered()) == 1
    assert [label.verdict for label in store.labels.of_trace(pk)] == ["clean"]
