"""Labels of other tools come in whole, with each that cannot be taken reported; ours go out to them and come back."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calibrate.errors import BadInput
from calibrate.ingest import Rejected
from calibrate.ingest.labels import LABEL_FORMATS, LABELS, LeftOut
from calibrate.ingest.labels.offsets import from_utf16, place_spans, to_utf16
from calibrate.ingest.values import FieldError
from calibrate.types import Chosen, Label, Record, Span, Trace
from calibrate.workflow.labelling.interchange import read_file, write_file
from calibrate.workflow.upkeep.purge import purge
from db import Store, open_store
from tests.db.make import NOW

FILES = Path(__file__).parents[2] / "ingest" / "labels"
FORMATS = [each.name for each in LABEL_FORMATS]
SPAN_ID = "67f6740bbe1ddc3f"
ROCKET = "🚀 Shipping is free — שלום"
ANSWERS = {
    "t1": ROCKET,
    "t2": "💩This is an annotation.",
    "t3": "plain",
    f"{'0' * 31}1-{SPAN_ID}": ROCKET,
    "67f6740bbe1ddc40": "plain",
}  # fmt: skip
ANN, BOB, EVE = (f"0b8b4f6e-3f70-4a0e-9d59-6d0b6a3c2f0{n}" for n in (1, 2, 3))


def fill(store: Store, answers: dict[str, str] = ANSWERS) -> Store:
    rows = [Record(at, Trace(key, text)) for at, (key, text) in enumerate(answers.items(), start=1)]
    store.traces.add(rows, labels_as=None, now=NOW)
    return store


def take(store: Store, path: Path) -> tuple[list[Label], list[Rejected], Counter[str]]:
    """What a file's labels are, what is rejected, and what else is in it."""
    rows = list(read_file(store, path))
    others = Counter(row.what for row in rows if isinstance(row, LeftOut))
    return [row for row in rows if isinstance(row, Label)], [row for row in rows if isinstance(row, Rejected)], others


def line_of(file: str, begins: str) -> int:
    """The line of a test file on which something begins."""
    text = (FILES / file).read_text()
    return text.count("\n", 0, text.index(begins)) + 1


def quotes(label: Label) -> list[str]:
    return [ANSWERS[label.trace_id][span.start : span.end] for span in label.spans]


def test_a_file_of_label_studio(store: Store) -> None:
    labels, rejected, others = take(fill(store), FILES / "label_studio.json")
    first, truth, old, last = labels
    assert (first.trace_id, first.labeller, first.verdict, first.seconds) == (
        "t1", "ann@example.org", "hallucinated", 4.288,
    )  # fmt: skip
    assert quotes(first) == ["Shipping", "שלום", "שלום"]
    assert [span.kind for span in first.spans] == ["fabrication", "fabrication", "house style"]
    assert first.note == "one\ntwo"
    assert first.created_at is not None
    assert (truth.verdict, truth.adjudicates, truth.labeller) == ("clean", True, "label-studio-10")
    assert quotes(old) == ["annotation"]  # counted in UTF-16 units, as Label Studio did before version 1.5
    assert (last.trace_id, last.verdict) == ("t3", "unsure")
    second, third, fourth, seven = (
        line_of("label_studio.json", begins) for begins in ('{"id": 2,', '{"id": 3, "data', '{"id": 4,', "7,\n")
    )
    assert [(row.line, row.reason) for row in rejected] == [
        (second, "task 2, annotation 1: verdict: expected one of clean, hallucinated, unsure, found the text 'maybe'"),
        (second, "task 2, annotation 3: spans[0]: 0 to 4 is '💩Thi' in the answer, the file says 'annotation'"),
        (second, "task 2, annotation 4: no verdict: none of its choices is clean, hallucinated or unsure"),
        (third, "task 3, annotation 1: no trace 'nowhere' in the store"),
        (fourth, "task 4, annotation 1: the file labels another answer to 't3' than the store has"),
        (seven, "the item: expected an object, found the number 7"),
    ]
    assert others == {"results of 'quality'": 1, "skipped annotations": 1, "predictions": 1}


def test_a_file_of_argilla(store: Store) -> None:
    labels, rejected, others = take(fill(store), FILES / "argilla.json")
    first, second, last = labels
    assert (first.labeller, first.verdict, first.kinds) == (ANN, "hallucinated", ("fabrication",))
    assert quotes(first) == ["Shipping", "שלום"]
    assert (second.labeller, second.verdict, second.note, second.spans) == (BOB, "clean", "fine", ())
    assert (last.trace_id, last.verdict) == ("t3", "unsure")
    assert [(row.line, row.reason) for row in rejected] == [
        (2, f"record 1, user {EVE}: verdict: expected one of clean, hallucinated, unsure, found the text 'dunno'"),
        (
            line_of("argilla.json", '{"id": "t2"'),
            f"record 2, user {ANN}: spans[0]: 1 to 6 is not a part of the answer of 23 characters",
        ),  # half an emoji
        (line_of("argilla.json", '{"id": "nowhere"'), f"record 3, user {ANN}: no trace 'nowhere' in the store"),
    ]
    assert others == {"answers to 'rating'": 1}


def test_other_shapes_of_argilla(store: Store) -> None:
    labels, rejected, others = take(fill(store), FILES / "argilla_api.json")
    assert ([(label.trace_id, label.labeller, label.verdict) for label in labels], rejected) == (
        [("t3", ANN, "clean")],
        [],
    )
    assert others == {"draft responses": 1}
    labels, rejected, others = take(store, FILES / "argilla_hub.jsonl")
    assert ([(label.trace_id, label.labeller, label.verdict) for label in labels], rejected) == (
        [("t3", "u-1", "clean")],
        [],
    )
    assert others == {"draft responses": 1}


def test_a_file_of_phoenix(store: Store) -> None:
    labels, rejected, others = take(fill(store), FILES / "phoenix.json")
    first, second = labels
    assert (first.trace_id, first.labeller, first.note) == (f"{'0' * 31}1-{SPAN_ID}", "user-123", "The source says no.")
    assert quotes(first) == ["Shipping"]
    assert (second.trace_id, second.verdict, second.labeller) == ("67f6740bbe1ddc40", "clean", "VXNlcjox")
    assert [(row.line, row.reason) for row in rejected] == [
        (
            line_of("phoenix.json", '{"id": "5"'),
            "annotation 5: verdict: expected one of clean, hallucinated, unsure, found the text 'partly'",
        ),
        (
            line_of("phoenix.json", '{"id": "6"'),
            "annotation 6: spans[0]: 0 to 4000 is not a part of the answer of 5 characters",
        ),
        (line_of("phoenix.json", '{"id": "7"'), "annotation 7: no trace '0000000000000000' in the store"),
    ]
    assert others == {"annotations by LLM": 1, "annotations 'correctness'": 1}


HOSTILE = "=cmd|' /C calc'!A0\n</script><script>alert(1)</script>\u202e,;\"'"
DECOMPOSED = "e\u0301lan \U0001f469\U0001f3fd\u200d\U0001f680 نعم 한국 👍"


def some_labels() -> list[Label]:
    """Several people on several traces: emoji, combining marks, right to left, hostile text, kinds of one's own."""
    answers = ANSWERS | {"=t4": DECOMPOSED}
    part = DECOMPOSED.index("نعم")
    return [
        Label("t1", "ann", "hallucinated", ("other",), (Span(2, 10, "fabrication"), Span(21, 25)), "why"),
        Label("t1", HOSTILE, "unsure", note=HOSTILE),
        Label("=t4", "ann", "hallucinated", ("a; b", "[x"), (Span(0, 2, "=k"), Span(part, part + 3), Span(6, 10))),
        Label("=t4", "بوب", "clean", note="👍 e\u0301"),
        Label("t3", "ann", "clean", adjudicates=True, seconds=3.5),
        Label("t3", "ann", "hallucinated", spans=(Span(0, len(answers["t3"])),)),
        Label("t3", ANN, "unsure"),
    ]  # fmt: skip


def values(labels: list[Label], *names: str) -> list[tuple[object, ...]]:
    rows = [tuple(getattr(label, name) for name in names) for label in labels]
    return sorted(rows, key=repr)


@pytest.mark.parametrize("name", FORMATS)
def test_what_goes_out_comes_back_in_an_empty_table(name: str, tmp_path: Path) -> None:
    answers = ANSWERS | {"=t4": DECOMPOSED}
    first, second = (
        fill(open_store(f"sqlite:///{tmp_path}/{each}.db", create=True), answers) for each in ("one", "two")
    )
    first.labels.add_many(some_labels(), now=NOW)
    path = tmp_path / ("labels.csv" if name == "csv" else "labels.json")
    written = write_file(first, path, format=name)
    labels, rejected, others = take(second, path)
    assert (written.labels, rejected, others) == (7, [], {})
    second.labels.add_many(labels, now=NOW)
    parts = ["trace_id", "verdict", "spans", "kinds", "labeller", "note", "adjudicates"]
    if not written.lost.get("time"):
        parts += ["seconds", "created_at"]
    assert values(list(second.labels.export()), *parts) == values(list(first.labels.export()), *parts)
    assert second.labels.gold_counts() == first.labels.gold_counts()
    assert LABELS.matches(path.read_bytes())  # so that --force may replace it
    again, _, _ = take(second, path)
    assert second.labels.add_many(again, now=NOW)[0] == 0


def test_what_a_format_cannot_hold_is_counted(store: Store, tmp_path: Path) -> None:
    fill(store)
    labels = [
        Label("t1", "ann", "clean"),
        Label("t1", "ann", "hallucinated", spans=(Span(21, 25),), seconds=2.0),
        Label("t1", "bob", "clean"),
    ]
    store.labels.add_many(labels, now=NOW)
    lost = {name: dict(write_file(store, tmp_path / "x", format=name).lost) for name in FORMATS}
    assert lost == {
        "jsonl": {},
        "csv": {},
        "label-studio": {},
        # Argilla's page counts the emoji twice, and its server does not, so it takes the span for too long.
        "argilla": {"earlier": 1, "time": 2, "seconds": 1, "past_end": 1},
        "phoenix": {"earlier": 1, "no_span": 2},
    }


def test_offsets_of_argilla_are_those_of_a_browser(store: Store, tmp_path: Path) -> None:
    fill(store).labels.add_many([Label("t1", "ann", "hallucinated", spans=(Span(2, 10),))], now=NOW)
    write_file(store, path := tmp_path / "x.json", format="argilla")
    (record,) = json.loads(path.read_text())
    ((span,),) = (each["value"] for each in record["responses"]["spans"])
    units = record["fields"]["answer"].encode("utf-16-le")
    assert units[2 * span["start"] : 2 * span["end"]].decode("utf-16-le") == "Shipping"


def test_a_span_goes_to_phoenix_under_its_own_id(store: Store, tmp_path: Path) -> None:
    trace_id = f"{'0' * 31}1-{SPAN_ID}"
    fill(store).labels.add_many([Label(trace_id, "ann", "unsure")], now=NOW)
    path = tmp_path / "x.json"
    assert write_file(store, path, format="phoenix").lost == {}
    (annotation,) = json.loads(path.read_text())["data"]
    assert (annotation["span_id"], annotation["annotator_kind"]) == (SPAN_ID, "HUMAN")
    assert annotation["result"] == {"label": "unsure", "score": None, "explanation": None}


@settings(max_examples=200)
@given(text=st.text(st.sampled_from("aé\u0301ש\u200f👍🏽\U0001f1e9한\n")), data=st.data())
def test_utf16_units_are_those_of_the_encoding(text: str, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(text)))
    units = len(text[:index].encode("utf-16-le")) // 2
    assert (to_utf16(text, index), from_utf16(text, units)) == (units, index)
    beyond = len(text.encode("utf-16-le")) // 2 + 1
    assert from_utf16(text, beyond) is None
    assert from_utf16(text, -1) is None


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(before=st.text("a👍e\u0301"), part=st.text("xש🚀\u0301", min_size=1), after=st.text("b👍"))
def test_a_quoted_span_is_found_in_either_unit(before: str, part: str, after: str) -> None:
    answer = before + part + after
    units = [len(each.encode("utf-16-le")) // 2 for each in (before, before + part)]
    for start, end in ((len(before), len(before) + len(part)), units):
        (span,) = place_spans([Span(start, end)], [part], answer)
        assert answer[span.start : span.end] == part


def test_a_break_in_a_quote_may_be_written_in_any_way() -> None:
    span = Span(0, 4)
    assert place_spans([span], ["a\\nb"], "a\r\nb") == (span,)
    with pytest.raises(FieldError, match="is 'a\\\\r\\\\nb' in the answer, the file says 'ab'"):
        place_spans([span], ["ab"], "a\r\nb")


def test_a_list_that_breaks_off_keeps_what_came_before(store: Store, tmp_path: Path) -> None:
    fill(store)
    path = tmp_path / "cut.json"
    text = (FILES / "argilla.json").read_text()
    path.write_text(text[: text.index('{"id": "t3"') + 20])
    labels, rejected, _ = take(store, path)
    assert [label.trace_id for label in labels] == ["t1", "t1"]
    assert rejected[-1].last
    assert rejected[-1].line == line_of("argilla.json", '{"id": "t3"')


def test_a_label_of_a_purged_trace_keeps_its_verdict(store: Store, tmp_path: Path) -> None:
    fill(store).labels.add_many([Label("t3", "ann", "hallucinated", spans=(Span(0, 5),), note="plain")], now=NOW)
    for name in FORMATS:
        write_file(store, tmp_path / name, format=name)
    purge(store, Chosen(trace_ids=("t3",)), by="ann", now=NOW)
    for name in FORMATS:
        labels = [row for row in read_file(store, tmp_path / name, format=name) if isinstance(row, Label)]
        assert [(label.trace_id, label.verdict) for label in labels] == [("t3", "hallucinated")]
        store.labels.add_many(labels, now=NOW)
        assert "plain" not in str(list(store.labels.export()))  # neither note nor span of what was purged comes back
        lost = write_file(store, tmp_path / f"{name}.later", format=name).lost
        assert lost.get("purged", 0) == (name in ("label-studio", "argilla"))


def test_a_wrong_name_of_a_format(store: Store, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no format 'doccano' of labels; there are jsonl, csv, label-studio"):
        write_file(store, tmp_path / "x", format="doccano")


def test_hostile_names_reach_no_terminal(store: Store, tmp_path: Path) -> None:
    task = {"data": {"trace_id": "\x1b[31mno"}, "annotations": [{"result": [
        {"from_name": "\x1b]0;x", "type": "rating", "value": {}},
        {"from_name": "verdict", "type": "choices", "value": {"choices": ["clean"]}}]}]}  # fmt: skip
    (path := tmp_path / "x.json").write_text(json.dumps([task]))
    _, (rejected,), others = take(store, path)
    assert "\x1b" not in rejected.reason + "".join(others)
    assert replace(rejected, reason="") == Rejected(1, "")
