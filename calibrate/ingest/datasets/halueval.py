"""HaluEval: general, question answering, dialogue and summarization files (RUCAIBox/HaluEval, data/*.json).

The files are JSON lines though they end in `.json`. As its README.md and evaluation/evaluate.py have them:

- `qa_data.json`: knowledge, question, right_answer, hallucinated_answer
- `dialogue_data.json`: knowledge, dialogue_history, right_response, hallucinated_response
- `summarization_data.json`: document, right_summary, hallucinated_summary
- `general_data.json`: ID, user_query, chatgpt_response, hallucination_label (yes or no); in later versions
  `hallucination` and `hallucination_spans`, texts of the response

A line with a right and a hallucinated answer becomes two traces of one group. Copies of the data set that hold one of
the two, with `hallucination`, are read too (pminervini/HaluEval on the Hugging Face hub).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from calibrate.ingest.base import Format, Rejected, Row
from calibrate.ingest.datasets.objects import rows_of, text, texts
from calibrate.ingest.files import InputFile
from calibrate.ingest.values import FieldError, expected

TITLE = "HaluEval data set"


class _Task(NamedTuple):
    """The names of one file's fields: what was asked and given, and what its answers are called."""

    name: str
    question: str | None
    given: str
    answer: str


_TASKS = (
    _Task("qa", "question", "knowledge", "answer"),
    _Task("dialogue", "dialogue_history", "knowledge", "response"),
    _Task("summarization", None, "document", "summary"),
)
_KEYS = re.compile(
    rb'"(?:hallucinated_(?:answer|response|summary)|chatgpt_response)"\s*:'
    rb'|"hallucination"\s*:\s*"(?:yes|no)"'
)
_OPENING = re.compile(rb'^[\s\xef\xbb\xbf\[]*\{\s*"(?:knowledge|document|ID|user_query|question|dialogue_history)"\s*:')


def _sniff(head: bytes) -> bool:
    return bool(_OPENING.match(head) and _KEYS.search(head))


def _traces(fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "chatgpt_response" in fields:
        yield _general(fields)
        return
    for task in _TASKS:
        names = [
            name for name in (f"right_{task.answer}", f"hallucinated_{task.answer}", task.answer) if name in fields
        ]
        if names and task.given in fields:
            for name in names:
                yield _trace(task, fields, name)
            return
    raise FieldError("no line of HaluEval: it has neither chatgpt_response nor a right_ or hallucinated_ answer")


def _trace(task: _Task, fields: Mapping[str, Any], name: str) -> dict[str, Any]:
    given = text(fields, task.given)
    question = text(fields, task.question) if task.question else None
    digest = hashlib.blake2b("\x00".join((given, question or "")).encode(), digest_size=8).hexdigest()
    is_clean = name.startswith("right_")
    return {
        "question": question,
        "sources": {"1": given},
        "answer": text(fields, name),
        "operation": task.name,
        "label": _verdict(fields) if name == task.answer else "clean" if is_clean else "hallucinated",
        "group": f"halueval/{task.name}/{digest}",
        "dataset": "HaluEval",
    }


def _general(fields: Mapping[str, Any]) -> dict[str, Any]:
    answer, verdict = text(fields, "chatgpt_response"), _verdict(fields)
    spans = []
    for quote in texts(fields, "hallucination_spans"):
        start = answer.find(quote)
        if quote and start >= 0:  # some quotes were written anew
            spans.append({"start": start, "end": start + len(quote)})
    number = fields.get("ID")
    return {
        "trace_id": f"halueval-general-{number}" if isinstance(number, (str, int)) else None,
        "question": text(fields, "user_query"),
        "answer": answer,
        "model": "chatgpt",
        "operation": "general",
        "label": verdict,
        "spans": spans if verdict == "hallucinated" else [],
        "dataset": "HaluEval",
    }


def _verdict(fields: Mapping[str, Any]) -> str:
    name = "hallucination_label" if "hallucination_label" in fields else "hallucination"
    word = text(fields, name).strip().lower()
    if word not in ("yes", "no"):
        raise expected(name, "yes or no", fields[name])
    return "hallucinated" if word == "yes" else "clean"


def _rows(file: InputFile, columns: Mapping[str, str] | None = None) -> Iterator[Row | Rejected]:
    return rows_of(file, columns or {}, TITLE, _traces)


FORMATS = (Format("halueval", (), _sniff, _rows, _rows, TITLE, benchmark=True),)
