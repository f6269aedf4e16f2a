"""Taking a file into a store: batches, duplicates, conflicts, strictness, progress."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from ingesting import good

from calibrate.errors import BadInput
from calibrate.ingest import ImportReport, import_file
from calibrate.ingest.base import Rejected


def test_a_second_import_adds_nothing(sink, jsonl):
    path = jsonl(good("a", label="clean"), good("b"), {"answer": "no id", "label": "hallucinated"})
    first = import_file(sink, path, labels_as="ann")
    again = import_file(sink, path, labels_as="ann")
    assert (first.imported, first.duplicates, first.labels, first.rejected) == (3, 0, 2, 0)
    assert (again.imported, again.duplicates, again.labels, again.rejected) == (0, 3, 0, 0)


def test_labels_come_in_only_with_a_name(sink, jsonl):
    assert import_file(sink, jsonl(good(label="clean"))).labels == 0
    assert sink.labels == {}


def test_bad_lines_and_conflicts_are_reported_in_line_order_and_the_rest_is_kept(sink, jsonl):
    path = jsonl(good("a"), good("a"), good("a", answer="Other."), "oops", good("b"))
    report = import_file(sink, path)
    assert report == ImportReport(
        imported=2,
        duplicates=1,
        rejected=2,
        errors=(
            Rejected(
                3,
                "trace id 'a' is already in the store with other content; the first is kept; give this one its own id",
            ),
            Rejected(4, "not JSON: Expecting value at column 1"),
        ),
        share=1.0,
    )
    assert sink.traces["a"].answer == "She did [1]."


def test_strict_imports_nothing_when_a_line_is_bad(sink, jsonl):
    path = jsonl(good("a"), good("a", answer="Other."), *["oops"] * 12)
    with pytest.raises(BadInput) as caught:
        import_file(sink, path, strict=True)
    message = str(caught.value)
    assert message.startswith("nothing was imported: 13 lines of ")
    assert "\n  line 2: trace id 'a' has other content in line 1\n  line 3: not JSON" in message
    assert message.endswith("and 3 more")
    assert sink.batches == []


def test_strict_takes_a_file_without_fault(sink, jsonl):
    assert import_file(sink, jsonl(good("a"), good("b"), good("a")), strict=True).imported == 2


def test_an_empty_file_is_refused_and_touches_nothing(sink, tmp_path):
    path = tmp_path / "x.jsonl"
    path.touch()
    for strict in (True, False):
        with pytest.raises(BadInput, match="is empty"):
            import_file(sink, path, strict=strict)
    assert sink.batches == []


def test_batches_progress_and_share(sink, jsonl):
    seen = []
    report = import_file(sink, jsonl(*(good(f"t{at}") for at in range(25))), batch_size=10, on_progress=seen.append)
    assert sink.batches == [10, 10, 5]
    assert [one.imported for one in seen] == [10, 20, 25]
    assert all(0 < one.share <= 1 for one in seen)
    assert (report.imported, report.share, report.stopped) == (25, 1.0, False)


def test_a_stop_keeps_the_batches_so_far(sink, jsonl):
    path = jsonl(*(good(f"t{at}") for at in range(25)))
    report = import_file(sink, path, batch_size=10, should_stop=lambda: len(sink.traces) >= 10)
    assert (report.imported, report.stopped) == (10, True)
    assert import_file(sink, path, batch_size=10).imported == 15


def test_a_file_of_nothing_but_bad_lines_still_shows_progress(sink, jsonl):
    seen = []
    report = import_file(sink, jsonl(*[{"answer": None}] * 2500), batch_size=500, on_progress=seen.append)
    assert (report.rejected, len(report.errors), report.errors[-1].line) == (2500, 1000, 1000)
    assert [one.rejected for one in seen] == [500, 1000, 1500, 2000, 2500]
    assert sink.batches == []


def test_what_was_repaired_or_left_out_is_counted(sink, jsonl):
    path = jsonl(good("a\x00", answer="x\ud800"), good("b", extra={"claims": []}), good("c", extra={"claims": []}))
    report = import_file(sink, path)
    assert report.repaired == 2
    assert report.left_out == {"extra.claims": 2}


def test_long_answers_do_not_add_up_in_memory(sink, tmp_path):
    path = tmp_path / "long.jsonl"
    with path.open("w") as file:
        for at in range(60):
            file.write(json.dumps(good(f"t{at}", answer="word " * 200_000)) + "\n")

    class Forgetful(type(sink)):
        def add(self, records, *, labels_as, now, again=False):
            added = super().add(records, labels_as=labels_as, now=now, again=again)
            self.traces.clear()
            return added

    forgetful = Forgetful()
    tracemalloc.start()
    report = import_file(forgetful, path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert report.imported == 60
    assert max(forgetful.batches) <= 9
    assert peak < 40e6


def test_a_strict_import_shows_how_far_it_has_checked_and_can_be_stopped_there(sink, jsonl):
    path = jsonl(*(good(f"t{at}") for at in range(25)))
    seen = []
    import_file(sink, path, strict=True, batch_size=10, on_progress=seen.append)
    assert [(one.checked, one.imported) for one in seen] == [(10, 0), (20, 0), (0, 10), (0, 20), (0, 25)]
    sink.batches.clear()
    report = import_file(sink, path, strict=True, batch_size=10, should_stop=lambda: True)
    assert (report.stopped, report.checked, report.imported, sink.batches) == (True, 10, 0, [])


def test_scores_that_are_none_are_grouped_with_the_reason(sink, jsonl):
    odd = {"a": True, "b": "0.3", "c": {"score": 1}, "d": 10**400, "e": [1], "none": None}
    many = {f"n{i}": i for i in range(130)} | {"late": "x"}
    lines = [{"id": "a", "answer": "x", "scores": odd}, {"id": "b", "answer": "y", "scores": many}]
    lines += [{"id": f"c{i}", "answer": f"z{i}", "scores": {f"odd {i}": "x"}} for i in range(20)]
    lines += [
        {"id": "d", "answer": "v", "scores": [{"name": "j", "value": 1}, {"name": "j", "value": 2}, {"value": 1}]}
    ]
    left_out = import_file(sink, jsonl(*lines)).left_out
    assert {name: n for name, n in left_out.items() if not name.startswith("scores.odd")} == {
        "scores.a (true or false, no number)": 1,
        "scores.b (text, no number)": 1,
        'scores.c (without a "value")': 1,
        "scores.d (not finite)": 1,
        "scores.e (no number)": 1,
        "scores (beyond the first 100 of a trace)": 1,
        "scores (under other names)": 18,
        "scores (without a name)": 1,
    }
