"""Phoenix: spans and annotations in, annotations out. The client is arize-phoenix-client 3.

Its own environment variables say where the server is and hold the key: PHOENIX_ENDPOINT, PHOENIX_API_KEY,
PHOENIX_CLIENT_HEADERS, PHOENIX_PROJECT_NAME.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from calibrate.errors import BadInput
from calibrate.ingest.base import Rejected, Row
from calibrate.ingest.exports.phoenix import remark_of, span_of
from calibrate.ingest.exports.remarks import Remarks, Verdicts, sort_remarks
from calibrate.ingest.labels.phoenix import PHOENIX as LABELS
from calibrate.ingest.spans.answers import answers_of, row_of
from calibrate.ingest.spans.reader import Reader
from calibrate.ingest.spans.record import SpanRecord, split_answer_id
from calibrate.ingest.systems.base import Note, Page, PullRequest, need
from calibrate.ingest.systems.patience import patiently, status_of
from calibrate.ingest.systems.slices import Slices
from calibrate.ingest.systems.written import WrittenScore, scores_of
from calibrate.ingest.values import FieldError
from calibrate.sanitize import one_line
from calibrate.urls import redact

MOST = 2_000
"""Spans that one slice of time may hold: they are held in memory."""
AT_ONCE = 50  # traces, or answers, of one request: their ids stand in its address
NOTES_AT_ONCE = 200
TIMEOUT = 60  # seconds
DEFAULT = "default"
_OWN = frozenset(("trace_id", "kinds", "spans", "labeller"))  # what `labels export --format phoenix` writes
T = TypeVar("T")


class PhoenixServer:
    """A Phoenix, as its client finds it.

    Raises
    ------
    Unavailable
        If the client is not installed.
    """

    def __init__(self, request: PullRequest, what: str) -> None:
        client = need("phoenix.client", what, install="arize-phoenix-client")
        config = need("phoenix.client.utils.config", what, install="arize-phoenix-client")
        url = request.url or request.stored.get("url")
        self.url = str(url or config.get_base_url()).rstrip("/")
        self._request, self._secrets = request, (os.environ.get("PHOENIX_API_KEY", ""),)
        self.client = client.Client(base_url=url) if url else client.Client()

    def call(self, ask: Callable[[], T]) -> T:
        """Make one request, patiently."""
        return patiently(ask, self._request, f"Phoenix at {redact(self.url)}", secrets=self._secrets)

    def spans(self, project: str, **wanted: Any) -> list[dict[str, Any]]:
        """Read spans. Raises BadInput where there is no such project."""
        try:
            listed: list[dict[str, Any]] = self.call(
                lambda: _objects(self.client.spans.get_spans(project_identifier=project, timeout=TIMEOUT, **wanted))
            )
            return listed
        except BadInput as error:
            if status_of(error.__cause__ or error) != 404:
                raise
            names = ", ".join(sorted(each["name"] for each in self.call(self.client.projects.list))[:20])
            raise BadInput(
                f"Phoenix at {redact(self.url)} has no project {project!r}; it has {names}: name one with --project"
            ) from error

    def annotations(self, project: str, spans: Sequence[str]) -> list[dict[str, Any]]:
        """Read the annotations on spans. Where it has none of the spans, there are none."""
        try:
            listed: list[dict[str, Any]] = self.call(
                lambda: _objects(
                    self.client.spans.get_span_annotations(span_ids=spans, project_identifier=project, timeout=TIMEOUT)
                )
            )
            return listed
        except BadInput as error:
            if status_of(error.__cause__ or error) != 404:
                raise
            return []  # that the project is there, `spans` has seen


class PhoenixSource:
    """A project of Phoenix that is open for reading: spans by the time at which they began, then their annotations."""

    system = "phoenix"

    def __init__(self, request: PullRequest) -> None:
        self._request = request
        self._server = PhoenixServer(request, "`pull phoenix`")
        rules = list(request.options.get("verdicts") or request.stored.get("verdicts") or ())
        self._verdicts = Verdicts(rules)
        self._reader = Reader(names=request.columns, tool_results=request.tool_results)
        self._project = str(
            request.project or request.stored.get("project") or os.environ.get("PHOENIX_PROJECT_NAME") or DEFAULT
        )
        self._server.spans(self._project, limit=1)  # a project that is not there is refused before the pull is kept
        shown = redact(self._server.url)
        self.name = request.name or f"phoenix {self._project} at {shown.partition('://')[2] or shown}"
        self.settings: Mapping[str, Any] = {"url": shown, "project": self._project, "verdicts": rules}
        self._line = 0

    def fetch(self, since: datetime | None, cursor: Mapping[str, Any] | None) -> Iterator[Page]:
        """Read page by page. See `Source`."""
        slices = Slices(since, cursor, now=self._request.now(), overlap=self._request.overlap)
        for begin, end in slices:
            wanted = {"start_time": begin, "end_time": end}
            listed = self._server.spans(self._project, **wanted, limit=MOST + 1)
            if len(listed) > MOST:
                if slices.halve():
                    continue
                listed = self._server.spans(self._project, **wanted, limit=10**9)
            spans, rejected = _read(listed)
            rows: list[Row | Rejected] = [*self._rows(spans, int(end.timestamp() * 1e9)), *rejected]
            slices.read(end, len(listed))
            yield Page(rows, cursor=slices.cursor, share=slices.share)

    def remarks(self, since: datetime | None, answers: Iterator[Sequence[str]]) -> Iterator[Page]:
        """Read the annotations of answers, and of the roots of their traces. See `LateRemarks`."""
        for batch in answers:
            for start in range(0, len(batch), AT_ONCE):
                page = self._remarks(batch[start : start + AT_ONCE])
                if page is not None:
                    yield page

    def _rows(self, spans: Sequence[SpanRecord], end: int) -> Iterator[Row]:
        """The answers that began in a slice. A trace that reaches beyond it is asked for whole: its sources may lie
        before, and the inner one of two spans with the same answer behind."""
        traces: dict[str, list[SpanRecord]] = {}
        for span in spans:
            traces.setdefault(span.trace_id, []).append(span)
        inside = {(span.trace_id, span.span_id) for span in spans}
        answered = {trace_id for trace_id, listed in traces.items() if any(map(self._holds, listed))}
        partial = sorted(trace_id for trace_id in answered if not _is_whole(traces[trace_id], end))
        for start in range(0, len(partial), AT_ONCE):
            listed = self._server.spans(self._project, trace_ids=partial[start : start + AT_ONCE], limit=10**9)
            whole, _ = _read(listed)
            for trace_id in partial[start : start + AT_ONCE]:
                traces[trace_id] = [span for span in whole if span.trace_id == trace_id] or traces[trace_id]
        for trace_id in traces:
            if trace_id not in answered:
                continue
            for answer in answers_of(sorted(traces[trace_id], key=lambda span: span.started), self._reader):
                if (answer.trace_id, answer.span_id) in inside:
                    self._line += 1
                    yield row_of(answer, self._line)

    def _holds(self, span: SpanRecord) -> bool:
        return self._reader.holds(span) == "answer"

    def _remarks(self, answers: Sequence[str]) -> Page | None:
        targets: dict[str | None, str] = {}
        last: dict[str, str] = {}
        for name in answers:
            ids = split_answer_id(name)
            if ids is not None and len(ids[1]) == 16:
                targets[ids[1]] = last[ids[0]] = name
        if not targets:
            return None
        roots = self._server.spans(self._project, trace_ids=sorted(last), parent_id="null", limit=10**9)
        for root in roots:
            context = root.get("context") or {}
            answer = last.get(str(context.get("trace_id")))
            if answer is not None:
                targets.setdefault(str(context.get("span_id")), answer)
        annotations = self._server.annotations(self._project, [span for span in targets if span])
        read = self._sort(annotations, targets)
        return Page(scores=read.scores, labels=read.labels, left_out=read.left_out)

    def _sort(self, annotations: Iterable[Mapping[str, Any]], targets: Mapping[str | None, str]) -> Remarks:
        """Labels that were exported from here come back as they were; all else is sorted as of any system."""
        remarks, read = [], Remarks()
        for annotation in annotations:
            answer = targets.get(annotation.get("span_id"))
            metadata = annotation.get("metadata") or {}
            if answer and annotation.get("annotator_kind") == "HUMAN" and _OWN & metadata.keys():
                fields = {**annotation, "metadata": {**metadata, "trace_id": answer}}
                read.labels += LABELS.read(iter([Row(0, fields)]))
            else:
                remarks.append(remark_of(annotation))
        read.add(sort_remarks(remarks, targets, self._verdicts, self.system, 0))
        return read


class PhoenixAnnotator:
    """A Phoenix that is open for writing. It holds one annotation of a name and an identifier on a span."""

    def __init__(self, project: str | None = None, request: PullRequest | None = None) -> None:
        self._server = PhoenixServer(request or PullRequest(project=project), "`watch --annotate phoenix`")

    def annotate(self, notes: Sequence[Note]) -> Mapping[str, str]:
        """Write the notes. See `Annotator`."""
        refused = {
            note.key: "its id names no OpenTelemetry span, and Phoenix knows no other" for note in notes
            if len(note.span_id) != 16
        }  # fmt: skip
        fit = [note for note in notes if note.key not in refused]
        for start in range(0, len(fit), NOTES_AT_ONCE):
            refused |= self._write(fit[start : start + NOTES_AT_ONCE])
        return refused

    def _write(self, notes: Sequence[Note]) -> dict[str, str]:
        """Write some notes. Phoenix takes all or none of a request, and names the spans that it does not have."""
        absent: set[str] = set()
        while waiting := [note for note in notes if note.span_id not in absent]:
            annotations = [_annotation(note, score) for note in waiting for score in scores_of(note)]
            try:
                self._server.call(
                    lambda batch=annotations: self._server.client.spans.log_span_annotations(  # type: ignore[misc]
                        span_annotations=batch, sync=True
                    )
                )
                break
            except BadInput as error:
                cause = error.__cause__ or error
                text = str(getattr(getattr(cause, "response", None), "text", ""))
                missing = {note.span_id for note in waiting if note.span_id in text}
                if status_of(cause) != 404 or not missing:
                    raise
                absent |= missing
        return {note.key: "Phoenix does not have its span" for note in notes if note.span_id in absent}


def open_source(request: PullRequest) -> PhoenixSource:
    """Open a project of Phoenix."""
    return PhoenixSource(request)


def open_annotator(project: str | None = None) -> PhoenixAnnotator:
    """Open a Phoenix. A span is in one project, so none has to be named."""
    return PhoenixAnnotator(project)


def _objects(listed: Iterable[Any]) -> list[dict[str, Any]]:
    """What the client gave, which passes on whatever stands in the answer's list. Raises TypeError."""
    objects = list(listed)
    if not all(isinstance(each, dict) for each in objects):
        raise TypeError("not a list of objects")
    return objects


def _read(listed: Iterable[Mapping[str, Any]]) -> tuple[list[SpanRecord], list[Rejected]]:
    spans, rejected = [], []
    for fields in listed:
        try:
            spans.append(span_of(fields))
        except FieldError as error:
            rejected.append(Rejected(0, one_line(f"span {fields.get('id')}: {error}", 300)))
    return spans, rejected


def _is_whole(spans: Sequence[SpanRecord], end: int) -> bool:
    """Whether a slice up to `end` holds the trace's root, which ended before that: then it holds all of the trace."""
    return any(span.parent_id is None and span.ended <= end for span in spans)


def _annotation(note: Note, score: WrittenScore) -> dict[str, Any]:
    result: dict[str, Any] = {"explanation": score.comment}
    if score.kind == "NUMERIC":
        result |= {"score": score.value, "label": "flagged" if score.metadata.get("flagged") else "not_flagged"}
    else:
        result["label"] = str(score.value)
    return {
        "span_id": note.span_id,
        "name": score.name,
        "annotator_kind": "CODE",
        "identifier": f"touchstone-v{note.version}",
        "result": result,
        "metadata": score.metadata,
    }
