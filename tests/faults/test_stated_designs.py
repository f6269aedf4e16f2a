"""What users say of how labelled traces were chosen: it is held against the traffic, and can be taken back."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from calibrate.cli import main
from calibrate.errors import BadInput
from calibrate.report.sentences.labelling.labels import caution as caution_of
from calibrate.stats.choosing.policy import parse
from calibrate.stats.sampling.likeness import compare_with_traffic
from calibrate.types import EnsembleData, EnsembleMember, Record, StateReason, Trace
from calibrate.workflow.evidence import loading
from calibrate.workflow.evidence.basis import Chosen, choose_basis, samples_with_labels
from calibrate.workflow.evidence.labels_at_hand import labels_at_hand
from calibrate.workflow.releasing import history, known_bad
from calibrate.workflow.releasing import release as releasing
from calibrate.workflow.traces.stated_samples import keep_stated, state_again
from calibrate.workflow.tuning import operating_points
from db import Store
from db.releases import ReleaseRequest
from tests.db.make import ensemble
from tests.workflow.evidence.test_which_labels import draw, fill_traffic, say
from tests.workflow.making import DETECTOR, NOW, fill, save
from tests.workflow.releasing.test_known_bad import scored


def pick(store: Store, bad: list[bool], *, flagged: int, rest: int) -> list[str]:
    """Label so many of the traces that 0.45 flags, and of the others; gives their names."""
    traces = store.traces.load([store.traces.find(f"t{place}") or 0 for place in range(len(bad))])
    config = store.scores.configs(DETECTOR)[-1]
    scores = store.scores.reusable(config.id, [trace.content_hash() for trace in traces])
    low = [trace.id for trace in traces if (scores[trace.content_hash()].value or 0) < 0.45]
    high = [trace.id for trace in traces if trace.id not in set(low)]
    rng = np.random.default_rng(2)
    picked = [str(one) for one in (*rng.choice(low, flagged, replace=False), *rng.choice(high, rest, replace=False))]
    say(store, [store.traces.find(name) or 0 for name in picked], bad)
    return picked


def test_flagged_traces_stated_as_random_are_noticed(store: Store) -> None:
    """72% of the labels are flagged, and about 18% of the traffic."""
    bad = fill_traffic(store)
    sample = keep_stated(store, "audit", pick(store, bad, flagged=72, rest=28), design="random", by="ann", now=NOW)
    caution = choose_basis(store, "audit").caution
    assert caution is not None
    assert (caution.chosen, caution.sample) == (Chosen.UNLIKE, "audit")
    assert "is said to be random, and is not like the traffic: 7" in str(caution_of(caution))
    assert "of the traffic have a Token overlap of 0.4" in str(caution_of(caution))
    with pytest.raises(BadInput, match=r"'audit' is said to be random.*--state flagged"):
        operating_points.choose_point(loading.load_evidence(store, DETECTOR, sample="audit"), parse("f1"))
    assert samples_with_labels(store) == []
    assert labels_at_hand(store, sample).prevalence.share.value is None


def test_a_random_part_of_the_traffic_is_believed(store: Store) -> None:
    bad = fill_traffic(store)
    rng = np.random.default_rng(4)
    names = [f"t{place}" for place in rng.choice(len(bad), 150, replace=False)]
    say(store, [store.traces.find(name) or 0 for name in names], bad)
    keep_stated(store, "audit", names, design="random", now=NOW)
    assert choose_basis(store, "audit").caution is None


def test_random_draws_are_doubted_no_more_often_than_stated() -> None:
    """2,000 draws of 80 out of 3,000: at one in a thousand, more than 8 would come once in 4,000 runs."""
    rng = np.random.default_rng(1)
    traffic = np.round(rng.beta(2, 5, 3000), 2)
    draws = (rng.choice(traffic, 80, replace=False) for _ in range(2000))
    assert sum(compare_with_traffic(labelled, traffic) is not None for labelled in draws) <= 8


def test_what_was_stated_can_be_taken_back(store: Store, store_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    bad = fill_traffic(store)
    names = [f"t{place}" for place in np.random.default_rng(4).choice(len(bad), 150, replace=False)]
    say(store, [store.traces.find(name) or 0 for name in names], bad)
    keep_stated(store, "audit", names, design="random", by="ann", now=NOW)
    save(store, "recall>=0.5", sample="audit")
    config = store.scores.configs(DETECTOR)[-1]
    several = ensemble(
        rule={"form": "fixed", "k": 1, "thresholds": {DETECTOR: ["below", 0.4]}},
        detectors={DETECTOR: EnsembleMember(config.version, config.params, config.revision)},
        data=EnsembleData("audit", ("audit",), 150, 50, None, "digest"),
    )
    store.ensembles.save("several", several, by="ann", now=NOW)
    request = ReleaseRequest(ensembles=["several"], by="ann")
    live = history.read_release(releasing.release(store, request, now=NOW))
    assert [judged.state.known_bad for judged in known_bad.judge_live(store, live, {})] == [False, False]
    assert known_bad.state_of_saved(store, store.points.latest()[DETECTOR]).why != StateReason.NOT_OF_TRAFFIC
    at = ("--store", store_url)
    assert main(["sample", "audit", "--state", "unknown", "--json", *at]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [said["design"] for said in document["stated"]] == ["random", "unknown"]
    assert document["stated"][0]["by"] == "ann"
    assert main(["choose", DETECTOR, "--sample", "audit", *at]) == 2
    assert "nobody says how the traces of the sample 'audit' were chosen" in capsys.readouterr().err
    assert choose_basis(store, None).caution is not None
    state = known_bad.state_of_saved(store, store.points.latest()[DETECTOR])
    assert (state.known_bad, state.why) == (True, StateReason.NOT_OF_TRAFFIC)
    judged = {judged.name: judged.state for judged in known_bad.judge_live(store, live, {})}
    assert judged["several"].why == StateReason.NOT_OF_TRAFFIC
    with pytest.raises(BadInput, match=r"several is known to be bad \(not of the traffic"):
        releasing.release(store, request, now=NOW)
    forced = history.read_release(releasing.release(store, replace(request, reason="a test"), now=NOW))
    assert forced.ensembles["several"].extra["x-state"]["reason"] == "a test"
    sample = store.samples.get("audit")
    assert sample is not None
    again = state_again(store, sample, design="random", now=NOW)
    assert (again.strata, choose_basis(store, "audit").caution) == ({"all": (again.pool, 150)}, None)
    drawn = draw(store, "w", size=20)
    with pytest.raises(BadInput, match="was drawn here"):
        state_again(store, drawn, design="unknown", now=NOW)


def test_labels_stated_otherwise_are_not_two_samples(store: Store) -> None:
    """The same labels once as random and once as feedback: the later statement counts, and the earlier is kept."""
    bad = fill_traffic(store)
    names = [f"t{place}" for place in range(0, 400, 4)]
    say(store, [store.traces.find(name) or 0 for name in names], bad)
    keep_stated(store, "audit", names, design="random", now=NOW)
    sample = keep_stated(store, "audit", names, design="feedback", by="bo", now=NOW)
    assert [(each.name, each.design) for each in store.samples.list()] == [("audit", "feedback")]
    assert [said.design for said in sample.options.stated] == ["random", "feedback"]


def test_labels_of_every_trace_stated_as_random_later_do_not_lift_the_caution(store: Store) -> None:
    fill(store, *scored(30, 2))
    save(store, "precision>=0.8", reason="")
    labelled = [f"t{place}" for place in range(92)]
    more = [Record(place, Trace(f"new{place}", answer=f"new answer {place}"), ()) for place in range(1, 201)]
    store.traces.add(more, labels_as=None, now=NOW)
    keep_stated(store, "audit", labelled, design="random", now=NOW)
    state = known_bad.state_of_saved(store, store.points.latest()[DETECTOR])
    assert (state.known_bad, state.why) == (True, StateReason.UNSTATED)
