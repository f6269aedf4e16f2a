"""LangSmith: runs and feedback in, feedback out. The client is langsmith 0.15; the key comes from the environment."""

from __future__ import annotations

import os
import uuid
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from calibrate.errors import BadInput, TouchstoneError
from calibrate.ingest.base import Rejected
from calibrate.ingest.exports.langsmith import build_trace, remark_of, trace_id_of
from calibrate.ingest.exports.remarks import Remark, Remarks, Verdicts, sort_remarks, targets_of
from calibrate.ingest.spans.answers import answers_of, row_of
from calibrate.ingest.spans.reader import Reader
from calibrate.ingest.systems.base import Note, Page, PullRequest, need
from calibrate.ingest.systems.patience import BUSY, patiently
from calibrate.ingest.systems.slices import Rows, Slices, pages_of
from calibrate.ingest.systems.written import scores_of
from calibrate.ingest.values import FieldError
from calibrate.sanitize import one_line
from calibrate.urls import scrub

CLOUD = "https://api.smith.langchain.com"
RUNNING = timedelta(minutes=10)
"""How long a trace without an end is left alone, as it may still be going on."""
BEFORE = timedelta(seconds=5)
"""How much before its root a run may begin: clocks differ."""
FEEDBACK_OVERLAP = timedelta(days=1)
REMEMBERED = 50_000  # traces whose answers need not be asked for when their feedback comes
LAUNCH = datetime(2023, 1, 1, tzinfo=UTC)
RETRIES, BACKOFF = 5, 1.0
"""How often the client asks for one page again, and the seconds of its first pause, which doubles."""
TIMES = "%Y-%m-%dT%H:%M:%S.%fZ"

_SELECT = (
    "id", "name", "run_type", "start_time", "end_time", "inputs", "outputs", "extra", "tags", "trace_id",
    "parent_run_id", "dotted_order", "session_id", "status",
)  # fmt: skip
# Of a trace these say all that is read: the root what was asked, the others what was answered from what.
_KINDS = 'or(eq(is_root, true), eq(run_type, "llm"), eq(run_type, "retriever"), eq(run_type, "tool"))'
T = TypeVar("T")


class LangSmithServer:
    """LangSmith, as one key opens it.

    Raises
    ------
    BadInput
        If the key is missing.
    Unavailable
        If the client is not installed.
    """

    def __init__(self, request: PullRequest, what: str) -> None:
        langsmith = need("langsmith", what)
        errors = need("langsmith.utils", what, install="langsmith")
        self._error, self._not_found = errors.LangSmithError, errors.LangSmithNotFoundError
        retry = need("urllib3", what).Retry
        key = os.environ.get("LANGSMITH_API_KEY") or os.environ.get("LANGCHAIN_API_KEY")
        if not key:
            raise BadInput(f"{what} needs LANGSMITH_API_KEY in the environment")
        environment = os.environ.get("LANGSMITH_ENDPOINT") or os.environ.get("LANGCHAIN_ENDPOINT")
        self.url = (request.url or environment or CLOUD).rstrip("/")
        self._request, self._secrets = request, (key,)
        # One request of a listing is asked again by the client itself: it lists on where it was.
        busy = retry(
            total=RETRIES, backoff_factor=BACKOFF, status_forcelist=BUSY, allowed_methods=None,
            respect_retry_after_header=True, raise_on_status=False,
        )  # fmt: skip
        self.client = langsmith.Client(
            api_url=self.url, api_key=key, auto_batch_tracing=False, retry_config=busy, timeout_ms=60_000
        )

    def call(self, ask: Callable[[], T]) -> T:
        """Make one request or listing, patiently."""

        def attempt() -> T:
            try:
                with warnings.catch_warnings():
                    # Listing runs this way works until February 2027 and on every self-hosted version.
                    warnings.simplefilter("ignore")
                    return ask()
            except Exception as error:
                raise _of_server(error) from error

        what = f"LangSmith at {self.url}"
        try:
            return patiently(attempt, self._request, what, secrets=self._secrets, attempts=2)
        except self._error as error:
            text = one_line(scrub(str(error), (), self._secrets), 300)
            raise TouchstoneError(f"{what}: {type(error).__name__}: {text}") from error

    def project(self, name: str) -> Any:
        """The project of that name."""

        def ask() -> Any:
            try:
                return self.client.read_project(project_name=name)
            except self._not_found as error:
                raise BadInput(f"LangSmith at {self.url} has no project {name!r}; name one with --project") from error

        return self.call(ask)

    def runs(self, *, most: int | None = None, **wanted: Any) -> list[dict[str, Any]] | None:
        """List runs; None if they are more than `most`."""

        def ask() -> list[dict[str, Any]] | None:
            runs: list[dict[str, Any]] = []
            for run in self.client.list_runs(select=list(_SELECT), **wanted):
                if most is not None and len(runs) == most:
                    return None
                runs.append({name: getattr(run, name, None) for name in _SELECT})
            return runs

        return self.call(ask)

    def feedback(self, project_id: Any, begin: datetime, end: datetime) -> list[dict[str, Any]]:
        """List the feedback that was given in that time."""
        wanted = {
            "session": [str(project_id)],
            "min_created_at": begin.astimezone(UTC).strftime(TIMES),
            "max_created_at": end.astimezone(UTC).strftime(TIMES),
        }
        return self.call(lambda: [each.model_dump() for each in self.client.list_feedback(**wanted)])


class LangSmithSource:
    """A LangSmith project that is open for reading: traces by the time at which they began, then feedback by its."""

    system = "langsmith"

    def __init__(self, request: PullRequest) -> None:
        self._request = request
        self._server = LangSmithServer(request, "`pull langsmith`")
        rules = list(request.options.get("verdicts") or request.stored.get("verdicts") or ())
        self._verdicts = Verdicts(rules)
        self._reader = Reader(names=request.columns, tool_results=request.tool_results)
        environment = os.environ.get("LANGSMITH_PROJECT") or os.environ.get("LANGCHAIN_PROJECT")
        name = request.project or request.stored.get("project") or environment or "default"
        self._project = self._server.project(name)
        self.name = request.name or f"langsmith {name} at {self._server.url.partition('://')[2]}"
        self.settings: Mapping[str, Any] = {"url": self._server.url, "project": name, "verdicts": rules}
        self._targets: OrderedDict[str, dict[str | None, str]] = OrderedDict()

    def fetch(self, since: datetime | None, cursor: Mapping[str, Any] | None) -> Iterator[Page]:
        """Read page by page. See `Source`."""
        place: dict[str, Any] = {"traces": None, "feedback": None, **(cursor or {})}
        yield from self._traces(since, place)
        yield from self._feedback(since, place)

    def _traces(self, since: datetime | None, place: dict[str, Any]) -> Iterator[Page]:
        now = self._request.now()
        slices = Slices(since, place["traces"], now=now, overlap=self._request.overlap, oldest=LAUNCH)

        def convert(runs: list[dict[str, Any]], _begin: datetime, _end: datetime) -> tuple[Rows, int]:
            rows: Rows = []
            running = 0
            for trace_id, trace_runs in _by_trace(runs).items():
                if _is_running(trace_runs, now):
                    running += 1
                else:
                    rows += self._rows(trace_id, trace_runs)
            return rows, running

        yield from pages_of(slices, place, self._of_slice, convert)

    def _of_slice(self, begin: datetime, end: datetime, most: int | None) -> list[dict[str, Any]] | None:
        """The runs of the traces whose root began in the slice, however late they began themselves."""
        first, last = (moment.astimezone(UTC).strftime(TIMES) for moment in (begin, end))
        return self._server.runs(
            most=most, project_id=str(self._project.id), start_time=begin - BEFORE, filter=_KINDS,
            trace_filter=f'and(gte(start_time, "{first}"), lt(start_time, "{last}"))',
        )  # fmt: skip

    def _rows(self, trace_id: str, runs: Sequence[Mapping[str, Any]]) -> Rows:
        try:
            spans = build_trace(runs).spans
            answers = list(answers_of(spans, self._reader))
        except (FieldError, RecursionError) as error:
            return [Rejected(0, f"trace {trace_id[:60]}: {error}")]
        self._remember(trace_id, targets_of(spans, answers))
        return [row_of(answer, 0) for answer in answers]

    def _feedback(self, since: datetime | None, place: dict[str, Any]) -> Iterator[Page]:
        slices = Slices(since, place["feedback"], now=self._request.now(), overlap=FEEDBACK_OVERLAP, oldest=LAUNCH)
        for begin, end in slices:
            listed = self._server.feedback(self._project.id, begin, end)
            by_trace: dict[str, list[Remark]] = {}
            page = Remarks()
            for each in listed:
                trace_id = each.get("trace_id") or each.get("run_id")
                if trace_id is None:
                    page.left_out["feedback on projects"] += 1
                else:
                    by_trace.setdefault(str(trace_id), []).append(remark_of(each))
            for trace_id, remarks in by_trace.items():
                page.add(sort_remarks(remarks, self._answers_of(trace_id), self._verdicts, self.system, 0))
            slices.read(end, len(listed))
            place["feedback"] = slices.cursor
            yield Page(scores=page.scores, labels=page.labels, cursor=dict(place), left_out=dict(page.left_out))

    def _answers_of(self, trace_id: str) -> Mapping[str | None, str]:
        """Which answers the feedback on a trace is about. Asks for the trace where it was not read just now."""
        if trace_id not in self._targets:
            runs = self._server.runs(
                project_id=str(self._project.id), trace_id=trace_id, filter=_KINDS, start_time=LAUNCH
            )
            if not runs or isinstance(self._rows(trace_id, runs), Rejected) or trace_id not in self._targets:
                self._remember(trace_id, {})
        return self._targets[trace_id]

    def _remember(self, trace_id: str, targets: dict[str | None, str]) -> None:
        self._targets[trace_id] = targets
        if len(self._targets) > REMEMBERED:
            self._targets.popitem(last=False)


class LangSmithAnnotator:
    """LangSmith, open for writing. Feedback with the same id replaces the one before."""

    def __init__(self, project: str | None = None, request: PullRequest | None = None) -> None:
        self._server = LangSmithServer(request or PullRequest(project=project), "`watch --annotate langsmith`")

    def annotate(self, notes: Sequence[Note]) -> Mapping[str, str]:
        """Write the notes. See `Annotator`."""
        unfit: dict[str, str] = {}
        wanted = {}
        for note in notes:
            if len(note.span_id) == 32:
                wanted[note.key] = uuid.UUID(note.span_id)
            else:
                unfit[note.key] = "its id is none of a LangSmith run"
        runs = self._runs(sorted(set(wanted.values())))
        for note in notes:
            run = runs.get(wanted[note.key]) if note.key in wanted else None
            if run is not None:
                self._write(note, run)
            elif note.key in wanted:
                unfit[note.key] = "LangSmith has no such run"
        return unfit

    def _runs(self, ids: list[uuid.UUID]) -> dict[uuid.UUID, dict[str, Any]]:
        """Which of the runs there are, with their project, which feedback needs."""
        runs: dict[uuid.UUID, dict[str, Any]] = {}
        for start in range(0, len(ids), 50):
            part = [str(each) for each in ids[start : start + 50]]
            for run in self._server.runs(run_ids=part) or []:
                runs[uuid.UUID(str(run["id"]))] = run
        return runs

    def _write(self, note: Note, run: Mapping[str, Any]) -> None:
        for each in scores_of(note):
            number = each.value if isinstance(each.value, float) else None
            self._server.call(
                lambda each=each, number=number: self._server.client.create_feedback(  # type: ignore[misc]
                    run["id"], each.name, score=number, value=None if number is not None else each.value,
                    comment=each.comment, feedback_id=each.id, session_id=run["session_id"],
                    start_time=run["start_time"], source_info=each.metadata, stop_after_attempt=1,
                )
            )  # fmt: skip


def open_source(request: PullRequest) -> LangSmithSource:
    """Open a project: the one that is asked for, else the one that the environment names."""
    return LangSmithSource(request)


def open_annotator(project: str | None = None) -> LangSmithAnnotator:
    """Open LangSmith. Runs are found by their ids, in every project of the key."""
    return LangSmithAnnotator(project)


def _by_trace(runs: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    traces: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        traces.setdefault(trace_id_of(run), []).append(run)
    return traces


def _is_running(runs: Sequence[Mapping[str, Any]], now: datetime) -> bool:
    """Whether the trace may still be going on: its root has not ended, and something happened lately."""
    root = next((run for run in runs if not run.get("parent_run_id")), None)
    if root is None or root.get("end_time") is not None:
        return False
    return max(_aware(run.get("end_time") or run["start_time"]) for run in runs) > now - RUNNING


def _aware(moment: datetime) -> datetime:
    """LangSmith's times are UTC and do not say so."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _of_server(error: Exception) -> Exception:
    """The error with the server's answer in it: the client wraps it."""
    cause: BaseException | None = error
    while cause is not None:
        if getattr(cause, "response", None) is not None and isinstance(cause, Exception):
            return cause
        cause = cause.__cause__ or cause.__context__
    return error
