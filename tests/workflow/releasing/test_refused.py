"""Refusals through a run and a sweep: their own status, and in no figure."""

from __future__ import annotations

import json

import numpy as np
import pytest

from calibrate.cli import main
from calibrate.types import Label, Record, Score, Source, Trace
from calibrate.workflow.detection import detect
from calibrate.workflow.evidence import loading
from db import Store
from tests.workflow.making import DETECTOR, NOW, draw, fill, keep_sample

SAID = "I'm sorry, but I do not have that information."


def test_refusals_have_their_own_status_and_the_team_may_edit_the_list(store: Store) -> None:
    answers = ["The warranty lasts two years.", SAID, "Pets enjoy theatre.", "Computer says no."]
    traces = [Trace(f"t{n}", text, sources=(Source("1", "The warranty lasts two years."),), schema={"type": "object"})
              for n, text in enumerate(answers)]  # fmt: skip
    verdicts = ["clean", "clean", "hallucinated", "clean"]
    records = [Record(n, one, (Label(one.id, "", verdict),)) for n, (one, verdict) in  # type: ignore[arg-type]
               enumerate(zip(traces, verdicts, strict=True), 1)]  # fmt: skip
    store.traces.add(records, labels_as="gold", now=NOW)

    def run() -> dict[str, dict[str, int]]:
        finished = detect.work(store, run_id=detect.queue(store, [DETECTOR, "schema"], {"labelled": True}).id)
        assert finished is not None
        keys = ("scored", "refusals", "reused")
        return {name: {key: tally[key] for key in keys} for name, tally in finished.counts.items()}

    # An answer that must be JSON is no JSON, however politely it declines.
    assert run() == {
        DETECTOR: {"scored": 3, "refusals": 1, "reused": 0},
        "schema": {"scored": 4, "refusals": 0, "reused": 0},
    }
    assert [row.trace_id for row in loading.load_evidence(store, DETECTOR).refused] == ["t1"]
    pk = store.traces.find("t1")
    assert pk is not None
    ((_, kept), _) = sorted(store.scores.of_trace(pk), key=lambda pair: pair[0].name == "schema")
    assert (kept.status, kept.value, kept.reason) == ("refusal", None, f"a refusal: “{SAID}”")

    store.files.save("refusals/en.txt", "computer says no", by="ann", now=NOW)
    assert run() == {
        DETECTOR: {"scored": 3, "refusals": 1, "reused": 0},
        "schema": {"scored": 0, "refusals": 0, "reused": 4},
    }
    assert [row.trace_id for row in loading.load_evidence(store, DETECTOR).refused] == ["t3"]
    store.files.save("refusals/en.txt", None, by="ann", now=NOW)
    assert run()[DETECTOR]["reused"] == 4


def refuse(store: Store, config_id: int, *places: int) -> None:
    pks = [store.traces.find(f"t{place}") for place in places]
    traces = store.traces.load([pk for pk in pks if pk is not None])
    said = [(one.content_hash(), Score(one.id, None, "a refusal", "refusal")) for one in traces]
    store.scores.save(config_id, said, now=NOW)


def test_a_sweep_is_that_of_the_answers_that_answer(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    labels, scores = draw()
    config = fill(store, labels, scores)
    before = loading.load_evidence(store, DETECTOR).sweep
    gone = [3, 4, 19, 40]  # 19 had no score
    refuse(store, config.id, *gone)
    data = loading.load_evidence(store, DETECTOR)
    assert (len(data.refused), data.sweep.n, before.n) == (4, 56, 60)
    kept = [place for place in range(60) if place not in gone]
    assert data.sweep.positives == sum(labels[place] for place in kept)
    assert data.sweep.coverage == pytest.approx(np.mean([scores[place] is not None for place in kept]))
    assert data.reasons == {"abstained: no context": 5}
    assert main(["sweep", DETECTOR, "--store", store.url, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["refusals"], document["n"]) == (4, 56)
    assert main(["sweep", DETECTOR, "--store", store.url]) == 0
    assert "refusals left out: 4" in capsys.readouterr().out


def test_a_stratum_of_refusals_stands_for_less_traffic(store: Store) -> None:
    """Half of what `small` holds declines: the other half stands for half of it, not for all."""
    labels, scores = draw(ties=False)
    config = fill(store, labels, scores)
    strata = ["small" if place < 20 else "large" for place in range(60)]
    keep_sample(store, strata, {"small": 4000, "large": 400})
    refuse(store, config.id, *range(10))
    curve = loading.load_evidence(store, DETECTOR, sample="w47").sweep
    weights = np.where(np.arange(10, 60) < 20, 4000 / 20, 400 / 40)
    assert curve.weighted_n == pytest.approx(weights.sum())
    assert curve.prevalence == pytest.approx(np.average(labels[10:], weights=weights))
    there = np.array([score is not None for score in scores[10:]])
    assert curve.coverage == pytest.approx(np.average(there, weights=weights))
