"""The public data sets of ../shared/data: read whole, with the counts their README states."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from calibrate.ingest import Record, import_file, read

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
ROW = re.compile(r"\| (\S+\.jsonl\.gz) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|[^|]*\| (.*) \|")

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not (SHARED / "README.md").is_file(), reason=f"the shared data is not at {SHARED}"),
]


def stated() -> dict[str, tuple[tuple[int, ...], dict[str, int]]]:
    """Per file: n, clean, hallucinated, null; and how often which field is filled."""
    readme = SHARED / "README.md"
    rows = ROW.findall(readme.read_text()) if readme.is_file() else []
    return {
        name: (tuple(map(int, counts)), {field: int(count) for field, count in re.findall(r"(\w+) (\d+)", filled)})
        for name, *counts, filled in rows
    }


STATED = stated()


def test_the_readme_lists_every_file():
    assert set(STATED) == {path.name for path in SHARED.glob("*.jsonl.gz")}


@pytest.mark.parametrize("name", STATED)
def test_every_record_is_read(name):
    found = list(read(SHARED / name))
    assert all(isinstance(one, Record) for one in found)
    labels = Counter(one.labels[0].verdict if one.labels else None for one in found)
    counts, filled = STATED[name]
    assert (len(found), labels["clean"], labels["hallucinated"], labels[None]) == counts
    traces = [one.trace for one in found]
    ours = {
        "question": sum(trace.question is not None for trace in traces),
        "context": sum(trace.context is not None for trace in traces),
        "sources": sum(bool(trace.sources) for trace in traces),
        "tokens": sum(trace.tokens is not None for trace in traces),
        "samples": sum(bool(trace.alternatives) for trace in traces),
        "schema": sum(trace.schema is not None for trace in traces),
        "spans": sum(bool(label.spans) for one in found for label in one.labels),
    }
    assert {field: count for field, count in ours.items() if count} == filled


def test_a_whole_file_goes_in_once(sink):
    path = SHARED / "ragtruth_qa.jsonl.gz"
    first = import_file(sink, path, labels_as="ragtruth")
    again = import_file(sink, path, labels_as="ragtruth")
    assert (first.imported, first.labels, first.rejected) == (378, 378, 0)
    assert (again.imported, again.duplicates, again.labels) == (0, 378, 0)
    groups = Counter(trace.group for trace in sink.traces.values())
    assert max(groups.values()) > 1
