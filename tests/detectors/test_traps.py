"""Where the common recipes go wrong: each trap springs on `plain` and not on `default`."""

from __future__ import annotations

from typing import Any

import pytest

from calibrate import registry
from calibrate.types import Score, Source, Trace
from tests.detectors.examples import BATTERIES, OBJECT_SCHEMA, WARRANTY, trace


def score(name: str, one: Trace, **params: Any) -> Score:
    detector = registry.make(name, params)
    if why := detector.unavailable():
        pytest.skip(why)
    (found,) = detector.score([one])
    return found


def value(name: str, one: Trace, **params: Any) -> float:
    found = score(name, one, **params)
    assert found.value is not None, found.reason
    return found.value


# ------------------------------------------------------------------------------------------------ token overlap


def test_overlap_counts_words_not_characters() -> None:
    copied = trace("The warranty lasts 24 months from delivery.", WARRANTY)
    assert value("token_overlap", copied) == 1
    assert value("token_overlap", copied, variant="plain") < 0.1


def test_overlap_keeps_3_to_5_apart_from_35() -> None:
    ranged = trace("Delivery takes 35 days.", "Delivery takes 3-5 days.")
    assert value("token_overlap", ranged) == pytest.approx(3 / 4)
    # Stripped of punctuation the two are one word; only the recipe's other mistake hides it.
    from calibrate.detectors.token_overlap import _strip_punctuation

    assert "35" in _strip_punctuation("Delivery takes 3-5 days.").split()


def test_overlap_ignores_citation_numbers() -> None:
    assert value("token_overlap", trace("Keep the invoice [2].", WARRANTY, BATTERIES)) == 1


@pytest.mark.parametrize(
    ("answer", "source"),
    [
        ("保修期为二十四个月。", "产品的保修期为二十四个月，从交货算起。"),
        ("保証期間は二年間です。", "この製品の保証期間は二年間です。"),
        ("الضمان لمدة سنتين.", "يستمر الضمان لمدة سنتين من تاريخ التسليم."),
        ("האחריות נמשכת שנתיים.", "האחריות נמשכת שנתיים ממועד המסירה."),
        ("वारंटी दो साल की है।", "इस उत्पाद की वारंटी दो साल की है।"),
        ("รับประกันสองปี", "สินค้านี้รับประกันสองปี"),
    ],
    ids=["zh", "ja", "ar", "he", "hi", "th"],
)
def test_other_scripts_have_words(answer: str, source: str) -> None:
    assert value("token_overlap", trace(answer, source)) == 1
    assert value("rouge_l", trace(answer, source)) == 1
    assert value("rouge_l", trace(answer, source), variant="plain") < 0.5
    wrong = "这与此无关。" if answer[0] != "保" else "天空是蓝色。"
    assert value("rouge_l", trace(wrong, source)) < 0.5


# ------------------------------------------------------------------------------------------------------ ROUGE-L


def test_rouge_is_not_depressed_by_a_long_context() -> None:
    filler = " ".join(f"Item {i} costs {i} dollars and ships in {i} days." for i in range(60))
    copied = trace("The warranty of the X200 lasts 24 months from delivery.", f"{WARRANTY} {filler}")
    assert value("rouge_l", copied) == 1
    assert value("rouge_l", copied, variant="plain") < 0.3


def test_rouge_finds_the_one_invented_sentence() -> None:
    mixed = trace(
        "The warranty of the X200 lasts 24 months from delivery. Pets enjoy purple theatre tickets.", WARRANTY
    )
    assert value("rouge_l", mixed, aggregate="min") == 0
    assert value("rouge_l", mixed) == 0.5
    assert value("rouge_l", trace(f"{WARRANTY} Pets enjoy purple theatre tickets.", WARRANTY)) == 0.5
    assert value("rouge_l", mixed, variant="plain") > 0.4
    worst = score("rouge_l", mixed).evidence[0]
    assert mixed.answer[worst.start : worst.end] == "Pets enjoy purple theatre tickets."


# ------------------------------------------------------------------------------------------- citation validity


@pytest.mark.parametrize(
    ("answer", "default", "plain"),
    [
        ("It lasts [0].", 1, 0),
        ("It lasts [1, 7].", 0.5, 0),
        ("It lasts [1-3].", 1 / 3, 0),
        ("It lasts 【9】.", 1, 0),
        ("Since [2024] it lasts [1].", 0, 0.5),
        ("Read arr[7] first [1].", 0, 0.5),
        ("It lasts [1][2].", 0, 0),
        ("It lasts [1-1000000000].", 0.5, 0),
        ("It lasts [01].", 0, 0),
    ],
)
def test_citation_marks(answer: str, default: float, plain: float) -> None:
    one = trace(answer, WARRANTY, BATTERIES)
    assert value("citation_validity", one) == pytest.approx(default)
    assert value("citation_validity", one, variant="plain") == pytest.approx(plain)


def test_uncited_is_not_valid() -> None:
    one = trace("It lasts two years.", WARRANTY)
    found = score("citation_validity", one)
    assert (found.status, found.value) == ("abstained", None)
    assert "uncited" in (found.reason or "")
    assert value("citation_validity", one, variant="plain") == 0


def test_a_year_that_is_a_source_is_cited() -> None:
    one = Trace("t", "As said in [2024].", sources=(Source("2024", WARRANTY),))
    assert value("citation_validity", one) == 0


def test_validity_points_at_the_mark() -> None:
    one = trace("Fine [1]. Not fine [7].", WARRANTY, BATTERIES)
    (piece,) = score("citation_validity", one).evidence
    assert one.answer[piece.start : piece.end] == "[7]"
    assert piece.text == "cites [7], but the sources are [1], [2]"


# ------------------------------------------------------------------------------------------- citation grounding

SEA = "The Pacific is the largest and deepest ocean on Earth."
BREAD = "Sourdough bread rises because of wild yeast and lactic bacteria."


@pytest.mark.model
def test_a_leading_citation_belongs_to_the_sentence_before() -> None:
    one = trace(f"{SEA} [1] {BREAD} [2]", SEA, BREAD)
    assert value("citation_grounding", one) > 0.95
    assert value("citation_grounding", one, variant="plain") < 0.55


@pytest.mark.model
def test_dr_does_not_end_a_sentence() -> None:
    one = trace("The largest ocean on Earth was named by Dr. Magellan [1].", "The largest ocean was named by Magellan.")
    assert value("citation_grounding", one) > value("citation_grounding", one, variant="plain") + 0.2


@pytest.mark.model
def test_a_source_that_is_missing_does_not_read_0() -> None:
    one = trace(f"{SEA} [1] It is wet [9].", SEA)
    assert value("citation_grounding", one) > 0.9
    assert value("citation_grounding", one, variant="plain") == 0
    only = score("citation_grounding", trace("It is wet [9].", SEA))
    assert only.status == "abstained"
    assert "not given" in (only.reason or "")


@pytest.mark.model
def test_numbers_match_however_they_are_written() -> None:
    for number in (1, "1", "01", "[1]", " 1 "):
        one = Trace("t", f"{SEA} [1]", sources=(Source(number, SEA),))  # type: ignore[arg-type]
        assert value("citation_grounding", one) > 0.95


@pytest.mark.model
def test_evidence_beyond_the_models_limit_is_seen() -> None:
    long = " ".join(f"Section {i} explains paragraph {i} of the ordinary terms of sale." for i in range(80))
    one = trace(f"{SEA} [1]", f"{long} {SEA}")
    assert value("citation_grounding", one) > 0.7
    assert value("citation_grounding", one, variant="plain") < 0.4
    piece = score("citation_grounding", one).evidence[0]
    assert piece.window is not None
    assert SEA in one.sources[0].text[slice(*piece.window)]


@pytest.mark.model
def test_the_union_reading_asks_for_one_good_source() -> None:
    one = trace(f"{SEA} [1][2]", SEA, BREAD)
    assert value("citation_grounding", one, reading="union") > 0.95
    assert value("citation_grounding", one) < 0.3


@pytest.mark.model
@pytest.mark.parametrize("reading", ["each", "union"])
def test_leaving_off_early_finds_the_same_score(reading: str) -> None:
    facts = [SEA, BREAD, WARRANTY, BATTERIES, "Bees dance to tell where flowers are.", "Basalt is a volcanic rock."]
    sources = [" ".join(facts[i:] + facts[:i]) for i in range(0, 6, 2)]
    answers = [f"{one} [1][2] {other} [3] It is a {word} thing [2]." for one in facts for other, word in (
        (SEA, "volcanic"), (BATTERIES, "watery"))]  # fmt: skip
    for answer in answers:
        one = trace(answer, *sources)
        early, full = (score("citation_grounding", one, reading=reading, evidence=how) for how in ("worst", "all"))
        assert early.value == pytest.approx(full.value, abs=1e-5)
        assert early.evidence[0].value == early.value
        assert len(early.evidence) == len(full.evidence)


# ----------------------------------------------------------------------------------------- semantic similarity


@pytest.mark.model
def test_one_wrong_sentence_does_not_hide_among_right_ones() -> None:
    right = ["The Pacific is the deepest ocean.", "It covers a third of Earth.", "It is larger than all land together."]
    context = " ".join(right)
    one = trace(f"{context} {BREAD}", context)
    assert value("semantic_similarity", one, aggregate="min") < 0.2
    assert value("semantic_similarity", one) < 0.6  # the worst and the next
    assert value("semantic_similarity", one, variant="plain") > 0.6
    worst = score("semantic_similarity", one).evidence[0]
    assert one.answer[worst.start : worst.end] == BREAD


@pytest.mark.model
def test_what_is_not_compared_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from calibrate.backends.embedding import passages

    monkeypatch.setattr(passages, "CLAIM_CHARACTERS", 120)
    one = trace(f"{'The Pacific is the largest ocean. ' * 10}{BREAD}", SEA)
    found = score("semantic_similarity", one, aggregate="min")
    assert "too long to compare in full" in found.evidence[0].text
    assert found.value is not None
    assert found.value < 0.2  # the uncovered sentence is among those kept


# ----------------------------------------------------------------------------------------------------- schema


def json_trace(answer: str, schema: Any = OBJECT_SCHEMA) -> Trace:
    return Trace("t", answer, schema=schema)


@pytest.mark.parametrize(
    ("answer", "schema", "default", "plain"),
    [
        ('{"ok": NaN}', {"type": "object"}, 1, 0),
        ('{"ok": true, "ok": false}', OBJECT_SCHEMA, 1, 0),
        ('```json\n{"ok": true}\n```', OBJECT_SCHEMA, 0, 1),
        ('Here it is:\n```json\n{"ok": true}\n```\nAnything else?', OBJECT_SCHEMA, 0, 1),
        ('"2024-13-45"', {"type": "string", "format": "date"}, 1, 0),
        ('"yesterday"', {"type": "string", "format": "date-time"}, 1, 0),
        ('{"ok": 1, "b": 2}', OBJECT_SCHEMA, 1, 1),
        ('{"ok": true', OBJECT_SCHEMA, 1, 1),
        ("[1, 1]", {"uniqueItems": True}, 1, 1),
        ("[1, true]", {"uniqueItems": True}, 0, 0),
    ],
)
def test_json(answer: str, schema: Any, default: float, plain: float) -> None:
    assert value("schema", json_trace(answer, schema)) == default
    assert value("schema", json_trace(answer, schema), variant="plain") == plain


def test_a_schema_is_read_by_the_draft_that_it_names() -> None:
    """In draft 4 `exclusiveMinimum` is true or false; in later ones it is a number, and this schema invalid."""
    schema = {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 0, "exclusiveMinimum": True}
    assert (value("schema", json_trace("0", schema)), value("schema", json_trace("1", schema))) == (1, 0)
    del schema["$schema"]
    assert score("schema", json_trace("0", schema)).status == "failed"


def test_strict_does_not_unwrap() -> None:
    assert value("schema", json_trace('```json\n{"ok": true}\n```'), reading="strict") == 1


def test_a_wrong_schema_is_nobodys_violation() -> None:
    found = score("schema", json_trace("1", {"type": "strnig"}))
    assert found.status == "failed"
    assert "the schema itself is invalid" in (found.reason or "")
    assert value("schema", json_trace("{}", {"minimum": "5"}), variant="plain") == 0  # unchecked, unnoticed


@pytest.mark.parametrize("variant", ["default", "plain"])
def test_a_remote_reference_is_never_fetched(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    def refuse(*_: Any) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    found = score("schema", json_trace("1", {"$ref": "http://example.com/schema.json"}), variant=variant)
    assert found.status == "failed"
    assert "never fetched" in (found.reason or "")


@pytest.mark.parametrize(
    ("answer", "schema", "says"),
    [
        ("1", {"$ref": "#"}, "without end"),
        ("[" * 100_000, {}, "nested too deeply"),
        ('"' + "a" * 60 + 'b"', {"pattern": "^(a|aa)+$"}, "took over|stopped after"),
        (
            '{"' + "a" * 60 + 'b": 1}',
            {"additionalProperties": False, "patternProperties": {"^(a|aa)+$": {}}},
            "took over",
        ),
        (
            '{"' + "a" * 60 + 'b": 1}',
            {"unevaluatedProperties": False, "allOf": [{"patternProperties": {"^(a|aa)+$": {}}}]},
            "took over",
        ),
        (
            "1",
            {
                "$defs": {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(40)} | {"d40": {}},
                "$ref": "#/$defs/d0",
            },
            "stopped after",
        ),
    ],
    ids=["endless", "deep", "pattern", "names", "unevaluated", "doubling"],
)
def test_what_would_not_end_fails_and_says_so(answer: str, schema: Any, says: str) -> None:
    import re

    from calibrate.backends.schema import json_schema

    before, json_schema.STEPS = json_schema.STEPS, 20_000
    try:
        found = score("schema", json_trace(answer, schema))
    finally:
        json_schema.STEPS = before
    assert found.status == ("failed" if "end" in says or "deep" in says else "abstained")
    assert re.search(says, found.reason or "")
    assert found.seconds < 10


def test_a_violation_is_located() -> None:
    items = {"items": {"properties": {"ok": {"type": "boolean"}}}}
    schema = {"properties": {"a": items, "b": {"type": "integer"}}}
    one = json_trace('Sure:\n```json\n{"a": [1, {"ok": "no"}], "b": "x"}\n```', schema)
    found = score("schema", one)
    assert found.value == 2
    assert {one.answer[piece.start : piece.end] for piece in found.evidence} == {'"no"', '"x"'}


def test_a_number_that_no_division_can_hold_is_a_reason() -> None:
    (score,) = registry.make("schema").score([trace("1" + "0" * 4000, schema={"multipleOf": 1e-300})])
    assert score.value is None
    assert "too large" in str(score.reason)


def test_a_number_beyond_every_double_is_no_json() -> None:
    (score,) = registry.make("schema").score([trace("1e400", schema={"type": "number", "multipleOf": 0.01})])
    assert score.value == 1
    assert "1e400" in score.evidence[0].text
