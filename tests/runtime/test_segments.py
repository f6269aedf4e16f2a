"""Thresholds per segment in a running program: told to `decide`, read from a trace by `Guard`, from a span by the
processor. The vectors hold the decisions themselves."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calibrate.cli import main
from calibrate.errors import BadInput
from calibrate.runtime import Guard, decide, decision, segments_of
from calibrate.thresholds import diff, encode, read, to_json, write
from calibrate.types import Interval, Segments, SegmentThreshold, Trace
from tests.runtime.otel_making import FALSE, Program, events, file_of, scores
from tests.thresholds.make import entry, release


def apart(by: str = "operation", **thresholds: float) -> Segments:
    figures = Interval(0.8, 0.6, 0.9), Interval(0.5)
    return Segments(by, {name: SegmentThreshold(own, 120, 30, *figures) for name, own in thresholds.items()})


EXTERNAL: dict[str, Any] = {"params": {}, "extra": {"x-external": True}}
FILE = release({
    "nli": entry(0.7, "above", "page", segments=apart(qa=0.5, summary=0.9), **EXTERNAL),
    "ragas": entry(0.4, "below", segments=apart("attributes.tier", gold=0.1), **EXTERNAL),
    "rouge": entry(0.1, "below", **EXTERNAL),
})  # fmt: skip
SCORES = {"nli": 0.6, "ragas": 0.2, "rouge": 0.5}


def test_a_reason_names_the_segment_that_decided() -> None:
    decided = decide(FILE, SCORES, segments={"operation": "qa", "attributes.tier": "iron"})
    assert decided.reasons == ("nli 0.6 ≥ 0.5 (operation qa)", "ragas 0.2 ≤ 0.4")
    long = release({"nli": entry(0.5, "above", segments=apart(**{"q" * 200: 0.1}))})
    (reason,) = decide(long, {"nli": 0.2}, segments={"operation": "q" * 200}).reasons
    assert len(reason) < 90


def test_a_segment_of_another_type_is_its_text_and_no_segment_is_no_mistake() -> None:
    file = release({"nli": entry(0.7, "above", segments=apart("attributes.beta", true=0.5))})
    assert decide(file, {"nli": 0.6}, segments={"attributes.beta": True}).flags == ("nli",)  # type: ignore[dict-item]
    assert decide(file, {"nli": 0.6}, segments={}).flags == ()
    for wrong in ({"attributes.beta": ["x"]}, "operation", [("operation", "qa")]):
        with pytest.raises(BadInput, match="segment"):
            decide(file, {"nli": 0.6}, segments=wrong)  # type: ignore[arg-type]


def test_a_caller_that_says_nothing_of_segments_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(decision, "_noticed", set())
    for _ in range(2):
        decide(FILE, {"nli": 0.6, "rouge": 0.5})
    decide(FILE, {"ragas": 0.6}, segments={})  # nothing is known of this answer: no mistake
    (record,) = caplog.records
    assert "nli has thresholds by operation" in record.getMessage()


def test_a_guard_reads_the_segment_from_the_trace() -> None:
    trace = Trace("t", "Yes.", operation="qa", attributes={"tier": "gold"})
    assert segments_of(FILE, trace) == {"operation": "qa", "attributes.tier": "gold"}
    guard = Guard(FILE)
    assert guard.check(trace, scores=SCORES).flags == ("nli",)
    assert guard.check(replace(trace, operation="summary"), scores=SCORES).flags == ()
    assert guard.check(replace(trace, operation=None, attributes={}), scores=SCORES).flags == ("ragas",)


def test_the_processor_reads_it_from_the_span() -> None:
    file = file_of(word_overlap=(-1.0, "below", "page"), token_overlap=(2.0, "below", "signal"))
    own = {"word_overlap": apart("model", m1=1.0), "token_overlap": apart("model", m1=-1.0)}
    file = replace(file, detectors={name: replace(file.detectors[name], segments=own[name]) for name in own})
    program = Program(file)
    for model in ("m1", "m2"):
        program.ask(FALSE, **{"gen_ai.response.model": model})
    first, second = program.results()
    assert [dict(span.attributes or {})["touchstone.flags"] for span in (first, second)] == [
        ("word_overlap",), ("token_overlap",),
    ]  # fmt: skip
    value = scores(first)["token_overlap"]
    explanation = events(first)[0]["gen_ai.evaluation.explanation"]
    assert explanation == f"token_overlap {value:.4g}, flags at ≤ -1 (model m1)"


def test_only_a_file_with_segments_is_of_format_2() -> None:
    plain = release({"nli": entry(0.7, "above", segments=Segments("operation", {}))})
    assert to_json(plain)["touchstone_thresholds"] == 1
    assert "segments" not in to_json(plain)["detectors"]["nli"]
    assert to_json(FILE)["touchstone_thresholds"] == 2
    assert read(encode(FILE)) == FILE


def test_a_change_of_a_segment_is_told() -> None:
    before = release({"nli": entry(segments=apart(qa=0.4, summary=0.2))})
    after = release({"nli": entry(segments=apart(qa=0.45, chat=0.1))})
    assert [str(change) for change in diff(before, after)] == [
        "nli: threshold (operation chat) changed from none to 0.1",
        "nli: threshold (operation qa) moved from 0.4 to 0.45",
        "nli: threshold (operation summary) changed from 0.2 to none",
    ]
    (change,) = diff(release({"nli": entry()}), before)
    assert str(change) == "nli: segments changed from none to operation qa 0.4, summary 0.2"


def test_the_command_is_told_the_segment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(FILE, tmp_path / "t.json")
    (tmp_path / "s.json").write_text(json.dumps(SCORES))
    call = ["decide", str(tmp_path / "t.json"), "--scores", str(tmp_path / "s.json"), "--json"]
    assert main([*call, "--segment", "operation=qa", "--segment", "attributes.tier=gold"]) == 0
    assert json.loads(capsys.readouterr().out)["reasons"] == ["nli 0.6 ≥ 0.5 (operation qa)"]
    assert main([*call, "--segment", "operation="]) == 2
    assert main([*call, "--segment", "tier=gold"]) == 2
    assert "attributes.NAME" in capsys.readouterr().err


def test_the_command_says_where_a_common_threshold_decided_and_refuses_two_segments(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(FILE, tmp_path / "t.json")
    (tmp_path / "s.json").write_text(json.dumps(SCORES))
    call = ["decide", str(tmp_path / "t.json"), "--scores", str(tmp_path / "s.json")]
    assert main([*call, "--json", "--segment", "operation=qa"]) == 0
    (caution,) = json.loads(capsys.readouterr().out)["cautions"]
    assert caution.startswith("ragas has thresholds by attributes.tier (gold)")
    assert "--segment attributes.tier=NAME" in caution
    assert main([*call, "--segment", "operation=q", "--segment", "attributes.tier=gold"]) == 0
    assert "nli has thresholds by operation (qa and summary)" in (told := capsys.readouterr().err)
    assert "'q' is none of these" in told
    assert main([*call, "--segment", "operation=qa", "--segment", "operation=summary"]) == 2
    assert "names 'operation' twice, 'qa' and 'summary'" in capsys.readouterr().err
