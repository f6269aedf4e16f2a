"""A schema cannot keep the detector busy: the check of one answer ends by the clock, and abstains with the reason."""

from __future__ import annotations

import json
import random
import re
import time
from typing import Any

import jsonschema
import pytest

from calibrate import registry
from calibrate.backends.schema import json_schema
from calibrate.detectors.schema import find_fences
from calibrate.runtime import Guard
from calibrate.types import Score, Trace
from tests.thresholds.make import entry, release

NAMES = "".join(chr(ord("a") + number) for number in range(26))
CATASTROPHIC = {
    "properties": {name: {"pattern": f"^({name}|{name}{name})+$"} for name in NAMES},
    "allOf": [{"patternProperties": {f"^({name}+)+$": {}}} for name in NAMES],
}
ANSWER = {name: name * 50 + "!" for name in NAMES}


def trace(answer: Any, schema: Any) -> Trace:
    return Trace("t", json.dumps(answer), schema=schema)


def score(subject: Trace) -> Score:
    (found,) = registry.make("schema").score([subject])
    return found


def test_many_catastrophic_patterns_end_in_the_time_of_one_check(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(json.dumps(CATASTROPHIC)) < 2000
    monkeypatch.setattr(json_schema, "SECONDS", 1.0)
    monkeypatch.setattr(json_schema, "PATTERN_SECONDS", 0.2)

    def slow_but_allowed(pattern: str, text: str) -> bool:
        """As a pattern that takes a little less than it may: many of them were the fault."""
        time.sleep(0.1)
        return True

    monkeypatch.setattr(json_schema, "search", slow_but_allowed)
    began = time.monotonic()
    found = score(trace(ANSWER, CATASTROPHIC))
    assert time.monotonic() - began < 3
    assert (found.status, found.value) == ("abstained", None)
    assert "stopped after 1 s" in (found.reason or "")


def test_a_catastrophic_schema_takes_little_time_of_the_processor() -> None:
    began = time.process_time()
    found = score(trace(ANSWER, CATASTROPHIC))
    assert time.process_time() - began < 7
    assert found.status == "abstained"


def test_unevaluated_names_are_matched_with_a_limit() -> None:
    """The library's own rule matches with `re`, which holds the interpreter and cannot be stopped."""
    pattern = "a*" * 14 + "b"
    schema = {"unevaluatedProperties": False, "patternProperties": {pattern: {}}}
    for draft in ("https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2019-09/schema"):
        began = time.process_time()
        found = score(trace({"a" * 60 + "c": 1}, {"$schema": draft, **schema}))
        assert time.process_time() - began < 7
        assert found.status == "abstained" or found.value == 1


@pytest.mark.parametrize("draft", [jsonschema.Draft202012Validator, jsonschema.Draft201909Validator])
def test_unevaluated_properties_are_those_of_the_library(draft: Any) -> None:
    schema = {
        "$schema": draft.META_SCHEMA["$schema"],
        "properties": {"a": True},
        "allOf": [{"patternProperties": {"^x-": {"type": "integer"}}}],
        "anyOf": [{"properties": {"b": {"const": 1}}, "required": ["b"]}, True],
        "if": {"required": ["c"]},
        "then": {"properties": {"c": True}},
        "unevaluatedProperties": False,
    }
    answers: list[dict[str, Any]] = [
        {"a": 1}, {"b": 1}, {"b": 2}, {"c": 1}, {"x-1": 1}, {"x-1": "1"}, {"y": 1},
        {"a": 1, "b": 2, "x-": 3, "z": 4}, {},
    ]  # fmt: skip
    for answer in answers:
        errors = list(draft(schema).iter_errors(answer))
        assert score(trace(answer, schema)).value == len(errors), answer
    assert jsonschema._utils.re.__name__ == "re", "the library is the program's: it stays as it is"


@pytest.mark.parametrize(
    "wrong", [{"type": 7}, {"pattern": "("}, {"properties": []}, {"minimum": "1"}, {"$ref": 1}, {"required": [1]}]
)
def test_an_invalid_schema_is_still_called_invalid(wrong: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.SchemaError):
        jsonschema.Draft202012Validator.check_schema(wrong)
    found = score(trace({}, wrong))
    assert found.status == "failed"
    assert "the schema itself is invalid" in (found.reason or "")


def test_fences_are_those_of_one_expression_and_found_in_one_pass() -> None:
    whole = re.compile(r"^[^\S\n]*```[\w-]*[^\S\n]*\n(?P<body>.*?)^[^\S\n]*```[^\S\n]*$", re.DOTALL | re.MULTILINE)
    choose = random.Random(7)
    pieces = ["```", "```json", "\n", "\n", " ", "x", "{}", "``", "\r\n", "````"]
    for _ in range(5000):
        answer = "".join(choose.choices(pieces, k=choose.randrange(14)))
        assert list(find_fences(answer)) == [match.span("body") for match in whole.finditer(answer)], answer
    began = time.process_time()
    assert list(find_fences("```x\n" * 200_000)) == []
    assert time.process_time() - began < 2


def test_a_check_that_somebody_waits_for_ends_by_its_deadline() -> None:
    guard = Guard(release({"schema": entry(0, "above", params={}, version="1")}), deadline=0.5)
    guard.check(trace({}, {}))
    began = time.monotonic()
    decision = guard.check(trace(ANSWER, CATASTROPHIC))
    assert time.monotonic() - began < 1.5
    assert decision.missing == ("schema",)
