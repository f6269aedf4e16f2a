"""The workbench of a notebook: the steps of the loop as methods, with frames in and frames out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, get_args

from calibrate import settings
from calibrate.engines.choice import choose_engine
from calibrate.errors import BadInput, TouchstoneError
from calibrate.ingest.base import Rejected
from calibrate.stats.choosing.policy import parse
from calibrate.stats.sampling import designs
from calibrate.thresholds.files import check_place
from calibrate.thresholds.signing import KeyPlace, read_signer
from calibrate.types import Label, LabelState, Strength, Tier, TraceFilter
from calibrate.urls import redact as without_password
from calibrate.workflow.detection import detect as detecting
from calibrate.workflow.detection.outcomes import failures
from calibrate.workflow.evidence import loading, score_export
from calibrate.workflow.evidence.basis import resolve_sample
from calibrate.workflow.evidence.evidence import Evidence
from calibrate.workflow.evidence.sweep_points import points_of
from calibrate.workflow.labelling import guides
from calibrate.workflow.labelling.interchange import compare_rows
from calibrate.workflow.notebook import frames
from calibrate.workflow.notebook.results import AddedLabels, AddedTraces, Released
from calibrate.workflow.releasing import approval, choosing, history
from calibrate.workflow.releasing import release as releasing
from calibrate.workflow.releasing.announce import announce
from calibrate.workflow.releasing.choosing import Choice
from calibrate.workflow.traces.external_scores import use_external
from calibrate.workflow.traces.import_labelled import import_rows
from calibrate.workflow.traces.membership import must_not_be_drawn
from calibrate.workflow.traces.stated_samples import keep_stated
from db import Store, open_store
from db.audit import Actor, identify_by
from db.releases import ReleaseRequest

if TYPE_CHECKING:
    import pandas as pd

PAGE = 500  # traces read at once
SOURCE = "notebook"
"""What the audit log calls the source of a frame, and the sample of its labels, where nobody names it."""
SCORE_COLUMNS = ("trace_id", "gold", "detector", "score", "status", "reason")
LABEL_COLUMNS = (
    "trace_id", "labeller", "verdict", "kinds", "note", "seconds", "created_at", "sample", "spans", "adjudicates",
    "guide",
)  # fmt: skip
RUN_COLUMNS = ("detector", "scored", "reused", "abstained", "refusals", "failed", "seconds", "why")


class Workbench:
    """A store to work on in a notebook or a script.

    Everything is checked as it is by the pages and the command line, and every figure is theirs. Rows that cannot be
    taken come back with the reason, and the others are kept. `calibrate.open` opens one.

    Parameters
    ----------
    store : Store
        An open store. The workbench closes it.

    Examples
    --------
    >>> import calibrate
    >>> import pandas as pd
    >>> bench = calibrate.open("sqlite:///touchstone.db")
    >>> answers = pd.DataFrame({
    ...     "trace_id": [f"t{n}" for n in range(60)],
    ...     "reply": ["Grass is purple." if n % 3 == 0 else "The sky is blue." for n in range(60)],
    ...     "sources": [[f"Note {n}: the sky is blue."] for n in range(60)],
    ...     "label": ["hallucinated" if n % 3 == 0 else "clean" for n in range(60)],
    ... })
    >>> done = bench.add(answers, columns={"answer": "reply"}, labels_as="ann", name="may")
    >>> done.imported, done.labels, len(done.rejected)
    (60, 60, 0)
    >>> bench.detect("token_overlap")[["detector", "scored", "failed"]].values.tolist()
    [['token_overlap', 60, 0]]
    >>> sweep = bench.sweep("token_overlap")
    >>> sweep[["threshold", "precision", "recall", "flagged"]].values.tolist()[0]
    [0.0, 1.0, 1.0, 20.0]
    >>> choice = bench.choose("token_overlap", "precision>=0.7", save=True)
    >>> choice.saved, choice.point.precision.low > 0.8
    (True, True)
    >>> bench.release("thresholds.json", note="The first.").version
    1
    >>> bench.close()
    """

    def __init__(self, store: Store) -> None:
        self._opened = store
        self._closed = False

    @property
    def _store(self) -> Store:
        if self._closed:
            raise BadInput("the workbench is closed: open it again with calibrate.open")
        return self._opened

    def __enter__(self) -> Workbench:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Workbench {self._opened.name}{', closed' if self._closed else ''}>"

    def close(self) -> None:
        """Close the store. Whatever is called after that raises BadInput."""
        self._closed = True
        self._opened.close()

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
            How many came in, and the rejected rows with their reasons.

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
            now=_now(),
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
        )

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
        added, _ = store.labels.add_many(labels, now=_now())
        sample = None
        if design is not None and labels:
            sample = keep_stated(store, sample_name, ids, design=design, by=user, now=_now())
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
            start = designs.window_start(designs.parse_since(since), _now())
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

    def scores(
        self,
        detectors: str | Sequence[str] = (),
        *,
        sample: str | None = None,
        params: Mapping[str, Any] | None = None,
        wide: bool = False,
    ) -> pd.DataFrame:
        """Read the scores of every trace, or of a sample's members.

        Parameters
        ----------
        detectors : str or sequence of str
            Their names; default: all that have scores.
        sample : str, optional
            Only the members of this sample.
        params : mapping, optional
            The parameters of the one detector that is named; default: those it ships with.
        wide : bool
            A row a trace with a column a detector, instead of a row a score.

        Returns
        -------
        pandas.DataFrame
            Long: trace_id, gold, detector, score, status, reason. Wide: gold and a column a detector, by trace_id.
            A score that there is not is NaN.

        Raises
        ------
        BadInput
            A detector without scores, an unknown sample, and parameters of no one detector.

        Examples
        --------
        >>> bench.scores("token_overlap", wide=True).loc[["t0", "t1"]].values.tolist()
        [['hallucinated', 0.0], ['clean', 1.0]]
        """
        names = [detectors] if isinstance(detectors, str) else list(detectors)
        configs = score_export.chosen_configs(self._store, names, params or {})
        records = score_export.records(self._store, configs, sample=sample)
        rows = ({name: getattr(record, name) for name in SCORE_COLUMNS} for record in records)
        frame = frames.frame_of(rows, SCORE_COLUMNS).astype({"score": "float64"})
        if not wide:
            return frame
        gold = frame.drop_duplicates("trace_id").set_index("trace_id")["gold"]
        table = frame.pivot(index="trace_id", columns="detector", values="score").rename_axis(columns=None)
        return table[[config.name for config in configs]].assign(gold=gold)[["gold", *(c.name for c in configs)]]

    def detect(
        self,
        detectors: str | Sequence[str],
        *,
        sample: str | None = None,
        everything: bool = False,
        params: Mapping[str, Any] | None = None,
        budget: float | None = None,
    ) -> pd.DataFrame:
        """Score the labelled traces, or those of a sample, or all. What has a score is not scored again.

        Parameters
        ----------
        detectors : str or sequence of str
            Their names; ``"all"`` for every one.
        sample : str, optional
            Score the members of this sample.
        everything : bool
            Score every trace of the store.
        params : mapping, optional
            Values for those detectors that have a parameter of that name.
        budget : float, optional
            US dollars that requests to a chat endpoint may cost.

        Returns
        -------
        pandas.DataFrame
            A row a detector: how many traces were scored, reused, abstained on, refusals and failed, the seconds, and
            `why` there is no score, with counts. ``frame.attrs`` has the number and the status of the run.

        Raises
        ------
        BadInput
            An unknown detector, parameter or sample.
        TouchstoneError
            A run that failed.
        """
        labelled = sample is None and not everything
        scope = detecting.scope_of(sample=sample, labelled=labelled, everything=everything)
        names = [detectors] if isinstance(detectors, str) else list(detectors)
        engine = choose_engine()
        queued = detecting.queue(self._store, names, scope, params=params, budget=budget, engine=engine)
        run = detecting.work(self._store, run_id=queued.id) or self._store.runs.get(queued.id)
        if run.status == "failed":
            raise TouchstoneError(f"run {run.id} failed: {run.error}")
        rows = (
            {
                "detector": name,
                **tally,
                "why": {why: tally["of"]} if (why := tally.get("unavailable")) else tally["why"],
            }
            for name, tally in run.counts.items()
        )
        frame = frames.frame_of(rows, RUN_COLUMNS)
        frame.attrs.update(run=run.id, status=run.status, failed=[each.detector for each in failures(run)])
        return frame

    def sweep(
        self, detector: str, *, sample: str | Sequence[str] | None = None, params: Mapping[str, Any] | None = None
    ) -> pd.DataFrame:
        """Compute a detector's figures at every threshold.

        Parameters
        ----------
        detector : str
            Its name.
        sample : str or sequence of str, optional
            The sample whose labels count, or several together; default: what describes the traffic best.
        params : mapping, optional
            The detector's parameters; default: those it ships with.

        Returns
        -------
        pandas.DataFrame
            A row a distinct score, strict to loose: `threshold`, `precision`, `recall`, `fpr` and `flag_rate` with
            pointwise 95% bounds (`precision_low`, …), and the labels themselves: `flagged`, `true_positives`,
            `false_positives`, `false_negatives`, `true_negatives`, of the traces with a score. ``frame.attrs`` has
            what is true of all of them: `detector`, `params`, `flag_when`, `sample`, `n`, `positives`, `prevalence`,
            `coverage`, `auroc`, `average_precision`, and a `caution` where the labels do not describe the traffic.

        Raises
        ------
        BadInput
            A detector without scores, an unknown sample, and labels of one verdict only.
        """
        import pandas as pd

        data = self._evidence(detector, sample, params)
        curve = data.sweep
        if curve.missing:
            raise BadInput(
                f"{detector} cannot be swept: {curve.missing}; label more traces, and `detect` what has no score"
            )
        frame = pd.DataFrame([asdict(point) for point in points_of(curve, data)]).astype("float64")
        frame["flagged"] = curve.tp_count + curve.fp_count
        frame["true_positives"] = curve.tp_count
        frame["false_positives"] = curve.fp_count
        frame["false_negatives"] = curve.scored_positives - curve.tp_count
        frame["true_negatives"] = curve.scored - curve.scored_positives - curve.fp_count
        frame.attrs.update(
            detector=data.config.name,
            params=dict(data.config.params),
            flag_when=data.flag_when,
            sample=data.sample.name if data.sample else None,
            n=curve.n,
            positives=curve.positives,
            prevalence=curve.prevalence,
            coverage=curve.coverage,
            auroc=curve.auroc if curve.can_rank else None,
            average_precision=curve.average_precision if curve.can_rank else None,
            caution=str(data.caution.chosen) if data.caution else None,
        )
        return frame

    def choose(
        self,
        detector: str,
        policy: str,
        *,
        sample: str | Sequence[str] | None = None,
        params: Mapping[str, Any] | None = None,
        strength: Strength = "measured",
        looks: int = 1,
        moved_from: str | None = None,
        save: bool = False,
        reason: str = "",
    ) -> Choice:
        """Choose an operating point, judge it, and with `save` save it for the next release.

        Parameters
        ----------
        detector : str
            Its name.
        policy : str
            As ``"precision>=0.7"``, ``"recall>=0.9"``, ``"f1"``, ``"cost:fa=1,miss=20"``, ``"alerts<=20/day"``,
            ``"elbow"`` or ``"manual:0.42"``.
        sample, params
            As in `sweep`.
        strength : {"measured", "bounded"}
            What is to be known of the precision. Labels drawn for it certify one: ``certify`` on the command line.
        looks : int
            Among how many detectors and looks a bound shares its error.
        moved_from : str, optional
            The policy that a threshold set by hand is judged by; default: the last one that was asked for.
        save : bool
            Save it, unless it meets no policy or is known to be bad.
        reason : str
            Why it shall be saved all the same.

        Returns
        -------
        Choice
            `point`, an OperatingPoint with every figure and its interval; `state`, what is known against it; `saved`.

        Raises
        ------
        BadInput
            A policy that cannot be read, and labels that allow no choice or do not describe the traffic.
        """
        data, rule = self._evidence(detector, sample, params), parse(policy)
        if looks < 1 or (looks > 1 and strength != "bounded"):
            raise BadInput(f"{looks} looks: they share the error of a bound; give 1 or more, with strength='bounded'")
        if data.sweep.missing and rule.kind != "manual":
            raise BadInput(f"{detector} cannot be tuned: {data.sweep.missing}; label more traces, or score them")
        return choosing.choose(
            self._store,
            data,
            rule,
            strength=strength,
            looks=looks,
            moved_from=moved_from,
            reason=reason,
            save=save,
            by=settings.read().user,
            now=_now(),
        )

    def release(
        self,
        path: str | os.PathLike[str],
        *,
        detectors: Sequence[str] | None = None,
        ensembles: Sequence[str] = (),
        tiers: Mapping[str, Tier] | None = None,
        note: str = "",
        reason: str = "",
        sign: KeyPlace | None = None,
    ) -> Released:
        """Release the saved operating points as the next version of the thresholds file.

        Where the team wants a second person to approve (TOUCHSTONE_APPROVAL), this proposes the release.

        Parameters
        ----------
        path : str or path
            The thresholds file, or a URL that fsspec writes.
        detectors : sequence of str, optional
            Whose saved points; default: all that have one.
        ensembles : sequence of str
            Saved ensembles.
        tiers : mapping of str to {"page", "signal", "off"}, optional
            What a flag does, where that shall differ from the live release.
        note, reason : str
            What is new; and why points may be worse than the live ones.
        sign : str or path, optional
            The key's file; default: what TOUCHSTONE_SIGN_KEY says.

        Returns
        -------
        Released
            The version and the file, or the proposal.

        Raises
        ------
        BadInput
            Nothing is saved or nothing changes, a point is known to be bad or worse than the live one, or the path
            cannot be written.
        """
        for name, tier in (tiers or {}).items():
            if tier not in get_args(Tier):
                raise BadInput(f"{name}: a tier is one of {', '.join(get_args(Tier))}, not {tier!r}")
        after, user = settings.releases(), settings.read().user
        request = ReleaseRequest(
            detectors=detectors, ensembles=ensembles, tiers=tiers or {}, note=note, reason=reason.strip(), by=user
        )
        out = check_place(str(path), store=self._store.file)
        if after.approval:
            return Released(None, None, None, None, approval.propose(self._store, request, now=_now()).id)
        signer = read_signer(after.sign if sign is None else sign)
        row = releasing.release(self._store, request, now=_now(), out=out, sign=signer)
        problems = [each.reason or "no answer" for each in announce(row, after, self._store)]
        return Released(
            row.version, history.read_release(row), row.sha256, without_password(str(out)), problems=problems
        )

    def _evidence(
        self, detector: str, sample: str | Sequence[str] | None, params: Mapping[str, Any] | None
    ) -> Evidence:
        return loading.load_evidence(self._store, detector, sample=sample, params=params)


def open_workbench(url: str | None = None, *, create: bool = True) -> Workbench:
    """Open a store in the name of the user, as `calibrate.open` describes."""
    identify_by(_actor)
    store = open_store(url or settings.read().store, create=create)
    use_external(store)
    return Workbench(store)


def _actor() -> Actor:
    given = settings.read()
    return Actor(given.user, "login" if given.is_login else "environment")


def _check_statement(design: object, name: object) -> None:
    """Raise BadInput for an unknown design, and for a name that is no text, before anything is stored."""
    if design is not None and design not in designs.STATED:
        raise BadInput(f"labels cannot be stated as {design!r}: say {', '.join(designs.STATED)}")
    if not isinstance(name, str) or not name.strip():
        raise BadInput(f"name={name!r} is no name: give a text")


def _now() -> datetime:
    return datetime.now(UTC)


def _span(span: Any) -> dict[str, Any]:
    return {"start": span.start, "end": span.end, "type": span.kind}
