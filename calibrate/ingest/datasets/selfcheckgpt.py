"""SelfCheckGPT's data set: passages of GPT-3 about people, each sentence annotated (wiki_bio_gpt3_hallucination).

One JSON list, or JSON lines. As the README.md of potsawee/selfcheckgpt and the card of the data set have it, an item
holds `gpt3_text`, `gpt3_sentences`, `annotation` (for each sentence accurate, minor_inaccurate or major_inaccurate),
`gpt3_text_samples`, `wiki_bio_text` and `wiki_bio_test_idx`. A passage is hallucinated if one of its sentences is not
accurate. The Wikipedia text is left out: the model never saw it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from calibrate.ingest.base import Format, Rejected, Row
from calibrate.ingest.datasets.objects import rows_of, text, texts
from calibrate.ingest.files import InputFile
from calibrate.ingest.values import FieldError, expected

TITLE = "SelfCheckGPT data set"
ANNOTATIONS = ("accurate", "minor_inaccurate", "major_inaccurate")

_OPENING = re.compile(rb"^[\s\xef\xbb\xbf\[]*\{")
_KEY = re.compile(rb'"gpt3_(?:text|sentences)"\s*:')


def _sniff(head: bytes) -> bool:
    return bool(_OPENING.match(head) and _KEY.search(head))


def _traces(fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
    answer = text(fields, "gpt3_text")
    number = fields.get("wiki_bio_test_idx")
    spans = _spans(fields, answer)
    yield {
        "trace_id": f"wikibio-{number}" if type(number) is int else None,
        "answer": answer,
        "alternatives": texts(fields, "gpt3_text_samples"),
        "model": "text-davinci-003",
        "operation": "biography",
        "label": ("hallucinated" if spans else "clean") if texts(fields, "annotation") else None,
        "spans": spans,
        "dataset": "wiki_bio_gpt3_hallucination",
    }


def _spans(fields: Mapping[str, Any], answer: str) -> list[dict[str, Any]]:
    """The sentences that are not accurate, where they stand in the passage; all of it for one that is not found."""
    sentences, annotations = texts(fields, "gpt3_sentences"), texts(fields, "annotation")
    if len(sentences) != len(annotations):
        raise FieldError(f"annotation: {len(annotations)} for {len(sentences)} sentences")
    spans, at = [], 0
    for sentence, annotation in zip(sentences, annotations, strict=True):
        if annotation not in ANNOTATIONS:
            raise expected("annotation", f"one of {', '.join(ANNOTATIONS)}", annotation)
        start = answer.find(sentence, at)
        begins, ends = (start, start + len(sentence)) if start >= 0 else (0, len(answer))
        at = ends if start >= 0 else at
        if annotation != "accurate":
            spans.append({"start": begins, "end": ends, "type": annotation})
    return spans


def _rows(file: InputFile, columns: Mapping[str, str] | None = None) -> Iterator[Row | Rejected]:
    return rows_of(file, columns or {}, TITLE, _traces)


FORMATS = (Format("selfcheckgpt", (), _sniff, _rows, _rows, TITLE, benchmark=True),)
