"""The requests of OpenAI's batch API, and which of them an answer belongs to.

An output line names its request by `custom_id` alone, and batches use the same ids again: `request-1`. A request is
taken from the output file itself, else from the file beside it with the same name (`faq_input`, `faq_output`), else
from whichever files beside it have the id, where all of them say the same.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from calibrate.errors import BadInput
from calibrate.ingest.base import Row
from calibrate.ingest.files import HEAD_BYTES, InputFile
from calibrate.ingest.json_document import json_objects
from calibrate.ingest.values import FieldError
from calibrate.sanitize import visible

_ID = re.compile(rb'"custom_id"\s*:')
_REST = re.compile(rb'"url"\s*:\s*"/v1/|"status_code"\s*:')
_ROLES = frozenset(
    ("input", "inputs", "request", "requests", "output", "outputs", "result", "results", "response", "responses",
     "answer", "answers", "batch")
)  # fmt: skip
"""Words that tell the files of one batch apart, and no batch from another."""
_MOST_NAMED = 5


def has_lines(head: bytes) -> bool:
    """Whether a file holds lines of the batch API."""
    return bool(_ID.search(head) and _REST.search(head))


def is_request(fields: Mapping[str, Any]) -> bool:
    """Whether a line is a request, whose answer has another line."""
    return "response" not in fields and "error" not in fields and "body" in fields


class Requests:
    """The requests of a file of answers, from it and from the files beside it. Those are noted in `file.read_with`
    where a request of theirs is used."""

    def __init__(self, file: InputFile) -> None:
        self._file = file
        self._stored = sqlite3.connect("")  # a temporary file: a batch may be larger than memory
        self._stored.execute("PRAGMA synchronous = OFF")
        self._stored.execute("CREATE TABLE request (id TEXT, file TEXT, body TEXT)")
        others = list(_beside(file.path))
        alike = [path for path in others if _batch_of(path) == _batch_of(file.path)]
        for path in (file.path, *(alike or others)):
            self._keep(path)
        self._stored.execute("CREATE INDEX by_id ON request (id)")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stored.close()

    def find(self, name: object) -> dict[str, Any]:
        """The request of that id; empty where none is at hand. Raises FieldError where several differ."""
        if not isinstance(name, str):
            return {}
        rows = self._stored.execute("SELECT DISTINCT file, body FROM request WHERE id = ?", (name,)).fetchall()
        own = [row for row in rows if row[0] == self._file.name]
        bodies = {body for _, body in own or rows}
        if len(bodies) > 1:
            raise _ambiguous(name, sorted({file for file, _ in own or rows}))
        if not bodies:
            return {}
        if not own:
            self._file.read_with.update(file for file, _ in rows)
        body: dict[str, Any] = json.loads(bodies.pop())
        return body

    def _keep(self, path: Path) -> None:
        with InputFile(path) as file:
            for item in json_objects(file):
                body = item.fields.get("body") if isinstance(item, Row) else None
                if isinstance(item, Row) and isinstance(body, dict) and isinstance(item.fields.get("custom_id"), str):
                    row = (item.fields["custom_id"], path.name, json.dumps(body, sort_keys=True))
                    self._stored.execute("INSERT INTO request VALUES (?, ?, ?)", row)


def body_of(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a request or a response holds, without the HTTP around it. Raises FieldError for a failed request."""
    body = part.get("body", part)
    failed = body.get("error") if isinstance(body, dict) else None
    status = part.get("status_code")
    if failed or (type(status) is int and status >= 400):
        message = failed.get("message") if isinstance(failed, dict) else failed
        why = f": {visible(message, 200)}" if isinstance(message, str) else ""
        raise FieldError(f"the request failed{f' with the status {status}' if type(status) is int else ''}{why}")
    if not isinstance(body, dict):
        raise FieldError("the request was not answered")
    return body


def only_requests(file: InputFile) -> BadInput:
    """The refusal of a file without an answer."""
    return BadInput(
        f"{file.name} holds requests of the batch API and no answer: import the output file, with this one beside it"
    )


def _ambiguous(name: str, files: list[str]) -> FieldError:
    shown = ", ".join(files[:_MOST_NAMED]) + (", …" if len(files) > _MOST_NAMED else "")
    where = f"{shown} have different requests" if len(files) > 1 else f"{shown} has several requests"
    return FieldError(
        f"custom_id {visible(name, 60)!r}: {where} of that id, and nothing tells which was answered; name the files of "
        "a batch alike (faq_input.jsonl, faq_output.jsonl), or give it a folder of its own"
    )


def _batch_of(path: Path) -> list[str]:
    """The words of a file's name that name its batch."""
    words = re.split(r"[\W_]+", path.name.split(".")[0].lower())
    return [word for word in words if word and word not in _ROLES]


def _beside(path: Path) -> Iterator[Path]:
    """The files in the same folder that begin with requests of the batch API, and have no answers of their own."""
    for other in sorted(path.parent.glob("*.jsonl")):
        if other == path or not other.is_file():
            continue
        with other.open("rb") as opened:
            head = opened.read(HEAD_BYTES)
        is_asking = head.lstrip().startswith(b"{") and all(key in head for key in (b'"body"', b'"method"'))
        if is_asking and _ID.search(head) and b'"status_code"' not in head:
            yield other
