"""Dataclasses and document say the same; differences read as sentences."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import operator
import pickle
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from jsonschema import Draft202012Validator

from calibrate.errors import BadInput, BadThresholds
from calibrate.thresholds import ThresholdsFile, diff, encode, from_json, read, schema, to_json
from calibrate.thresholds.canonical import digest_of
from calibrate.thresholds.model import Rule
from calibrate.types import Interval
from tests.thresholds.make import CERTIFIED, MAP, entry, release, releases


@settings(max_examples=40)
@given(releases())
def test_round_trip(file: ThresholdsFile) -> None:
    content = encode(file)
    back = read(content)
    assert back == file
    assert encode(back) == content
    assert from_json(to_json(file)) == file
    assert diff(file, back) == []


def test_the_layout() -> None:
    text = encode(release(note="käse")).decode()
    assert text.endswith("}\n")
    assert "käse" in text
    document = json.loads(text)
    assert text == json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    assert document["released_at"] == "2026-11-16T09:30:00Z"
    assert document["touchstone_thresholds"] == 1


def test_the_order_of_making_does_not_show() -> None:
    a, b = entry(0.1), entry(0.2)
    assert encode(release({"a": a, "b": b})) == encode(release({"b": b, "a": a}))


def test_schema_is_a_schema_and_takes_keys_of_later_versions() -> None:
    Draft202012Validator.check_schema(schema())
    document = to_json(release())
    for place in (document, document["data"], document["detectors"]["citation_grounding"]):
        place["surprise"] = place["x-surprise"] = 1
        assert Draft202012Validator(schema()).is_valid(document)


def closed(part: Any) -> Any:
    """The schema with every object closed that names its fields, but for keys that begin with x-."""
    if isinstance(part, list):
        return [closed(inner) for inner in part]
    if not isinstance(part, dict):
        return part
    inside = {key: inner if key == "if" else closed(inner) for key, inner in part.items()}
    if part.get("type") == "object" and "properties" in part and "allOf" not in part:
        inside |= {"additionalProperties": False, "patternProperties": {"^x-": True}}
    return inside


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(releases())
def test_what_we_write_has_no_key_that_the_schema_does_not_name(file: ThresholdsFile) -> None:
    validator = Draft202012Validator(closed(schema()))
    document = to_json(file)
    assert validator.is_valid(document)
    document["data"]["surprise"] = 1
    assert not validator.is_valid(document)


def test_every_field_of_the_schema_is_required_but_those_without_a_default() -> None:
    # Were another optional, leaving it out and writing its default would be two digests for one meaning. What would
    # say nothing (no ensembles, a sampling of all traces) is refused.
    optional = {"guarantee", "probability_map", "sampling", "segments", "ensembles", "samples"}

    def objects(part: object) -> Iterator[dict[str, Any]]:
        if isinstance(part, dict):
            yield part
        for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
            yield from objects(inner)

    for part in objects(schema()):
        if isinstance(part.get("properties"), dict) and "required" in part:
            assert sorted(part["required"]) == sorted({*part["properties"]} - optional)
    assert schema()["$defs"]["guarantee"]["type"] == "object"


def test_times_are_utc_in_whole_seconds() -> None:
    summer = datetime(2026, 7, 1, 12, 0, 0, 999_999, timezone(timedelta(hours=2)))
    assert to_json(release(released_at=summer))["released_at"] == "2026-07-01T10:00:00Z"
    with pytest.raises(BadInput, match="no time zone"):
        release(released_at=datetime(2026, 7, 1))


def test_later_changes_of_the_callers_dict_do_not_reach_the_release() -> None:
    params = {"words": ["a"]}
    file = release({"d": entry(params=params)})
    params["words"].append("b")
    assert file.detectors["d"].params == {"words": ["a"]}


def test_a_release_can_be_copied_and_pickled() -> None:
    file = release()
    assert file.rules == (
        Rule("citation_grounding", 0.52, operator.le, "signal", "citation_grounding ", " ≤ 0.52", -math.inf, math.inf),
    )
    assert pickle.loads(pickle.dumps(file)) == copy.deepcopy(file) == file
    assert dataclasses.asdict(file)["version"] == 2


def test_extra_keys_begin_with_x() -> None:
    with pytest.raises(BadInput, match="must begin with x-"):
        entry(extra={"threshold": 3})
    file = release(extra={"x-ticket": "OPS-7"})
    assert read(encode(file)).extra == {"x-ticket": "OPS-7"}


def test_a_release_without_a_guarantee_is_written_as_before_and_means_measured() -> None:
    plain, sure = to_json(release()), to_json(release({"citation_grounding": entry(guarantee=CERTIFIED)}))
    assert "guarantee" not in plain["detectors"]["citation_grounding"]
    assert from_json(plain).detectors["citation_grounding"].strength == "measured"
    # Nothing but the key and the digest tells them apart, and the format is the same.
    del sure["detectors"]["citation_grounding"]["guarantee"]
    assert {**sure, "digest": plain["digest"]} == plain
    assert plain["touchstone_thresholds"] == 1


def test_a_guarantee_is_read_back_without_what_is_unknown() -> None:
    document = to_json(release({"d": entry(guarantee=CERTIFIED)}))
    given = document["detectors"]["d"]["guarantee"]
    assert given == {
        "strength": "certified", "target": 0.7, "confidence": 0.95, "bound": 0.733, "labels": 84, "hallucinated": 69,
        "sample": "fresh",
    }  # fmt: skip
    assert from_json(document).detectors["d"].guarantee == CERTIFIED
    given["surprise"] = 1
    assert from_json({**document, "digest": digest_of(document)}).detectors["d"].guarantee == CERTIFIED


def test_diff_tells_what_becomes_of_a_guarantee() -> None:
    plain, sure = release({"d": entry()}), release({"d": entry(guarantee=CERTIFIED)})
    again = release({"d": entry(guarantee=dataclasses.replace(CERTIFIED, labels=90, hallucinated=75))})
    (lost,) = diff(sure, plain)
    assert (lost.field, str(lost)) == ("strength", "d: strength changed from certified to measured")
    assert [str(change) for change in diff(sure, again)] == [
        "d: guarantee changed from precision at least 0.7 (wrong in at most 5%, 69 of 84 labels) "
        "to precision at least 0.7 (wrong in at most 5%, 75 of 90 labels)"
    ]
    assert [str(change) for change in diff(None, sure)] == ["d added (flags at ≤ 0.52, tier signal, certified)"]


def test_a_probability_map_is_checked_and_read_back() -> None:
    document = to_json(release({"d": entry(probability_map=MAP), "e": entry()}))
    given = document["detectors"]["d"]["probability_map"]
    assert given == {
        "kind": "ridge_logistic", "centre": 0.6, "spread": 0.2, "coefficients": [-1.0, 1.5, 0.0], "flag_when": "below",
        "n": 300, "positives": 41, "brier": {"value": 0.09, "low": 0.07, "high": 0.12},
        "ece": {"value": 0.01, "low": 0.0, "high": 0.05},
    }  # fmt: skip
    assert "probability_map" not in document["detectors"]["e"]
    back = from_json(document).detectors["d"].probability_map
    assert back == MAP
    assert back is not None
    assert back.map.probability(0.6) == pytest.approx(1 / (1 + math.exp(1)))
    for wrong in ({"kind": "isotonic"}, {"spread": 0}, {"coefficients": [1, 2]}):
        changed = {
            **document,
            "detectors": {"d": {**document["detectors"]["d"], "probability_map": {**given, **wrong}}},
        }
        assert not Draft202012Validator(schema()).is_valid(changed)
    (change,) = diff(release({"d": entry()}), release({"d": entry(probability_map=MAP)}))
    assert str(change) == "d: probability_map changed from none to a map with a Brier score of 0.090 (300 labels)"


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"flag_when": "above"}, "flag_when is above, but the detector flags below"),
        ({"positives": 301}, "positives is 301"),
    ],
)
def test_a_map_that_cannot_be_is_refused(change: dict[str, Any], match: str) -> None:
    document = to_json(release({"d": entry(probability_map=MAP)}))
    document["detectors"]["d"]["probability_map"] |= change
    with pytest.raises(BadInput, match=match):
        from_json({**document, "digest": digest_of({k: v for k, v in document.items() if k != "digest"})})


@pytest.mark.parametrize("threshold", [float("nan"), float("inf")])
def test_what_no_reader_would_take_is_not_written(threshold: float) -> None:
    with pytest.raises(BadThresholds):
        encode(release({"d": entry(threshold)}))


def test_impossible_releases_are_not_written() -> None:
    for bad in (release(version=0, replaces=None), release(replaces=2), release({"bad name": entry()})):
        with pytest.raises(BadThresholds):
            encode(bad)


def test_diff_reads_as_sentences() -> None:
    metrics = entry().metrics
    better = dataclasses.replace(metrics, precision=Interval(0.9, 0.8, 0.95))
    old = release({"gone": entry(), "kept": entry()})
    moved = entry(0.55, tier="page", params={"variant": "plain", "k": 2}, version="2", policy="manual", metrics=better)
    data = dataclasses.replace(old.data, n=340, models=("a", "b"))
    new = release({"kept": moved, "new": entry(2, "above")}, data=data)
    assert [str(change) for change in diff(old, new)] == [
        "data.n changed from 300 to 340",
        "data.models changed from gpt-4o to a, b",
        "gone removed (flags at ≤ 0.52, tier signal)",
        "kept: threshold moved from 0.52 to 0.55",
        "kept: version changed from 1 to 2",
        "kept: tier changed from signal to page",
        "kept: policy changed from precision>=0.7 to manual",
        "kept: params.k changed from unset to 2",
        "kept: params.variant changed from default to plain",
        "kept: precision moved from 81.0% (65.0% to 92.0%) to 90.0% (80.0% to 95.0%)",
        "new added (flags at ≥ 2, tier signal)",
    ]
    assert [str(change) for change in diff(None, old)] == [
        "gone added (flags at ≤ 0.52, tier signal)",
        "kept added (flags at ≤ 0.52, tier signal)",
    ]


def test_diff_tells_other_labels_of_the_same_number_and_unknown_figures() -> None:
    old = release()
    unknown = dataclasses.replace(entry().metrics, recall=Interval(None))
    data = dataclasses.replace(old.data, label_set_digest="sha256:" + "1" * 64)
    new = release({"citation_grounding": entry(metrics=unknown, coverage=0.5)}, data=data)
    assert [str(change) for change in diff(old, new)] == [
        "data.label_set_digest changed from sha256:000000000000 to sha256:111111111111",
        "citation_grounding: recall moved from 44.0% (31.0% to 58.0%) to unknown",
        "citation_grounding: coverage moved from 97.0% to 50.0%",
    ]


def test_diff_tells_models_revisions_and_baselines() -> None:
    old = release({"d": entry(2.5, "above", revision="a")})
    new = release({"d": entry(2.5, "above", revision="", feasible=False)}, baselines={"m": {"d": {"median": 1.4}}})
    assert [str(change) for change in diff(old, new)] == [
        "baselines changed from none to m",
        "d: revision changed from a to none",
        "d: feasible changed from yes to no",
    ]
