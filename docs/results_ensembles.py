"""The part of docs/reference/results.md about ensembles: what the best detectors find together and alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from results_points import ENOUGH, decimals, figure

from calibrate.report.numbers import share
from calibrate.report.sentences.tuning.ensembles import BETTER, WORSE, against, compared_name, kind_name, names
from calibrate.stats.ensembles.combine import Kind, Recipe
from calibrate.stats.ensembles.performance import Performance
from calibrate.types import Interval
from calibrate.workflow.evidence.score_matrix import load_score_matrix
from calibrate.workflow.tuning import ensemble
from calibrate.workflow.tuning.ensemble_data import candidate_names
from db import Store

BUDGETS = (0.05, 0.1)  # the second where the first finds nothing
SHOWN: dict[Kind, str] = {
    "k_of_n": "at least 2",
    "logistic": "logistic",
}


@dataclass(frozen=True)
class Row:
    """An ensemble, or the best single detector, whose `apart` is None."""

    title: str
    figures: Performance
    apart: Interval | None


def part(store: Store, seed: int) -> str:
    """A table of every kind at the budgets, and whether any is shown to be better. Empty where labels of either
    verdict, or detectors that score them, are too few."""
    labels = load_score_matrix(store).labels
    if min(labels.sum(), (~labels).sum()) < ENOUGH or len(candidate_names(store, sample=None)) < 2:
        return ""
    reports = [ensemble.build(store, Recipe("logistic"), budget=BUDGETS[0], seed=seed)]
    if any(row.figures.recall.value == 0 for row in rows_of(reports[0])):
        reports.append(ensemble.build(store, Recipe("logistic"), budget=BUDGETS[1], seed=seed))
    table = ["| budget | flagged by | flagged | precision | recall | recall over the best single |"]
    table.append("|--:|---|--:|---|---|---|")
    table += [_cells(report.budget, row) for report in reports for row in rows_of(report)]
    members = names([f"`{name}`" for name in reports[0].rule.detectors])
    head = f"**Ensembles** of {members}, picked on all labels; the figures are of members picked anew in each fold."
    return "\n\n".join([head, "\n".join(table), " ".join(_sentences(reports))])


def rows_of(report: ensemble.Report) -> Iterator[Row]:
    yield Row("best single", report.best_figures, None)
    titles = {kind_name(Recipe(kind)): title for kind, title in SHOWN.items()}
    for candidate in report.compared:
        if not candidate.single and (name := compared_name(candidate)) in titles:
            yield Row(titles[name], candidate.figures, candidate.apart)


def _cells(budget: float, row: Row) -> str:
    figures = row.figures
    return (
        f"| {budget:.0%} | {row.title} | {share(figures.flag_rate.value or 0.0)} | {figure(figures.precision)} "
        f"| {figure(figures.recall)} | {_difference(row.apart)} |"
    )


def _difference(apart: Interval | None) -> str:
    if apart is None or apart.value is None or apart.low is None or apart.high is None:
        return ""
    return f"{_signed(apart.value)} ({_signed(apart.low)} to {_signed(apart.high)})"


def _signed(value: float) -> str:
    text = decimals(abs(value))
    return text if text == ".00" else f"{'+' if value > 0 else '−'}{text}"


def _sentences(reports: list[ensemble.Report]) -> Iterator[str]:
    matrix = reports[0].gathered
    if matrix.from_labels or matrix.traffic.n <= reports[0].n:
        yield "Only labelled traces are scored here and stand for the traffic: the cuts are read from their scores."
    else:
        yield f"The cuts are read from the scores of {matrix.traffic.n:,} traces, labelled or not."
    for report in reports:
        yield _verdict(report)


def _verdict(report: ensemble.Report) -> str:
    """Which kinds are shown to be better or worse than the best single detector, if any."""
    verdicts = {row.title: against(row.apart) for row in rows_of(report) if row.apart is not None}
    better, worse = ([title for title, verdict in verdicts.items() if verdict == which] for which in (BETTER, WORSE))
    most = share(min(1.0, report.budget * report.n / report.positives))
    sentence = (
        f"At {report.budget:.0%}, which can hold at most {most} of the {report.positives:,} hallucinated, "
        f"{names(better) or 'none'} {_is(better)} shown to be better than the best single detector "
        f"(`{report.best}`, by all labels)"
    )
    if worse:
        sentence += f", and {names(worse)} {_is(worse)} shown to be worse"
    if not report.best_figures.flag_rate.value:
        sentence += "; that one flags nothing, since more than the budget shares its most suspicious score"
    return f"{sentence}."


def _is(subjects: list[str]) -> str:
    return "are" if len(subjects) > 1 else "is"
