"""A certificate of one segment, from the store to a decision. Counts are made by hand, the test by scipy."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from calibrate.cli import main
from calibrate.runtime import decide, load
from calibrate.types import Part, Record, Source, Trace, TraceFilter
from calibrate.workflow.certification import attempts, ledger
from calibrate.workflow.certification.in_segment import in_segment
from calibrate.workflow.evidence import loading
from calibrate.workflow.releasing import known_bad
from db import Store, open_store
from tests.workflow.certifying import Traffic
from tests.workflow.making import ABOVE, NOW, give_scores, save

QA = Part("operation", "qa")
OF_QA = ("--by", "operation", "--segment", "qa")
PASSED = {"qa": 1.9, "chat": 0.3}
"""How much higher hallucinated answers score: the detector knows a good deal of qa, and little of chat."""


def traffic(store: Store, n: int = 3000) -> Traffic:
    """Two thirds qa, a third chat, 15% of each hallucinated."""
    rng = np.random.default_rng(3)
    truth = rng.random(n) < 0.15
    operations = ["chat" if place % 3 == 0 else "qa" for place in range(n)]
    gain = np.array([PASSED[operation] for operation in operations])
    scores = np.where(truth, gain + 1.4 * rng.standard_normal(n), rng.standard_normal(n))
    traces = [
        Trace(
            f"t{place}", answer=f"answer {place}", question="?", sources=(Source("1", "text"),), timestamp=NOW,
            model="m", operation=operation,
        )
        for place, operation in enumerate(operations)
    ]  # fmt: skip
    store.traces.add([Record(line, trace, ()) for line, trace in enumerate(traces, 1)], labels_as=None, now=NOW)
    give_scores(store, traces, [float(score) for score in scores], name=ABOVE)
    return Traffic(store, {trace.id: bool(bad) for trace, bad in zip(traces, truth, strict=True)})


@pytest.fixture
def world(store: Store) -> Traffic:
    made = traffic(store)
    made.first(240)
    return made


def call(store: Store, capsys: pytest.CaptureFixture[str], *given: str) -> tuple[int, Any]:
    capsys.readouterr()
    code = main([*given, "--store", store.url, "--json"])
    return code, json.loads(capsys.readouterr().out)


def status(store: Store) -> attempts.CertificationStatus:
    at = attempts.latest_status(store, ABOVE, part=QA)
    assert at is not None
    return at


@pytest.mark.both_databases
def test_a_certified_segment_goes_from_the_store_to_a_decision(
    world: Traffic, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    store, certify = world.store, ("certify", ABOVE, *OF_QA)
    assert call(store, capsys, *certify, "--sample", "w47", "--seed", "5")[1]["did"] == "planned"
    assert attempts.latest_status(store, ABOVE) is None, "a segment's attempt is none on all traffic"
    assert call(store, capsys, *certify)[1]["did"] == "drawn"
    drawn = status(store).fresh
    assert drawn is not None
    traces = store.traces.load([member.trace_pk for member in store.samples.members(drawn.id)])
    assert {trace.operation for trace in traces} == {"qa"}
    world.label(drawn)
    code, tested = call(store, capsys, *certify)
    assert (code, tested["stage"], tested["segment"]) == (0, "certified", {"by": "operation", "name": "qa"})
    cut, sure = tested["outcome"]["cut"], tested["outcome"]["guarantee"]
    rows = [row for row in store.scores.members(status(store).attempt.config_id, drawn.id) if row.value is not None]
    flagged = [row for row in rows if row.value is not None and row.value >= cut]
    hits = sum(world.truth[row.trace_id] for row in flagged)
    assert (sure["labels"], sure["hallucinated"]) == (len(flagged), hits)
    assert binom.sf(hits - 1, len(flagged), 0.7) <= 0.04
    where = TraceFilter(operations=("chat",))
    assert ledger.next_attempt(store, 0.7, where).level == pytest.approx(0.008), "chat shares the 5% of qa"

    refused = call(store, capsys, *certify, "--save")
    assert (refused[0], "no saved threshold for the rest" in refused[1]["error"]) == (2, True)
    common = save(store, "manual:2.5", name=ABOVE, sample="w47").threshold
    assert call(store, capsys, *certify, "--save", "--reason", "a test's few labels")[1]["saved"]
    saved = store.points.latest()[ABOVE]
    assert saved.point.threshold == common
    assert saved.data.segments is not None
    own = saved.data.segments.thresholds["qa"]
    assert (saved.data.segments.by, own.threshold, own.guarantee and own.guarantee.labels) == (
        "operation", cut, len(flagged)
    )  # fmt: skip
    members = loading.load_evidence(store, ABOVE, sample="w47").rows
    of_qa = store.traces.segments([row.pk for row in members], "operation")
    by_hand = [
        row for row, name in zip(members, of_qa, strict=True) if (row.value or 0) >= (cut if name == "qa" else common)
    ]
    assert saved.point.true_positives + saved.point.false_positives == len(by_hand)

    main(["segments", ABOVE, "--by", "operation", "--sample", "w47", "--store", store.url])
    sentence = f"Certified in the operation qa traffic alone: at least 70% of what is flagged at ≥ {cut:.4g}"
    assert sentence[:58] in capsys.readouterr().out
    out = tmp_path / "thresholds.json"
    reason = ("--reason", "a test's few labels")
    main(["release", "--check", "--store", store.url])
    assert "Certified in the operation qa traffic alone" in capsys.readouterr().out
    assert main(["release", "--out", str(out), "--store", store.url, *reason]) == 0
    segment = json.loads(out.read_text())["detectors"][ABOVE]["segments"]["thresholds"]["qa"]
    assert segment["guarantee"]["labels"] == len(flagged)
    thresholds = load(out)
    between = (cut + common) / 2
    for operation, flag in (("qa", between >= cut), ("chat", between >= common), (None, between >= common)):
        segments = {} if operation is None else {"operation": operation}
        decision = decide(thresholds, {ABOVE: between}, segments=segments)
        assert (decision.verdict != "ACCEPT") == flag

    assert known_bad.overturned_segment(store, ABOVE, saved.data.segments) is None
    world.label(drawn, verdicts=dict.fromkeys(range(drawn.size), "clean"))
    change = known_bad.overturned_segment(store, ABOVE, saved.data.segments)
    assert change is not None
    assert change.part == QA
    assert "operation qa" in str(known_bad.state_of_saved(store, saved).part)


def test_weights_of_a_segment_add_up_to_its_share_of_the_traffic(world: Traffic) -> None:
    data = loading.load_evidence(world.store, ABOVE, sample="w47")
    part = in_segment(world.store, data, QA)
    assert data.design is not None
    assert part.design is not None
    qa = np.isin([row.pk for row in data.rows], [row.pk for row in part.rows])
    np.testing.assert_allclose(part.design.weights, data.design.weights[qa], rtol=0.05)
    assert part.design.weights.sum() == pytest.approx(2000, rel=0.15)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("--segment", "qa"), "add --by operation"),
        (("--by", "operation"), "add --segment NAME"),
        (("--by", "colour", "--segment", "red"), "cannot be told apart by 'colour'"),
        (("--by", "operation", "--segment", "summary"), r"the largest are 'qa', 'chat'"),
        (("--by", "attributes.tier", "--segment", "gold"), "no trace in the store says its attributes.tier"),
    ],
)
def test_what_names_no_segment_is_refused_with_the_remedy(
    template: Store, capsys: pytest.CaptureFixture[str], given: tuple[str, ...], says: str
) -> None:
    code, document = call(template, capsys, "certify", ABOVE, "--sample", "w47", *given)
    assert (code, says in document["error"]) == (2, True), document


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    store = open_store(f"sqlite:///{tmp_path_factory.mktemp('segment') / 'store.db'}")
    traffic(store, 600).first(60)
    yield store
    store.close()
