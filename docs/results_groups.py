"""Which traces of a labelled data set hang together, for its import: only some of the files say so themselves."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

VERDICTS = ("clean", "hallucinated")
FROM = ("passage_trace_id", "answer_trace_id", "source_group")  # what a trace was cut from, in its `extra`


def grouped(path: Path, folder: Path) -> Path:
    """A copy of the file with the records that have a verdict, each with its group: a store in which some traces have
    none would ask how the others were chosen."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    copy = folder / path.name.removesuffix(".gz")
    with copy.open("w", encoding="utf-8") as file:
        for record, group in zip(records, groups_of(records), strict=True):
            if record["label"] in VERDICTS:
                file.write(json.dumps(record | {"group": group}) + "\n")
    return copy


def groups_of(records: Sequence[dict[str, Any]]) -> list[str]:
    """A name per record, the same for records that a chain of shared questions, sources or passages connects."""
    above = list(range(len(records)))

    def root(place: int) -> int:
        while above[place] != place:
            above[place] = place = above[above[place]]
        return place

    first: dict[tuple[str, str], int] = {}
    for place, record in enumerate(records):
        for key in _shared(record):
            above[root(place)] = root(first.setdefault(key, place))
    return [f"group {root(place)}" for place in range(len(records))]


def _shared(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if record["question"]:
        yield "question", record["question"]
    for text in (record["sources"] or {}).values():
        yield "source", text
    extra = record["extra"] or {}
    for key in FROM:
        if key in extra:
            yield key, str(extra[key])
