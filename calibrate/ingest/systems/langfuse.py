"""Langfuse: observations and scores in, scores out. The client is langfuse 5; keys come from the environment.

The client's own API object is used rather than `Langfuse()`, which would set up OpenTelemetry for the whole process,
and whose `create_score` sends in the background and drops what the server refuses.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from calibrate.errors import BadInput
from calibrate.ingest.base import Rejected
from calibrate.ingest.exports.langfuse import LangfuseTrace, build_trace, remark_of, scored_trace
from calibrate.ingest.exports.remarks import Remark, Remarks, Verdicts, sort_remarks, targets_of
from calibrate.ingest.spans.answers import Answer, answers_of, row_of
from calibrate.ingest.spans.reader import Reader
from calibrate.ingest.systems.base import Note, Page, PullRequest, need
from calibrate.ingest.systems.patience import patiently
from calibrate.ingest.systems.slices import Rows, Slices, pages_of
from calibrate.ingest.systems.written import scores_of
from calibrate.ingest.values import FieldError
from calibrate.sanitize import one_line

CLOUD = "https://cloud.langfuse.com"
PAGE, SCORES_PAGE = 200, 100
"""Observations and scores of one request."""
RUNNING = timedelta(minutes=10)
"""How long a trace without an end is left alone, as it may still be going on."""
BEFORE = timedelta(seconds=5)
"""How much before its root a span may begin: clocks differ, and Langfuse rounds to milliseconds."""
SCORES_OVERLAP = timedelta(days=1)
REMEMBERED = 50_000  # traces whose answers need not be asked for when their scores come
LAUNCH = datetime(2023, 1, 1, tzinfo=UTC)

_FIELDS = "core,basic,io,metadata,model,trace_context"
_OPTIONS: Any = {"max_retries": 0, "timeout_in_seconds": 60}  # `patiently` asks again
T = TypeVar("T")


class LangfuseServer:
    """One Langfuse project, as its keys open it.

    Raises
    ------
    BadInput
        If a key is missing.
    Unavailable
        If the client is not installed.
    """

    def __init__(self, request: PullRequest, what: str) -> None:
        need("langfuse", what)
        api = need("langfuse.api", what, install="langfuse")
        public, secret = os.environ.get("LANGFUSE_PUBLIC_KEY"), os.environ.get("LANGFUSE_SECRET_KEY")
        missing = [name for name, key in (("LANGFUSE_PUBLIC_KEY", public), ("LANGFUSE_SECRET_KEY", secret)) if not key]
        if missing:
            raise BadInput(f"{what} needs {' and '.join(missing)} in the environment: the keys of the Langfuse project")
        environment = os.environ.get("LANGFUSE_HOST") or os.environ.get("LANGFUSE_BASE_URL")
        self.url = (request.url or environment or CLOUD).rstrip("/")
        self._request, self._secrets = request, (str(secret), str(public))
        self.api = api.LangfuseAPI(
            base_url=self.url, username=public, password=secret, x_langfuse_public_key=public,
            x_langfuse_sdk_name="python", x_langfuse_sdk_version="touchstone",
        )  # fmt: skip

    def call(self, ask: Callable[[], T]) -> T:
        """Make one request, patiently."""
        return patiently(ask, self._request, f"Langfuse at {self.url}", secrets=self._secrets)

    def project(self) -> Any:
        """The project that the keys belong to."""
        projects = self.call(lambda: self.api.projects.get(request_options=_OPTIONS)).data
        if not projects:
            raise BadInput(f"Langfuse at {self.url} knows no project for these keys; check LANGFUSE_PUBLIC_KEY")
        return projects[0]

    def observations(self, **wanted: Any) -> Iterator[dict[str, Any]]:
        """Read observations, page by page."""
        cursor: str | None = None
        while True:
            page = self.call(
                lambda cursor=cursor: self.api.observations.get_many(  # type: ignore[misc]
                    fields=_FIELDS, expand_metadata="attributes,scope,resourceAttributes", limit=PAGE, cursor=cursor,
                    request_options=_OPTIONS, **wanted,
                )
            )  # fmt: skip
            yield from (each.dict() for each in page.data)
            cursor, before = page.meta.cursor, cursor
            if not cursor or cursor == before:
                return

    def scores(self, begin: datetime, end: datetime) -> Iterator[dict[str, Any]]:
        """Read the scores that were given in that time, page by page."""
        cursor: str | None = None
        while True:
            page = self.call(
                lambda cursor=cursor: self.api.scores.get_many(  # type: ignore[misc]
                    fields="details,subject,annotation", limit=SCORES_PAGE, cursor=cursor, from_timestamp=begin,
                    to_timestamp=end, request_options=_OPTIONS,
                )
            )  # fmt: skip
            yield from (each.dict() for each in page.data)
            cursor, before = page.meta.cursor, cursor
            if not cursor or cursor == before:
                return


class LangfuseSource:
    """A Langfuse project that is open for reading: traces by the time at which they began, then scores by theirs."""

    system = "langfuse"

    def __init__(self, request: PullRequest) -> None:
        self._request = request
        self._server = LangfuseServer(request, "`pull langfuse`")
        self._verdicts = Verdicts(request.options.get("verdicts") or request.stored.get("verdicts") or ())
        self._rules = list(request.options.get("verdicts") or request.stored.get("verdicts") or ())
        self._reader = Reader(names=request.columns, tool_results=request.tool_results)
        project = self._server.project()
        if request.project not in (None, project.id, project.name):
            raise BadInput(
                f"these keys open the project {project.name!r}, not {request.project!r}: a Langfuse key belongs to one "
                "project; set the keys of the other, or leave --project out"
            )
        self.name = request.name or f"langfuse {project.name} at {self._server.url.partition('://')[2]}"
        self.settings: Mapping[str, Any] = {"url": self._server.url, "project": project.name, "verdicts": self._rules}
        self._targets: OrderedDict[str, dict[str | None, str]] = OrderedDict()

    def fetch(self, since: datetime | None, cursor: Mapping[str, Any] | None) -> Iterator[Page]:
        """Read page by page. See `Source`."""
        place: dict[str, Any] = {"traces": None, "scores": None, **(cursor or {})}
        yield from self._traces(since, place)
        yield from self._scores(since, place)

    def _traces(self, since: datetime | None, place: dict[str, Any]) -> Iterator[Page]:
        now = self._request.now()
        slices = Slices(since, place["traces"], now=now, overlap=self._request.overlap, oldest=LAUNCH)

        def convert(observations: list[dict[str, Any]], begin: datetime, end: datetime) -> tuple[Rows, int]:
            rows: Rows = []
            running = 0
            for trace_id, trace_rows in _by_trace(observations).items():
                whole = self._whole(trace_id, trace_rows, begin, end)
                if whole is None:
                    continue
                if _is_running(whole, now):
                    running += 1
                else:
                    rows += self._rows(trace_id, whole)
            return rows, running

        yield from pages_of(slices, place, self._of_slice, convert)

    def _of_slice(self, begin: datetime, end: datetime, most: int | None) -> list[dict[str, Any]] | None:
        """The observations of a slice of time; None if they are more than `most`."""
        observations = []
        for each in self._server.observations(from_start_time=begin - BEFORE, to_start_time=end):
            observations.append(each)
            if most is not None and len(observations) > most:
                return None
        return observations

    def _whole(
        self, trace_id: str, rows: list[dict[str, Any]], begin: datetime, end: datetime
    ) -> list[dict[str, Any]] | None:
        """All observations of a trace that begins in the slice; None for one that begins elsewhere.

        Most traces lie in the slice with their root. Of one that reaches beyond it, or whose root is not in it, all is
        asked for.
        """
        root = _root(rows)
        if root is None or root.get("endTime") is None or root["endTime"] > end:
            if root is None and all(row["startTime"] < begin for row in rows):
                return None
            rows = list(self._server.observations(trace_id=trace_id)) or rows
            root = _root(rows)
        first = root["startTime"] if root is not None else min(row["startTime"] for row in rows)
        return rows if begin <= first < end else None

    def _rows(self, trace_id: str, observations: list[dict[str, Any]]) -> Rows:
        try:
            built, answers = self._read(observations)
        except (FieldError, RecursionError) as error:
            return [Rejected(0, f"trace {trace_id[:60]}: {error}")]
        self._remember(trace_id, targets_of(built.spans, answers))
        return [row_of(answer, 0) for answer in answers]

    def _read(self, observations: list[dict[str, Any]]) -> tuple[LangfuseTrace, list[Answer]]:
        built = build_trace(None, observations)
        return built, list(answers_of(built.spans, self._reader))

    def _scores(self, since: datetime | None, place: dict[str, Any]) -> Iterator[Page]:
        slices = Slices(since, place["scores"], now=self._request.now(), overlap=SCORES_OVERLAP, oldest=LAUNCH)
        for begin, end in slices:
            by_trace: dict[str, list[Remark]] = {}
            page = Remarks()
            count = 0
            for score in self._server.scores(begin, end):
                count += 1
                trace_id = scored_trace(score)
                if trace_id is None:
                    page.left_out["scores of sessions and experiments"] += 1
                else:
                    by_trace.setdefault(trace_id, []).append(remark_of(score))
            for trace_id, remarks in by_trace.items():
                page.add(sort_remarks(remarks, self._answers_of(trace_id), self._verdicts, self.system, 0))
            slices.read(end, count)
            place["scores"] = slices.cursor
            yield Page(scores=page.scores, labels=page.labels, cursor=dict(place), left_out=dict(page.left_out))

    def _answers_of(self, trace_id: str) -> Mapping[str | None, str]:
        """Which answers the remarks on a trace are about. Asks for the trace where it was not read just now."""
        if trace_id not in self._targets:
            try:
                built, answers = self._read(list(self._server.observations(trace_id=trace_id)))
                self._remember(trace_id, targets_of(built.spans, answers))
            except (FieldError, RecursionError):
                self._remember(trace_id, {})
        return self._targets[trace_id]

    def _remember(self, trace_id: str, targets: dict[str | None, str]) -> None:
        self._targets[trace_id] = targets
        if len(self._targets) > REMEMBERED:
            self._targets.popitem(last=False)


class LangfuseAnnotator:
    """A Langfuse project that is open for writing. A score with the same id replaces the one before."""

    def __init__(self, project: str | None = None, request: PullRequest | None = None) -> None:
        self._server = LangfuseServer(request or PullRequest(project=project), "`watch --annotate langfuse`")

    def annotate(self, notes: Sequence[Note]) -> Mapping[str, str]:
        """Write the notes. See `Annotator`."""
        types = need("langfuse.api", "`watch --annotate langfuse`", install="langfuse")
        unfit: dict[str, str] = {}
        for note in notes:
            scores = [
                types.CreateScoreRequest(
                    id=each.id,
                    trace_id=_own_id(note.trace_id, note.span_id),
                    observation_id=_observation(note),
                    name=each.name,
                    value=each.value,
                    data_type=each.kind,
                    comment=each.comment,
                    metadata=each.metadata,
                )
                for each in scores_of(note)
            ]
            if reason := self._write(scores):
                unfit[note.key] = reason
        return unfit

    def _write(self, scores: list[Any]) -> str | None:
        """Send scores. Returns why some of them will never be taken: asking again changes nothing, as Langfuse says."""
        answer = self._server.call(lambda: self._server.api.scores.create(request=scores, request_options=_OPTIONS))
        rejected = getattr(answer, "rejected", 0)
        if not rejected:
            return None
        reason = answer.errors[0].message if answer.errors else "no reason"
        return f"Langfuse refuses {rejected} of its scores: {one_line(str(reason), 200)}"


def open_source(request: PullRequest) -> LangfuseSource:
    """Open the project that the keys in the environment belong to."""
    return LangfuseSource(request)


def open_annotator(project: str | None = None) -> LangfuseAnnotator:
    """Open the project that the keys in the environment belong to."""
    return LangfuseAnnotator(project)


def _by_trace(observations: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    traces: dict[str, list[dict[str, Any]]] = {}
    for each in observations:
        traces.setdefault(str(each.get("traceId") or each["id"]), []).append(each)
    return traces


def _root(rows: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    """The observation that all others of its trace stand under, if it is there."""
    return next((row for row in rows if not row.get("parentObservationId") or row.get("isRootObservation")), None)


def _is_running(rows: Sequence[dict[str, Any]], now: datetime) -> bool:
    """Whether the trace may still be going on: its root has not come or not ended, and something ended lately."""
    root = _root(rows)
    if root is not None and root.get("endTime") is not None:
        return False
    return bool(max(row.get("endTime") or row["startTime"] for row in rows) > now - RUNNING)


def _own_id(trace_id: str, span_id: str) -> str:
    """A trace's id as Langfuse has it: OpenTelemetry's, or of SDKs before version 3 a UUID with its hyphens."""
    return trace_id if len(span_id) == 16 else _uuid(trace_id)


def _observation(note: Note) -> str | None:
    """The observation's id. None for a trace that was logged without observations: its answer has the trace's id."""
    if note.span_id == note.trace_id:
        return None
    return note.span_id if len(note.span_id) == 16 else _uuid(note.span_id)


def _uuid(text: str) -> str:
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
