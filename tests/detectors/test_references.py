"""Against other people's code and suites, on real data."""

from __future__ import annotations

from itertools import islice, product

import pytest

from calibrate import registry
from calibrate.detectors.rouge_l import rouge_l_f1
from tests.shared_data import load, path


@pytest.mark.shared
def test_plain_rouge_l_is_the_rouge_score_package() -> None:
    """1,000 real (context, answer) pairs, most of them not belonging together, equal to the last bit but one."""
    path("ragtruth_qa")
    from rouge_score.rouge_scorer import RougeScorer

    reference = RougeScorer(["rougeL"], use_stemmer=False)
    traces = load("attributionbench").traces
    pairs = islice(product([t.context or "" for t in traces[::40]], [t.answer for t in traces[::35]]), 1000)
    compared = 0
    for context, answer in pairs:
        assert rouge_l_f1(context, answer) == pytest.approx(
            reference.score(context, answer)["rougeL"].fmeasure, abs=1e-12
        )
        compared += 1
    assert compared == 1000


@pytest.mark.shared
@pytest.mark.parametrize(
    "params", [{"draft": "7"}, {"draft": "7", "reading": "strict"}, {}], ids=["7", "strict", "auto"]
)
def test_the_json_schema_suite(params: dict[str, str]) -> None:
    """All 671 instances of the official draft-7 suite; without being told the draft `auto` gets them right too."""
    suite = load("jsonschema_suite")
    scores = list(registry.make("schema", params).score(suite.traces))
    wrong = [
        (score.trace_id, score.value, score.reason, label)
        for score, label in zip(scores, suite.labels, strict=True)
        if score.value is None or (score.value > 0) != (label == "hallucinated")
    ]
    assert wrong == []


@pytest.mark.shared
def test_the_plain_validator_misreads_older_drafts() -> None:
    """Read as 2020-12, `dependencies`, array `items` and `additionalItems` are ignored or crash: 62 of 671."""
    suite = load("jsonschema_suite")
    scores = list(registry.make("schema", {"variant": "plain"}).score(suite.traces))
    wrong = [
        score.trace_id
        for score, label in zip(scores, suite.labels, strict=True)
        if score.value is None or (score.value > 0) != (label == "hallucinated")
    ]
    assert len(wrong) == 62
    assert {"jsts-additionalItems", "jsts-dependencies"} <= {one.split("/")[0] for one in wrong}
