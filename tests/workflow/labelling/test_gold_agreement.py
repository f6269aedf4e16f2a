"""Each labeller against gold: only where somebody else stands for it, and plainly where there is nothing yet."""

from __future__ import annotations

import pytest
from scipy.stats import binomtest

from calibrate.cli import main
from calibrate.report.sentences.labelling import agreement as sentences
from calibrate.workflow.labelling import agreement as step
from calibrate.workflow.labelling.gold_agreement import GoldAgreement, gold_agreement
from db import Store
from tests.workflow.labelling.test_agreement import key, say
from tests.workflow.making import NOW, fill, keep_sample


def of_each(store: Store, sample: str | None = None) -> dict[str, GoldAgreement]:
    report = step.look(store, sample)
    return {each.labeller: each for each in gold_agreement(store, report.sample, report.readings)}


@pytest.mark.both_databases
def test_who_agrees_with_gold_and_who_has_no_gold_trace(store: Store) -> None:
    """ann and bob label ten traces and differ on four, two of which cy decides against ann; dora labels alone."""
    fill(store, [None] * 20, [0.5] * 20)
    for place in range(10):
        truth, other = ("hallucinated", "clean") if place < 5 else ("clean", "hallucinated")
        say(store, place, "ann", other if place in (0, 1, 5, 6) else truth)
        say(store, place, "bob", truth)
    say(store, 9, "bob", "unsure")  # his latest: ann stands alone there
    for place in (0, 5):
        step.adjudicate(store, key(store, place), "hallucinated" if place == 0 else "clean", by="cy", now=NOW)
    for place in range(12, 15):
        say(store, place, "dora", "clean")
    figures = of_each(store)
    assert list(figures) == ["ann", "bob", "dora"], "who only decides is no labeller"
    ann, bob, dora = figures.values()
    # Two disputes wait, and the trace that bob is unsure of rests on ann alone.
    assert (ann.traces, ann.hallucinated, ann.missed, ann.clean, ann.false_calls, ann.unsure) == (7, 4, 1, 3, 1, 0)
    reach = binomtest(5, 7).proportion_ci(method="wilson")
    assert (ann.same.value, ann.same.low) == pytest.approx((5 / 7, reach.low))
    assert reach.high <= (ann.same.high or 0) < 1
    assert (bob.traces, bob.same.value, bob.missed, bob.false_calls, bob.unsure) == (7, 1.0, 0, 0, 1)
    assert (dora.traces, dora.same.value, dora.same.low) == (0, None, None)
    assert sentences.gold_agreement(ann) == (
        "ann says what gold says of 5 of 7 traces (36–95%): missed 1 of 4 hallucinated, called 1 of 3 clean "
        "hallucinated"
    )
    assert sentences.gold_agreement(bob).endswith(", and was unsure of 1 more")
    assert sentences.gold_agreement(dora) == "dora: no gold trace labelled yet"


def test_nobody_is_measured_against_their_own_decision(store: Store) -> None:
    fill(store, [None] * 2, [0.5] * 2)
    say(store, 0, "ann", "clean")
    say(store, 0, "bob", "hallucinated")
    step.adjudicate(store, key(store, 0), "clean", by="ann", now=NOW)
    ann, bob = of_each(store).values()
    assert (ann.traces, bob.traces, bob.missed, bob.false_calls) == (0, 1, 0, 1)


def test_a_sample_counts_its_own_traces_and_people(store: Store) -> None:
    fill(store, [None] * 6, [0.5] * 6)
    keep_sample(store, ["a", "a", "a"], {"a": 30})
    for place in (0, 4):
        say(store, place, "ann", "clean")
        say(store, place, "bob", "clean")
    say(store, 1, "cleo", "clean")
    say(store, 5, "dora", "clean")
    assert {who: each.traces for who, each in of_each(store, "w47").items()} == {"ann": 1, "bob": 1, "cleo": 0}
    assert {who: each.traces for who, each in of_each(store).items()} == {"ann": 2, "bob": 2, "cleo": 0, "dora": 0}


def test_the_command_says_it_too(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    fill(store, [None] * 3, [0.5] * 3)
    for who in ("ann", "bob"):
        say(store, 0, who, "clean")
    say(store, 1, "cleo", "clean")
    assert main(["agreement", "--store", store.url]) == 0
    text = capsys.readouterr().out
    assert "ann says what gold says of 1 of 1 trace" in text
    assert "cleo: no gold trace labelled yet" in text
