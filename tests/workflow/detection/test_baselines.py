"""Baselines through the store, on both databases: from clean gold only, per model, and then `entropy_z` scores."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from scipy.stats import entropy as scipy_entropy
from scipy.stats import median_abs_deviation

from calibrate.cli import main
from calibrate.errors import BadInput
from calibrate.report.sentences.watching.models import skipped
from calibrate.runtime.scoring import Scorer
from calibrate.stats.choosing.policy import parse
from calibrate.types import Label, Record, Token, Trace, Verdict
from calibrate.workflow.detection import baselines, detect
from calibrate.workflow.evidence import loading
from calibrate.workflow.releasing import history, release
from calibrate.workflow.tuning import operating_points
from calibrate.workspace import Workspace, using
from db import Store
from db.releases import ReleaseRequest

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
rng = np.random.default_rng


def trace(name: str, seed: int, *, model: str | None = "m", k: int = 5, n: int = 6) -> tuple[Trace, np.ndarray]:
    """An answer of n tokens whose k most likely ones hold all probability; its entropies by scipy."""
    p = rng(seed).dirichlet(np.ones(k), size=n)
    tokens = tuple(Token(f" w{i}", math.log(row[0]), tuple((str(j), math.log(x)) for j, x in enumerate(row)))
                   for i, row in enumerate(p))  # fmt: skip
    answer = "".join(token.text for token in tokens) + f" {name}"
    return Trace(name, answer, tokens=tokens, model=model), scipy_entropy(p, axis=1)


def add(store: Store, traces: Sequence[Trace], verdict: Verdict | None) -> None:
    records = []
    for line, one in enumerate(traces, 1):
        records.append(Record(line, one, (Label(one.id, "", verdict),) if verdict else ()))
    store.traces.add(records, labels_as="gold", now=NOW)


def test_a_baseline_is_made_of_clean_gold_alone(store: Store) -> None:
    made = [trace(f"c{n}", n) for n in range(14)]
    add(store, [one for one, _ in made], "clean")
    add(store, [trace(f"h{n}", 100 + n)[0] for n in range(14)], "hallucinated")
    add(store, [trace(f"u{n}", 200 + n)[0] for n in range(14)], None)
    add(store, [trace(f"?{n}", 300 + n)[0] for n in range(14)], "unsure")
    pk = store.traces.find("c13")
    assert pk is not None
    store.labels.add(pk, Label("c13", "bob", "hallucinated"), sample_id=None, now=NOW)  # now disputed
    found = baselines.fit(store, NOW)
    values = {
        "entropy/mean/top5": [e.mean() for _, e in made[:13]],
        "entropy/max/top5": [e.max() for _, e in made[:13]],
        "entropy/top_decile/top5": [e.max() for _, e in made[:13]],  # a tenth of six tokens is one
    }
    assert {one.statistic for one in found.fitted} == set(values)
    for one in found.fitted:
        assert one.centre == pytest.approx(np.median(values[one.statistic]))
        assert one.spread == pytest.approx(median_abs_deviation(values[one.statistic], scale="normal"), rel=1e-5)
        assert (one.model, one.n, one.fitted_at) == ("m", 13, NOW)
    assert found.skipped == ()
    assert store.baselines.current() == {(one.statistic, one.model): one for one in found.fitted}


def test_every_model_and_every_k_has_its_own(store: Store) -> None:
    add(store, [trace(f"a{n}", n, model="a")[0] for n in range(10)], "clean")
    add(store, [trace(f"b{n}", 50 + n, model="b")[0] for n in range(12)], "clean")
    add(store, [trace(f"k{n}", 90 + n, model="b", k=20)[0] for n in range(3)], "clean")
    found = baselines.fit(store, NOW)
    assert {(one.model, one.statistic, one.n) for one in found.fitted if "mean" in one.statistic} == {
        ("a", "entropy/mean/top5", 10), ("b", "entropy/mean/top5", 12),
    }  # fmt: skip
    assert {(one.model, one.statistic) for one in found.skipped} == {
        ("b", f"entropy/{how}/top20") for how in ("mean", "max", "top_decile")
    }
    assert all("3 clean answers with it: at least 10" in skipped(one) for one in found.skipped)


def test_what_cannot_be_used_is_said(store: Store) -> None:
    whole = [trace(f"t{n}", n)[0] for n in range(5)]
    logits = tuple(Token("w", 12.5, (("w", 12.5), ("v", 3.0))) for _ in range(3))
    add(store, [replace(one, id=f"n{one.id}", model="bare", tokens=None) for one in whole], "clean")
    add(store, [replace(one, id=f"l{one.id}", model="logits", tokens=logits) for one in whole], "clean")
    add(store, [replace(one, id=f"x{one.id}", model=None) for one in whole], "clean")
    said = [replace(one, id=f"r{one.id}", model="shy", answer="I do not have that information.") for one in whole]
    add(store, said, "clean")
    found = baselines.fit(store, NOW)
    assert found.fitted == ()
    why = {one.model: skipped(one) for one in found.skipped}
    assert "5 of 5 clean traces: no tokens" in why["bare"]
    assert "logits" in why["logits"]
    assert "which model" in why[baselines.UNNAMED]
    assert "refusals are left out" in why["shy"]


@pytest.mark.both_databases
def test_more_traces_than_a_page_are_all_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "CHUNK", 7)
    add(store, [trace(f"t{n}", n)[0] for n in range(30)], "clean")
    assert {one.n for one in baselines.fit(store, NOW).fitted} == {30}


def test_fitting_again_replaces_and_a_run_follows(store: Store) -> None:
    """Without a baseline the detector abstains and names the command; after it, it scores; after new labels, anew."""
    add(store, [trace(f"c{n}", n)[0] for n in range(12)], "clean")
    add(store, [trace(f"h{n}", 60 + n)[0] for n in range(4)], "hallucinated")

    def run() -> dict[str, int]:
        queued = detect.queue(store, ["entropy_z"], {"labelled": True}, params={"aggregate": "mean"})
        finished = detect.work(store, run_id=queued.id)
        assert finished is not None
        return {key: finished.counts["entropy_z"][key] for key in ("scored", "abstained", "reused")}

    assert run() == {"scored": 0, "abstained": 16, "reused": 0}
    (reason,) = loading.load_evidence(store, "entropy_z").reasons
    assert "python -m calibrate baselines fit" in reason
    first = {one.statistic: one for one in baselines.fit(store, NOW).fitted}["entropy/mean/top5"]
    assert run() == {"scored": 16, "abstained": 0, "reused": 0}
    assert run() == {"scored": 0, "abstained": 0, "reused": 16}
    value = trace("h0", 60)[1].mean()
    (row,) = (row for row in loading.load_evidence(store, "entropy_z").rows if row.trace_id == "h0")
    assert row.value == pytest.approx((value - first.centre) / first.spread)

    baselines.fit(store, NOW + timedelta(hours=1))  # the same labels: the same baseline, later
    assert run() == {"scored": 0, "abstained": 0, "reused": 16}
    add(store, [trace(f"d{n}", 500 + n)[0] for n in range(5)], "clean")
    baselines.fit(store, NOW + timedelta(days=1))
    assert store.baselines.current()["entropy/mean/top5", "m"].n == 17
    assert run() == {"scored": 21, "abstained": 0, "reused": 0}
    assert loading.load_evidence(store, "entropy_z", params={"aggregate": "mean"}).sweep.scored == 21


def test_a_release_carries_the_baselines_that_its_scores_were_made_with(store: Store) -> None:
    add(store, [trace(f"c{n}", n)[0] for n in range(14)], "clean")
    add(store, [trace(f"h{n}", 60 + n)[0] for n in range(6)], "hallucinated")
    baselines.fit(store, NOW)
    detect.queue(store, ["entropy_z"], {"labelled": True})
    detect.work(store)
    data = loading.load_evidence(store, "entropy_z")
    operating_points.save_point(
        store, data, operating_points.choose_point(data, parse("manual:0.5")), reason="a test", by="ann", now=NOW
    )
    file = history.read_release(release.release(store, ReleaseRequest(by="ann"), now=NOW))
    there, _ = trace("new", 60)
    with using(Workspace()):  # a process that knows of nothing but the file
        (made,) = Scorer(file).score([there])
    (row,) = (row for row in data.rows if row.trace_id == "h0")
    assert made.scores["entropy_z"].value == pytest.approx(row.value)

    add(store, [trace(f"d{n}", 500 + n)[0] for n in range(9)], "clean")
    baselines.fit(store, NOW + timedelta(days=1))
    with pytest.raises(BadInput, match="baselines or lists of refusals have changed"):
        release.release(store, ReleaseRequest(tiers={"entropy_z": "page"}, by="ann"), now=NOW)


def test_age_is_never_negative(store: Store) -> None:
    add(store, [trace(f"c{n}", n)[0] for n in range(12)], "clean")
    one = baselines.fit(store, NOW).fitted[0]
    assert baselines.age(one, NOW + timedelta(days=3)) == timedelta(days=3)
    assert baselines.age(one, NOW - timedelta(days=3)) == timedelta(0)


def test_the_command_line(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    def call(*args: str) -> str:
        assert main(["baselines", *args, "--store", store.url]) == 0
        return capsys.readouterr().out

    assert "no baselines" in call()
    add(store, [trace(f"c{n}", n, model="m\x1b[31m")[0] for n in range(12)], "clean")
    add(store, [trace(f"b{n}", n, model="few")[0] for n in range(2)], "clean")
    text = call("fit")
    assert "3 baselines fitted, 3 not" in text
    assert "few, entropy/mean/top5: 2 clean answers with it" in text
    assert "rough: 30 clean answers or more are better" in text
    assert "\x1b" not in text
    document = json.loads(call("list", "--json"))
    assert {one["statistic"] for one in document["baselines"]} >= {"entropy/mean/top5"}
    assert set(document["baselines"][0]) == {"statistic", "model", "centre", "spread", "n", "fitted_at", "age_days"}
    document = json.loads(call("fit", "--json"))
    assert (document["fitted"], len(document["skipped"])) == (3, 3)
    assert set(document["skipped"][0]) == {"model", "statistic", "why"}
