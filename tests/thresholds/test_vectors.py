"""The conformance vectors, through the Python reader. test_other_readers.py has the others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from calibrate.errors import BadThresholds
from calibrate.runtime import decide, probability
from calibrate.thresholds import read
from calibrate.thresholds.signing import read_public_keys
from tests.thresholds.make_vectors import FOLDER, vectors

NAMES = sorted(path.name for path in FOLDER.glob("*.json"))


def vector(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return found


def content(one: dict[str, Any]) -> bytes:
    return str(one.get("text") or json.dumps(one["document"])).encode()


@pytest.mark.parametrize("name", NAMES)
def test_a_vector_is_met(name: str) -> None:
    one = vector(name)
    keys = read_public_keys(one.get("verify_key"))
    if one.get("refused"):
        with pytest.raises(BadThresholds):
            read(content(one), keys=keys)
        return
    file = read(content(one), keys=keys)
    for case in one["cases"]:
        options = {key: case[key] for key in ("on_missing", "skipped", "segments") if key in case}
        found = decide(file, case["scores"], **options)
        for key, value in case["decision"].items():
            got = getattr(found, key)
            assert (list(got) if isinstance(got, tuple) else got) == value, f"{case['about']}: {key}"
        for detector, value in case.get("probabilities", {}).items():
            assert probability(file, detector, case["scores"][detector]) == pytest.approx(value, abs=1e-12)


def test_they_are_what_their_maker_writes() -> None:
    # python -m tests.thresholds.make_vectors
    assert {name: (FOLDER / name).read_text(encoding="utf-8") for name in NAMES} == vectors()


def test_what_is_refused_is_refused_for_what_it_is_named_after() -> None:
    said = {
        "digest_of_another": "changed after release",
        "format_too_new": "format 3 is newer",
        "detector_unknown": "ensembles.g reads b, which is not among the detectors",
        "ensemble_named_as_a_detector": "ensembles.a has the name of a detector",
        "null_for_a_threshold": "detectors.a.threshold is null; it must be a number",
        "null_for_an_interval": "detectors.a.metrics.precision is null; it must be an object",
        "null_for_what_is_left_out": "detectors.a.guarantee is null; it must be an object",
        "unsigned": "it is not signed",
        "signature_of_another_key": "its signature is not by a key that is trusted",
        "signature_of_other_thresholds": "its signature is not by a key that is trusted",
        "signature_of_another_version": "its signature is not by a key that is trusted",
        "signature_cut": "its signature is not by a key that is trusted",
        "signature_of_no_kind": "its signature is of a kind that this reader does not know",
        "signature_null": "it is not signed",
        "form_unknown": 'ensembles.g.rule.form is "stacked"; it must be one of vote',
        "members_not_sorted": "ensembles.g.members are not the detectors that its rule reads",
        "member_flags_otherwise": "ensembles.g reads a as flagging below, which the detector does not",
        "more_votes_than_members": "ensembles.g.rule.k is 3, of 2 detectors",
        "knots_descend": "ensembles.g.rule.standings.a.knots do not ascend",
        "page_below_signal": "ensembles.g.cuts.page is 0.7, below its signal (0.75)",
        "sampling_of_none": "detectors.a.sampling.rate has an impossible value: 0",
        "format_2_without_segments": "touchstone_thresholds is 2, but no detector has segments: that is format 1",
        "segments_in_format_1": "detectors.a.segments changes decisions, and a file of format 1 has none",
        "segments_empty": "detectors.a.segments.thresholds has an impossible value",
        "segments_null": "detectors.a.segments is null; it must be an object",
        "segments_by_nothing_known": 'detectors.a.segments.by has an impossible value: "week"',
        "segments_by_an_attribute_without_a_name": "detectors.a.segments.by has an impossible value",
        "segment_without_a_name": "detectors.a.segments.thresholds has an impossible value",
        "segment_without_a_threshold": "detectors.a.segments.thresholds.qa.threshold is null; it must be a number",
        "segment_with_more_positives_than_labels": "detectors.a.segments.thresholds.qa.positives is 121, more than",
        "segment_with_a_precision_of_null": "detectors.a.segments.thresholds.qa.precision is null; it must be",
        "segment_with_a_guarantee_that_cannot_be": "detectors.a.segments.thresholds.qa.guarantee.bound is 0.6, below",
        "drawn_more_than_there_is": "data.samples.w drew more traces than it had to draw from",
        "key_twice": 'the key "tier" is there twice',
        "number_too_large": "the number 1e999 is too large",
        "byte_order_mark": "not JSON",
    }
    assert {f"refused_{name}.json" for name in said} == {name for name in NAMES if name.startswith("refused_")}
    for name, sentence in said.items():
        one = vector(f"refused_{name}.json")
        with pytest.raises(BadThresholds) as caught:
            read(content(one), keys=read_public_keys(one.get("verify_key")))
        assert sentence in str(caught.value)
