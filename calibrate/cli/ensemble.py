"""`ensemble`: several detectors as one, beside the best single detector."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass

from calibrate.cli import Answer
from calibrate.cli.common import now, open_store, user
from calibrate.cli.evidence import labels_lines
from calibrate.cli.output import table
from calibrate.report import numbers
from calibrate.report.sentences.tuning import ensembles as sentences
from calibrate.report.sentences.tuning import point_state as states
from calibrate.report.tables.column import cells
from calibrate.report.tables.ensembles import on_terminal
from calibrate.stats.ensembles.combine import Recipe
from calibrate.types import Ensemble, Interval
from calibrate.workflow.evidence import basis
from calibrate.workflow.evidence.labels_at_hand import LabelsAtHand, labels_at_hand
from calibrate.workflow.tuning import ensemble as step
from calibrate.workflow.tuning.ensemble_judging import Compared
from calibrate.workflow.tuning.point_state import judge_ensemble


@dataclass(frozen=True, slots=True)
class ComparedDocument:
    """An ensemble or a single detector at the same budget; `difference` is of recall, to the best single detector."""

    name: str
    single: bool
    recall: Interval
    precision: Interval
    difference: Interval | None


@dataclass(frozen=True, slots=True)
class JointDocument:
    """The share of clean traces that `k` or more detectors flag together. `assumed` is kept for old readers."""

    k: int
    measured: Interval
    assumed: None = None


@dataclass(frozen=True, kw_only=True)
class EnsembleDocument(Ensemble):
    """An ensemble beside others at the same budget. `saved` is its name, where it was saved."""

    compared: Sequence[ComparedDocument]
    joint: Sequence[JointDocument]
    saved: str | None
    state: str
    state_sentence: str
    evidence: LabelsAtHand


@dataclass(frozen=True, kw_only=True)
class SavedDocument(Ensemble):
    name: str
    saved_by: str


@dataclass(frozen=True, slots=True)
class ListDocument:
    ensembles: Sequence[SavedDocument]


def run(args: Namespace) -> Answer:
    if args.kind == "list":
        return _list(args)
    store = open_store(args)
    report = step.build(
        store,
        Recipe(args.kind, k=args.k, expensive=args.last or "", pass_share=args.pass_share),
        args.detectors,
        sample=args.sample,
        budget=args.budget,
        saved_thresholds=args.thresholds == "saved",
    )
    ensemble = sentences.document(report)
    state, reason = judge_ensemble(ensemble), args.reason.strip()
    save = args.save is not None and (not state.known_bad or bool(reason))
    if save:
        step.save(store, args.save, ensemble, reason=reason, by=user(), now=now())
    at_hand = labels_at_hand(store, basis.resolve_sample(store, args.sample))
    lines = [*_lines(report, at_hand), states.in_short(state)]
    if args.save is not None:
        lines.append(
            f"saved as {args.save}" if save else "not saved: to save it all the same, say why with --reason TEXT"
        )
    document = EnsembleDocument(
        **{**vars(ensemble), "reason": reason if save and state.known_bad else ""},
        state=state.verdict,
        state_sentence=states.sentence(state),
        compared=[
            ComparedDocument(_name(row), row.single, row.figures.recall, row.figures.precision, row.apart)
            for row in report.compared
        ],
        joint=[JointDocument(row.k, row.measured) for row in report.joint],
        saved=args.save if save else None,
        evidence=at_hand,
    )
    return Answer(document, "\n".join(lines), exit_code=2 if args.save is not None and not save else 0)


def _list(args: Namespace) -> Answer:
    saved = step.saved(open_store(args))
    if not saved:
        return Answer(ListDocument([]), "no ensemble is saved yet: `ensemble logistic --save NAME` makes one")
    documents = [SavedDocument(**vars(row.ensemble), name=row.name, saved_by=row.saved_by) for row in saved]
    return Answer(ListDocument(documents), table(cells(on_terminal(now()), saved)))


def _lines(report: step.Report, at_hand: LabelsAtHand) -> list[str]:
    rows = [("at the same budget", "recall", "95%", "precision", "95%", "against the best single, points")]
    for row in report.compared:
        figures = (*_cells(row.figures.recall), *_cells(row.figures.precision))
        rows.append((_name(row), *figures, sentences.difference_words(row.apart) if row.apart else ""))
    return [
        f"{report.recipe.kind} of {sentences.names(report.rule.detectors)}; "
        f"{numbers.labelled(report.n, report.positives)}",
        " ".join(sentences.sentences(report)),
        sentences.page_cut(report),
        *labels_lines(at_hand),
        *sentences.notes(report),
        table(rows, right=(1, 3)),
        *(sentences.joint_sentence(row, report.able, report.budget) for row in report.joint[:2]),
        "Figures are out of fold (10 times 5 folds), and so is the choice of the best single detector.",
    ]


def _name(row: Compared) -> str:
    """What a detector is typed as, or a kind of ensemble in words."""
    return row.ranked_by if isinstance(row.ranked_by, str) else sentences.kind_name(row.ranked_by)


def _cells(figure: Interval) -> tuple[str, str]:
    if figure.value is None:
        return "–", "–"
    return numbers.share(figure.value), numbers.interval(figure.low, figure.high, unit="")
