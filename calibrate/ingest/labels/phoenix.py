"""Annotations of OpenInference spans, as Phoenix takes and returns them: one label each, its text the verdict.

What an annotation has no field for (kinds, spans, the labeller, the time) stands in its `metadata`. The offsets there
count code points. Annotations made by a model or by code are no labels.

References
----------
The fields: https://arize.com/docs/phoenix/tracing/how-to-tracing/feedback-and-annotations/capture-feedback
The API, POST /v1/span_annotations: https://arize-ai.github.io/phoenix/functions/_arizeai_phoenix-client.spans_types.toSpanAnnotationData.html
"factual" for clean is the word of Phoenix's own evaluator of hallucinations (HALLUCINATION_PROMPT_RAILS_MAP)
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TextIO

from calibrate.ingest.base import Row
from calibrate.ingest.labels.base import (
    LabelFormat,
    LeftOut,
    Lost,
    Parsed,
    Read,
    Written,
    by_trace,
    in_batches,
    rejection,
    standing,
)
from calibrate.ingest.labels.documents import objects
from calibrate.ingest.labels.fields import build_label, label_fields
from calibrate.ingest.labels.questions import VERDICT_NAMES
from calibrate.ingest.values import MAX_ID_LENGTH, FieldError, expected, name_or_none
from calibrate.types import Label, Trace

NAME = "hallucination"
"""The name that the annotations have in Phoenix."""

SPAN = re.compile("(?:([0-9a-f]{32})-)?([0-9a-f]{16})")
"""A trace's id that names an OpenTelemetry span, as `trace_id_of` makes it."""

_SCORES = {"hallucinated": 1.0, "clean": 0.0, "unsure": None}
_OWN_FIELDS = ("labeller", "kinds", "spans", "seconds", "created_at", "sample", "adjudicates")


def _recognises(fields: Mapping[str, object]) -> bool:
    return "annotator_kind" in fields and ("span_id" in fields or "trace_id" in fields)


def _read(rows: Iterable[Row]) -> Iterator[Read]:
    for number, row in enumerate(rows, start=1):
        name = row.fields.get("name")
        if not isinstance(name, str) or name.lower() not in VERDICT_NAMES:
            yield LeftOut(f"annotations {str(name)[:40]!r}")
        elif row.fields.get("annotator_kind") != "HUMAN":
            yield LeftOut(f"annotations by {str(row.fields.get('annotator_kind'))[:20]}")
        else:
            where = f"annotation {number}"
            try:
                yield replace(_parse(row), where=where)
            except FieldError as error:
                yield rejection(row.line, where, error)


def _parse(row: Row) -> Parsed:
    fields = row.fields
    result, metadata = fields.get("result") or {}, fields.get("metadata") or {}
    for name, value in (("result", result), ("metadata", metadata)):
        if not isinstance(value, dict):
            raise expected(name, "an object", value)
    span, trace = (name_or_none(fields.get(name), name, MAX_ID_LENGTH) for name in ("span_id", "trace_id"))
    own = name_or_none(metadata.get("trace_id"), "metadata.trace_id", MAX_ID_LENGTH)
    ids = [own, f"{trace}-{span}" if trace and span else None, span, None if span else trace]
    ids = [each for each in ids if each]
    if not ids:
        raise FieldError("span_id: missing")
    verdict = result.get("label")
    given = {name: metadata[name] for name in _OWN_FIELDS if metadata.get(name) is not None}
    labeller = given.get("labeller") or fields.get("identifier") or fields.get("user_id")
    label = build_label(
        {
            "created_at": fields.get("created_at"),
            **given,
            "trace_id": ids[0],
            "labeller": labeller,
            "verdict": "clean" if isinstance(verdict, str) and verdict.strip().lower() == "factual" else verdict,
            "note": result.get("explanation"),
        }
    )
    return Parsed(row.line, label, ids=tuple(dict.fromkeys(each for each in ids if each)))


def _write(labels: Iterable[Label], load: Callable[[Sequence[str]], Mapping[str, Trace]], file: TextIO) -> Written:
    lost: Counter[Lost] = Counter()
    count, comma = 0, "\n"
    file.write('{"data": [')
    for trace_id, group, _ in in_batches(by_trace(labels), lambda ids: {}):
        names = SPAN.fullmatch(trace_id)
        for label in standing(group, lost):
            file.write(comma + json.dumps(_annotation(label, names[2] if names else trace_id), ensure_ascii=False))
            comma = ",\n"
            count += 1
            lost["no_span"] += names is None
    file.write("\n]}\n")
    return Written(count, +lost)


def _annotation(label: Label, span_id: str) -> dict[str, Any]:
    fields = label_fields(label)
    metadata = {name: fields[name] for name in _OWN_FIELDS if fields[name] not in (None, [], "")}
    # Phoenix keeps one annotation a span, name and identifier: two voices need two identifiers.
    return {
        "span_id": span_id,
        "name": NAME,
        "annotator_kind": "HUMAN",
        "result": {"label": label.verdict, "score": _SCORES[label.verdict], "explanation": fields["note"]},
        "metadata": {"trace_id": label.trace_id, **metadata},
        "identifier": label.labeller + (" (adjudicates)" if label.adjudicates else ""),
    }


PHOENIX = LabelFormat(
    "phoenix", "Phoenix", (b'{"data": [\n{"span_id": ', b'{"data": [\n]'), objects, _recognises, _read, _write
)
