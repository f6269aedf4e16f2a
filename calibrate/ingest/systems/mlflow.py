"""MLflow: traces and assessments in, assessments out. The client is mlflow-skinny 3, or mlflow.

Its own environment variables say where the server is and hold the key: MLFLOW_TRACKING_URI, MLFLOW_TRACKING_TOKEN,
MLFLOW_TRACKING_USERNAME and _PASSWORD, MLFLOW_EXPERIMENT_NAME.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from calibrate.errors import BadInput
from calibrate.ingest.base import Rejected, Row
from calibrate.ingest.exports.mlflow import build_trace, remarks_of, trace_id_of
from calibrate.ingest.exports.remarks import Remark, Remarks, Verdicts, sort_remarks
from calibrate.ingest.spans.answers import answers_of, row_of
from calibrate.ingest.spans.reader import Reader
from calibrate.ingest.spans.record import split_answer_id
from calibrate.ingest.systems.base import Note, Page, PullRequest, need
from calibrate.ingest.systems.patience import patiently, status_of
from calibrate.ingest.systems.slices import Slices
from calibrate.ingest.systems.written import WrittenScore, scores_of
from calibrate.ingest.values import FieldError
from calibrate.sanitize import one_line
from calibrate.urls import redact

PAGE, BARE_PAGE = 100, 500
"""Traces of one request, with their spans and without."""
SOURCE = "touchstone"
_SECRETS = ("MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_PASSWORD", "DATABRICKS_TOKEN")
T = TypeVar("T")


class MlflowServer:
    """An MLflow tracking server, as its client finds it.

    Raises
    ------
    Unavailable
        If the client is not installed.
    """

    def __init__(self, request: PullRequest, what: str) -> None:
        mlflow = need("mlflow", what, install="mlflow-skinny")
        # `patiently` asks again; the client would do so for minutes without a word.
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
        given = request.url or request.stored.get("url") or os.environ.get("MLFLOW_TRACKING_URI")
        if not given and not str(mlflow.get_tracking_uri()).startswith("databricks"):
            way = ", or give --url" if "pull" in what else ""
            # its client would make a new database in the working directory
            raise BadInput(f"{what} needs the address of the server: set MLFLOW_TRACKING_URI{way}")
        self.url = str(given or mlflow.get_tracking_uri()).rstrip("/")
        self._request = request
        self._secrets = tuple(os.environ.get(name, "") for name in _SECRETS)
        self.entities, self._error = mlflow.entities, mlflow.exceptions.MlflowException
        self.client = mlflow.MlflowClient(self.url)
        mlflow.set_tracking_uri(self.url)  # `mlflow.log_assessment` knows no other way
        self.log_assessment = mlflow.log_assessment

    def call(self, ask: Callable[[], T]) -> T:
        """Make one request, patiently."""

        def attempt() -> T:
            try:
                return ask()
            except self._error as error:
                if (answer := _answer_of(error)) is not None:
                    error.response = answer
                raise

        return patiently(attempt, self._request, f"MLflow at {redact(self.url)}", secrets=self._secrets)

    def experiment(self, name: str) -> Any:
        """The experiment of that name or number. Raises BadInput where there is none."""
        found_by_name = self.call(lambda: self.client.get_experiment_by_name(name))
        if found_by_name is not None and not found_by_name.experiment_id:  # what the client makes of an empty answer
            raise BadInput(
                f"MLflow at {redact(self.url)} answers without an experiment: give the address of an MLflow server"
            )
        if found_by_name is not None:
            return found_by_name
        if name.isdigit():
            try:
                return self.call(lambda: self.client.get_experiment(name))
            except BadInput as error:
                if status_of(error.__cause__ or error) != 404:
                    raise
        listed = self.call(lambda: self.client.search_experiments(max_results=20))
        names = ", ".join(sorted(str(each.name) for each in listed))
        raise BadInput(
            f"MLflow at {redact(self.url)} has no experiment {name!r}; it has {names}: give one as --project"
        )


class MlflowSource:
    """An experiment of MLflow that is open for reading: traces by the time at which they began, then assessments."""

    system = "mlflow"

    def __init__(self, request: PullRequest) -> None:
        self._request = request
        self._server = MlflowServer(request, "`pull mlflow`")
        rules = list(request.options.get("verdicts") or request.stored.get("verdicts") or ())
        self._verdicts = Verdicts(rules)
        self._reader = Reader(names=request.columns, tool_results=request.tool_results)
        variables = (os.environ.get("MLFLOW_EXPERIMENT_NAME"), os.environ.get("MLFLOW_EXPERIMENT_ID"))
        wanted = request.project or request.stored.get("project") or next(filter(None, variables), None) or "Default"
        experiment = self._server.experiment(str(wanted))
        self._experiment = str(experiment.experiment_id)
        shown = redact(self._server.url)
        self.name = request.name or f"mlflow {experiment.name} at {shown.partition('://')[2] or shown}"
        self.settings: Mapping[str, Any] = {"url": shown, "project": experiment.name, "verdicts": rules}
        self._line = 0

    def fetch(self, since: datetime | None, cursor: Mapping[str, Any] | None) -> Iterator[Page]:
        """Read page by page. See `Source`."""
        now = self._request.now()
        slices = Slices(since, cursor, now=now, overlap=self._request.overlap)
        for begin, end in slices:
            within = f"trace.timestamp_ms >= {_milliseconds(begin)} AND trace.timestamp_ms < {_milliseconds(end)}"
            # One that is going on is left for the next pull, as long as that looks back so far.
            running_since = now - self._request.overlap
            token, count = None, 0
            while True:
                traces = self._search(within, token, PAGE)
                count, token = count + len(traces), traces.token
                rows = [row for trace in traces for row in self._rows(trace, running_since)]
                if not token:
                    break
                yield Page(rows, share=slices.share)
            slices.read(end, count)
            yield Page(rows, cursor=slices.cursor, share=slices.share)

    def remarks(self, since: datetime | None, answers: Iterator[Sequence[str]]) -> Iterator[Page]:
        """Read the assessments of answers. See `LateRemarks`."""
        targets: dict[str, dict[str | None, str]] = {}
        for batch in answers:
            for name in batch:
                if ids := split_answer_id(name):
                    targets.setdefault(ids[0], {})[ids[1]] = name
                    targets[ids[0]][None] = name  # the last one, for what is said of the whole trace
        within = f"trace.timestamp_ms >= {0 if since is None else _milliseconds(since)}"
        token = None
        while targets:
            traces = self._search(within, token, BARE_PAGE, include_spans=False)
            token, read = traces.token, Remarks()
            for trace in traces:
                info = trace.info.to_dict()
                if info.get("assessments") and (own := targets.get(trace_id_of(info))):
                    said_of = [_of_answer(remark, own) for remark in remarks_of(info)]
                    read.add(sort_remarks(said_of, own, self._verdicts, self.system, 0))
            if read.scores or read.labels or read.left_out:
                yield Page(scores=read.scores, labels=read.labels, left_out=read.left_out)
            if not token:
                return

    def _search(self, within: str, token: str | None, most: int, *, include_spans: bool = True) -> Any:
        return self._server.call(
            lambda: self._server.client.search_traces(
                locations=[self._experiment], filter_string=within, order_by=["timestamp_ms ASC"], page_token=token,
                max_results=most, include_spans=include_spans,
            )
        )  # fmt: skip

    def _rows(self, trace: Any, running_since: datetime) -> Iterator[Row | Rejected]:
        try:
            document = trace.to_dict()
            built = build_trace(document)
            began = min((span.started for span in built.spans), default=0) / 1e9
            if built.state == "IN_PROGRESS" and began >= running_since.timestamp():
                return
            for answer in answers_of(built.spans, self._reader):
                self._line += 1
                yield row_of(answer, self._line)
        except FieldError as error:
            yield Rejected(0, one_line(f"trace {trace.info.trace_id}: {error}", 300))


class MlflowAnnotator:
    """An MLflow that is open for writing. It would keep every assessment, so those that stand there are left alone."""

    def __init__(self, project: str | None = None, request: PullRequest | None = None) -> None:
        self._server = MlflowServer(request or PullRequest(project=project), "`watch --annotate mlflow`")

    def annotate(self, notes: Sequence[Note]) -> Mapping[str, str]:
        """Write the notes. See `Annotator`."""
        refused = {}
        for note in notes:
            name = f"tr-{note.trace_id}"
            try:
                info = self._server.call(lambda name=name: self._server.client.get_trace(name, display=False).info)  # type: ignore[misc]
            except BadInput as error:
                if status_of(error.__cause__ or error) != 404:
                    raise
                refused[note.key] = "MLflow does not have its trace"
                continue
            standing = {_key(each) for each in info.assessments}
            for score in scores_of(note):
                if score.id not in standing:
                    self._write(name, note, score)
        return refused

    def _write(self, name: str, note: Note, score: WrittenScore) -> None:
        entities = self._server.entities
        assessment = entities.Feedback(
            name=score.name,
            value=score.value,
            rationale=score.comment,
            source=entities.AssessmentSource(source_type="CODE", source_id=f"{SOURCE}-v{note.version}"),
            metadata={"touchstone.id": score.id, **{key: str(value) for key, value in score.metadata.items()}},
            span_id=note.span_id,
        )
        self._server.call(lambda: self._server.log_assessment(name, assessment))


def open_source(request: PullRequest) -> MlflowSource:
    """Open an experiment of MLflow."""
    return MlflowSource(request)


def open_annotator(project: str | None = None) -> MlflowAnnotator:
    """Open an MLflow. A trace is in one experiment, so none has to be named."""
    return MlflowAnnotator(project)


def _answer_of(error: BaseException) -> Any:
    """The server's answer. The client's errors leave out its status and headers, without which nobody knows whether to
    wait, and how long; the frame that raised has it still."""
    raised: BaseException | None = error
    while raised is not None:
        for frame, _ in traceback.walk_tb(raised.__traceback__):
            answer = frame.f_locals.get("response")
            if hasattr(answer, "headers"):
                return answer
        raised = raised.__cause__ or raised.__context__
    return None


def _key(assessment: Any) -> str | None:
    return (assessment.metadata or {}).get("touchstone.id")


def _of_answer(remark: Remark, targets: Mapping[str | None, str]) -> Remark:
    """What is said of a span around the answer is said of the answer."""
    return remark if remark.target in targets else replace(remark, target=None)


def _milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
