"""The steps of a notebook from detectors to a release, with frames out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, get_args

from calibrate import settings
from calibrate.engines.choice import choose_engine
from calibrate.errors import BadInput, TouchstoneError
from calibrate.stats.choosing.policy import parse
from calibrate.thresholds.files import check_place
from calibrate.thresholds.signing import KeyPlace, read_signer
from calibrate.types import Strength, Tier
from calibrate.urls import redact as without_password
from calibrate.workflow.detection import detect as detecting
from calibrate.workflow.detection.outcomes import failures
from calibrate.workflow.evidence import loading, score_export
from calibrate.workflow.evidence.evidence import Evidence
from calibrate.workflow.evidence.sweep_points import points_of
from calibrate.workflow.notebook import frames
from calibrate.workflow.notebook.opened import Opened, now
from calibrate.workflow.notebook.results import Released
from calibrate.workflow.releasing import approval, choosing, history
from calibrate.workflow.releasing import release as releasing
from calibrate.workflow.releasing.announce import announce
from calibrate.workflow.releasing.choosing import Choice
from db.releases import ReleaseRequest

if TYPE_CHECKING:
    import pandas as pd

SCORE_COLUMNS = ("trace_id", "gold", "detector", "score", "status", "reason")
RUN_COLUMNS = ("detector", "scored", "reused", "abstained", "refusals", "failed", "seconds", "why")


class Steps(Opened):
    """Detectors run, thresholds are swept, chosen and released."""

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
            now=now(),
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
            return Released(None, None, None, None, approval.propose(self._store, request, now=now()).id)
        signer = read_signer(after.sign if sign is None else sign)
        row = releasing.release(self._store, request, now=now(), out=out, sign=signer)
        problems = [each.reason or "no answer" for each in announce(row, after, self._store)]
        return Released(
            row.version, history.read_release(row), row.sha256, without_password(str(out)), problems=problems
        )

    def _evidence(
        self, detector: str, sample: str | Sequence[str] | None, params: Mapping[str, Any] | None
    ) -> Evidence:
        return loading.load_evidence(self._store, detector, sample=sample, params=params)
