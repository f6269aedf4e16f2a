"""A careless second labeller: what they dispute is in sight, and so is what it could change.

The case: 80 traces, 18 of them hallucinated by gold. A second labeller gives 62 labels, 19 of them against gold and
most of those on what is hallucinated. Left out without a word, they made it "80 of 80, about 4.9% hallucinated".
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from calibrate.cli import main
from calibrate.report.sentences.labelling import labels as sentences
from calibrate.types import Label
from calibrate.workflow.evidence import loading
from calibrate.workflow.evidence.labels_at_hand import labels_at_hand
from calibrate.workflow.evidence.prevalence import estimate_prevalence
from calibrate.workflow.evidence.undecided import settled_at
from calibrate.workflow.labelling import agreement
from calibrate.workflow.week.week import week
from db import Store
from pages.week.week_steps import cards
from tests.workflow.making import DETECTOR, NOW, fill, keep_sample, save

GOLD = [place < 18 for place in range(80)]
AGAINST = [*range(15), *range(18, 22)]  # 15 of the hallucinated, 4 of the clean
AGREED = range(22, 65)
SCORES: list[float | None] = [round(0.3 + 0.005 * place, 3) for place in range(80)]  # flags below: the worst come first


@pytest.fixture
def disputed(store: Store) -> Store:
    fill(store, GOLD, SCORES)
    keep_sample(store, ["all"] * 80, {"all": 400})
    for place in (*AGAINST, *AGREED):
        verdict = "hallucinated" if GOLD[place] != (place in AGAINST) else "clean"
        store.labels.add(place + 1, Label("", "careless", verdict), sample_id=None, now=NOW)
    return store


def test_home_says_how_many_are_disputed_and_what_they_could_change(disputed: Store) -> None:
    state = week(disputed, name="2026-W47", labeller="ann", now=NOW)
    label = next(card for card in cards(state, NOW) if card.step == "label")
    assert label.headline == "80 of 80 labelled · 19 disputed"
    assert label.detail == "about 4.9% (1–14%) of the traffic hallucinated"
    assert sentences.open_ones(state.at_hand) == [
        "19 disputed are in no figure: the share hallucinated is 3.8% if all of them are clean and 28% if all are "
        "hallucinated"
    ]


def test_the_bounds_hold_what_settling_brings(disputed: Store) -> None:
    """Gold's own verdicts lie between the bounds, though not in the interval: that knows of chance alone."""
    sample = disputed.samples.list()[0]
    before = estimate_prevalence(disputed, sample)
    threshold = SCORES[20] or 0.0
    bounds = settled_at(loading.load_evidence(disputed, DETECTOR, sample="w47"), threshold)
    for place in AGAINST:
        agreement.adjudicate(disputed, place + 1, "hallucinated" if GOLD[place] else "clean", by="lead", now=NOW)
    after = estimate_prevalence(disputed, sample)
    assert after.share.value == pytest.approx(18 / 80)
    assert after.settled is None
    assert before.settled is not None
    assert bounds is not None
    assert before.settled.low < 18 / 80 < before.settled.high
    assert (before.share.high or 1.0) < 18 / 80
    figures = save(disputed, f"manual:{threshold}", sample="w47")
    assert bounds.precision is not None
    assert bounds.recall is not None
    assert bounds.precision.low <= (figures.precision.value or 0.0) <= bounds.precision.high
    assert bounds.recall.low <= (figures.recall.value or 0.0) <= bounds.recall.high
    assert settled_at(loading.load_evidence(disputed, DETECTOR, sample="w47"), threshold) is None


def test_strata_weigh_what_is_undecided(store: Store) -> None:
    """One dispute in a stratum where a label stands for 40 traces, not for 2."""
    fill(store, [False] * 8 + [True] * 2, [0.5] * 10)
    keep_sample(store, ["few"] * 5 + ["many"] * 5, {"few": 10, "many": 200})
    store.labels.add(6, Label("", "ben", "hallucinated"), sample_id=None, now=NOW)
    reach = estimate_prevalence(store, store.samples.list()[0]).settled
    assert reach is not None
    assert (reach.low, reach.high) == pytest.approx((80 / 210, 120 / 210))


VERBS = (
    ("choose", DETECTOR, "--policy", "manual:0.4"),
    ("sweep", DETECTOR),
    ("scoreboard",),
    ("compare", DETECTOR, "rouge_l"),
    ("ensemble", "k_of_n", DETECTOR, "rouge_l"),
    ("seen",),
    ("recalibrate", "--dry-run"),
)


@pytest.mark.parametrize("verb", VERBS, ids=lambda words: words[0])
def test_every_verb_that_shows_a_figure_shows_the_disputes(
    disputed: Store, sqlite_url: str, verb: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    if disputed.url != sqlite_url:
        pytest.skip("one database is enough for text")
    from tests.workflow.making import give_scores

    traces = [stored.trace for place in range(80) if (stored := disputed.traces.get(place + 1))]
    give_scores(disputed, traces, list(np.roll(SCORES, 3)), name="rouge_l")  # type: ignore[arg-type]
    if verb[0] == "recalibrate":
        from calibrate.workflow.releasing import release
        from db.releases import ReleaseRequest

        save(disputed, "manual:0.4", sample="w47")
        release.release(disputed, ReleaseRequest(by="ann"), now=NOW)
    where = ("--sample", "w47", "--store", sqlite_url)
    assert main([*verb, *where]) == 0
    assert "80 of 80 labelled · 19 disputed · about 4.9% (1–14%) of the traffic hallucinated" in capsys.readouterr().out
    assert main([*verb, *where, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    at_hand = document["evidence_of"]["w47"] if verb[0] == "compare" else document["evidence"]
    assert at_hand["counts"]["disputed"] == 19
    assert at_hand["prevalence"]["settled"] == pytest.approx({"low": 3 / 80, "high": 22 / 80})
    if verb[0] in ("sweep", "scoreboard"):  # the recall, too, may be another once they are settled
        lines = document["points"] if verb[0] == "sweep" else document["detectors"]
        reaches = [(line["recall_settled_low"], line["recall_settled_high"]) for line in lines]
        assert any(low is not None and low < high for low, high in reaches)


def test_labels_that_describe_no_traffic_give_no_share_of_it(store: Store) -> None:
    fill(store, [True] * 5 + [None] * 5, [0.5] * 10)
    at_hand = labels_at_hand(store, None)
    assert at_hand.prevalence.share.value is None
    assert sentences.facts(at_hand) == "5 of 10 labelled"


def test_labels_of_every_trace_describe_the_traffic(store: Store) -> None:
    fill(store, [True] * 5 + [False] * 5, [0.5] * 10)
    assert sentences.facts(labels_at_hand(store, None)).startswith("10 of 10 labelled · about 50% (")
