"""Traces and labels of a notebook: frames in and frames out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, get_args

from calibrate import settings
from calibrate.errors import BadInput
from calibrate.ingest.base import Rejected
from calibrate.stats.sampling import designs
from calibrate.types import ExternalDetector, FlagWhen, Label, LabelState, TraceFilter
from calibrate.workflow.evidence.basis import resolve_sample
from calibrate.workflow.labelling import guides
from calibrate.workflow.labelling.interchange import compare_rows
from calibrate.workflow.notebook import frames
from calibrate.workflow.notebook.opened import Opened, now
from calibrate.workflow.notebook.results import AddedLabels, AddedTraces
from calibrate.workflow.traces.external_scores import Bound, define_external
from calibrate.workflow.traces.import_labelled import import_rows
from calibrate.workflow.traces.membership import must_not_be_drawn
from calibrate.workflow.traces.stated_samples import keep_stated

if TYPE_CHECKING:
    import pandas as pd

PAGE = 500  # traces read at once
SOURCE = "notebook"
"""What the audit log calls the source of a frame, and the sample of its labels, where nobody names it."""
LABEL_COLUMNS = (
    "trace_id", "labeller", "verdict", "kinds", "note", "seconds", "created_at", "sample", "spans", "adjudicates",
    "guide",
)  # fmt: skip


class TracesAndLabels(Opened):
    """What comes into a store and what it holds."""

    def add(
        self,
        frame: pd.DataFrame,
        *,
        columns: Mapping[str, str] | None = None,
        labels_as: str | None = None,
        design: Literal["random", "flagged", "feedback"] | None = None,
        name: str = SOURCE,
        redact: str | None = None,
        again: bool = False,
    ) -> AddedTraces:
        """Import a frame of traces, one a row, with the checks that a file of them has.

        Adding a frame twice adds nothing.

        Parameters
        ----------
        frame : pandas.DataFrame
            A column fills the field of its own name (`answer`, `question`, `sources`, `model`, `timestamp`, …; the
            fields are those of a file of traces), and any other becomes an attribute.
        columns : mapping of str to str, optional
            The column that holds a field, where it is called otherwise: ``{"answer": "reply"}``.
        labels_as : str, optional
            Who gave the labels of a column `label`; default: `name`.
        design : {"random", "flagged", "feedback"}, optional
            How the labelled traces were chosen, which makes them a sample; default: nobody says.
        name : str
            What the audit log calls the source, and the sample of its labels.
        redact : str, optional
            What is replaced before anything is stored; default: what TOUCHSTONE_REDACT says.
        again : bool
            Whether traces that were purged come in again.

        Returns
        -------
        AddedTraces
            How many came in, the rejected rows with their reasons, and what became of a column `scores`.

        Raises
        ------
        BadInput
            No frame, one without rows or without a column for the answer, two columns for one field, and an unknown
            design. Nothing is stored then.

        Examples
        --------
        >>> frame = pd.DataFrame({"id": ["a", "b"], "answer": ["Blue.", None]}, index=["first", "second"])
        >>> added = bench.add(frame)
        >>> added.imported
        1
        >>> print(added.rejected)
                row           reason
        second    1  answer: missing
        """
        store = self._store
        frames.check_frame(frame, "add")
        _check_statement(design, name)
        done = import_rows(
            store,
            name,
            frames.rows_of(frame, columns),
            format="frame",
            labels_as=labels_as,
            design=design,
            by=settings.read().user,
            redact=redact,
            again=again,
            now=now(),
        )
        report = done.report
        return AddedTraces(
            imported=report.imported,
            duplicates=report.duplicates,
            purged=report.purged,
            labels=report.labels,
            labels_left_out=report.labels_left_out,
            rejected=frames.rejections(frame, report.errors),
            rejections=report.rejected,
            sample=done.sample.name if done.sample else None,
            left_out=report.left_out,
            redacted=report.redacted,
            scores=done.scores,
            scores_left_out=done.refused,
        )

    def define(
        self,
        name: str,
        *,
        flag_when: FlagWhen | None = None,
        unit: str | None = None,
        low: Bound = None,
        high: Bound = None,
    ) -> ExternalDetector:
        """Say which scores of a detector are suspicious, whose scores came along with traces or were imported.

        Parameters
        ----------
        name : str
            Of the detector.
        flag_when : {"above", "below"}, optional
            The suspicious side.
        unit : str, optional
            What a score is, in words.
        low, high : float or "none", optional
            What a score can be; ``"none"`` takes a bound away.

        Returns
        -------
        ExternalDetector
            What is known of it now. What is not given stays as it was.

        Raises
        ------
        BadInput
            Nothing to define, a name that it cannot have, bounds that leave stored scores outside, and another
            direction than the one that a saved threshold goes by.

        Examples
        --------
        >>> bench.define("our_judge", flag_when="above", unit="P(hallucination)").flag_when
        'above'
        """
        if (flag_when, unit, low, high) == (None, None, None, None):
            raise BadInput(f"say what to define of {name}: flag_when='above', or 'below'")
        return define_external(self._store, name, flag_when=flag_when, unit=unit, low=low, high=high, now=now())

    def label(
        self,
        frame: pd.DataFrame,
        *,
        labels_as: str | None = None,
        design: Literal["random", "flagged", "feedback"] | None = None,
        name: str | None = None,
    ) -> AddedLabels:
        """Import a frame of labels on traces of the store, one a row, with the checks that a file of them has.

        Parameters
        ----------
        frame : pandas.DataFrame
            With the columns `trace_id` and `verdict` (`clean`, `hallucinated` or `unsure`), and where there are any
            `labeller`, `kinds`, `spans`, `note`, `seconds` and `created_at`.
        labels_as : str, optional
            Who gave the labels that name no labeller; default: the user.
        design : {"random", "flagged", "feedback"}, optional
            How these traces were chosen, which makes them a sample; default: nobody says.
        name : str, optional
            What the sample of a design is called; default: ``"notebook"``.

        Returns
        -------
        AddedLabels
            How many are new, and the rejected rows with their reasons.

        Raises
        ------
        BadInput
            No frame, one without rows or these columns, an unknown design, a name without a design, and a random
            design for traces that were mostly drawn otherwise. Nothing is stored then.

        Examples
        --------
        >>> verdicts = pd.DataFrame({"trace_id": ["t1", "nobody"], "verdict": ["clean", "clean"]})
        >>> added = bench.label(verdicts, labels_as="ben")
        >>> added.added, added.rejected["row"].tolist()
        (1, [1])
        """
        store = self._store
        frames.check_frame(frame, "label")
        if design is None and name is not None:
            raise BadInput(f"name={name!r} is the name of a sample, and only a design makes one: give design= too")
        sample_name = SOURCE if name is None else name
        _check_statement(design, sample_name)
        user, kinds = settings.read().user, [kind.key for kind in guides.known_kinds(store)]
        labels: list[Label] = []
        errors: list[Rejected] = []
        for row in compare_rows(store, frames.label_rows(frame), kinds=kinds):
            if isinstance(row, Rejected):
                errors.append(row)
            elif isinstance(row, Label):
                labels.append(row if row.labeller else replace(row, labeller=labels_as or user))
        ids = {label.trace_id for label in labels}
        if design == "random":
            must_not_be_drawn(store, ids)  # before a label is stored
        added, _ = store.labels.add_many(labels, now=now())
        sample = None
        if design is not None and labels:
            sample = keep_stated(store, sample_name, ids, design=design, by=user, now=now())
        return AddedLabels(
            added, len(labels) - added, frames.rejections(frame, errors), sample.name if sample else None
        )

    def traces(
        self,
        *,
        since: str | datetime | None = None,
        label: LabelState = "any",
        text: str | None = None,
        model: str | None = None,
        limit: int = 1000,
    ) -> pd.DataFrame:
        """Read traces, newest first, with the gold verdict of each.

        Parameters
        ----------
        since : str or datetime, optional
            A time, or as text ``"14d"`` or ``"2026-11-01"``; traces without a time are left out then.
        label : str
            `any`, `unlabelled`, `labelled`, `clean`, `hallucinated`, `unsure` or `disputed`.
        text : str, optional
            What question or answer hold.
        model : str, optional
            The model that answered.
        limit : int
            The most rows. They are in memory, sources and all.

        Returns
        -------
        pandas.DataFrame
            The columns that `add` takes, and `gold`. ``frame.attrs["total"]`` is how many match.

        Raises
        ------
        BadInput
            A time that cannot be read, and an unknown label.

        Examples
        --------
        >>> bench.traces(label="hallucinated", limit=2)[["answer", "gold"]].values.tolist()
        [['Grass is purple.', 'hallucinated'], ['Grass is purple.', 'hallucinated']]
        """
        if label not in get_args(LabelState):
            raise BadInput(f"no traces are labelled {label!r}: label is one of {', '.join(get_args(LabelState))}")
        start = since
        if isinstance(since, str):
            start = designs.window_start(designs.parse_since(since), now())
        elif since is not None and since.tzinfo is None:
            start = since.replace(tzinfo=UTC)
        assert start is None or isinstance(start, datetime)
        where = TraceFilter(
            since=start, undated=start is None, models=(model,) if model else (), label=label, text=text
        )
        rows: list[dict[str, Any]] = []
        after = None
        while len(rows) < limit:
            page = self._store.traces.page(where, limit=min(PAGE, limit - len(rows)), after=after)
            loaded = self._store.traces.load([line.pk for line in page.lines])
            rows += [frames.trace_cells(trace, line.gold) for trace, line in zip(loaded, page.lines, strict=True)]
            if (after := page.after) is None:
                break
        frame = frames.frame_of(rows, frames.TRACE_COLUMNS)
        frame.attrs["total"] = self._store.traces.count(where)
        return frame

    def labels(self, *, sample: str | None = None) -> pd.DataFrame:
        """Read every label, oldest first.

        Parameters
        ----------
        sample : str, optional
            Only those on members of this sample.

        Returns
        -------
        pandas.DataFrame
            One row a label, with the columns that `label` takes. The latest of a labeller counts.

        Raises
        ------
        BadInput
            An unknown sample.

        Examples
        --------
        >>> bench.labels()["verdict"].value_counts().to_dict()
        {'clean': 41, 'hallucinated': 20}
        """
        drawn = resolve_sample(self._store, sample)
        labels = self._store.labels.export(drawn.id if drawn else None)
        rows = (
            {**asdict(label), "kinds": list(label.kinds), "spans": [_span(span) for span in label.spans]}
            for label in labels
        )
        return frames.frame_of(rows, LABEL_COLUMNS)


def _check_statement(design: object, name: object) -> None:
    """Raise BadInput for an unknown design, and for a name that is no text, before anything is stored."""
    if design is not None and design not in designs.STATED:
        raise BadInput(f"labels cannot be stated as {design!r}: say {', '.join(designs.STATED)}")
    if not isinstance(name, str) or not name.strip():
        raise BadInput(f"name={name!r} is no name: give a text")


def _span(span: Any) -> dict[str, Any]:
    return {"start": span.start, "end": span.end, "type": span.kind}
