"""The scoreboard as sentences, as rows of plain cells, and as CSV."""

from __future__ import annotations

from collections.abc import Iterator

from calibrate.report.names import title_of
from calibrate.report.numbers import count, decimal_interval, decimals, difference, listed
from calibrate.report.sentences.labelling.labels import caution as caution_of
from calibrate.report.sentences.tuning import figures
from calibrate.report.sentences.tuning.segments import name_by
from calibrate.stats.intervals.best_of_many import Verdict
from calibrate.stats.intervals.ranking_within import Recognizes, Within
from calibrate.stats.sweep.sweep import RANKABLE
from calibrate.types import Interval
from calibrate.workflow.tuning.model_identity import MODEL
from calibrate.workflow.tuning.scoreboard import OVERLAP, Against, AtPoint, Scoreboard, Silence


def sentences(board: Scoreboard) -> list[str]:
    """Say who leads, and whether by more than chance over the next best and over the baselines."""
    return list(_sentences(board))


def _sentences(board: Scoreboard) -> Iterator[str]:
    if board.leader is None:
        least = f"{RANKABLE} hallucinated and {RANKABLE} clean labels"
        yield f"No detector can be ranked: that takes at least {least} with a score."
    else:
        best, many = board.line(board.leader), len(board.ranked)
        yield (
            f"{title_of(best.name)} leads with an AUROC of {_auroc(best.auroc)} ({count(best.scored)} of "
            f"{count(best.n, 'label')} scored, {count(best.positives)} of the {count(best.n)} hallucinated)"
            f"{f'; the highest of {count(many)} is flattered' if many > 1 else ''}."
        )
        if many > 1:
            yield _best(board)
        yield from (_comparison(against, board) for against in board.against)
        yield from _within(board)
    if caution := caution_of(board.caution):
        yield f"{caution}."
    if OVERLAP not in {line.name for line in board.lines} | set(board.silent):
        baseline = title_of(OVERLAP).lower()
        yield f"The baseline {baseline} has no scores: run it, a detector that does not beat it adds nothing."
    # A detector that was not run on every label: that is no lack of coverage.
    if waiting := [
        f"{title_of(line.name)} on {count(line.not_run)} of {count(line.n, 'label')}"
        for line in board.lines
        if line.not_run
    ]:
        yield f"Not run: {', '.join(waiting)}. Coverage is of the rest; recall counts what was not run as not flagged."
    for line in board.lines:
        if line.point and line.point.segments:
            by, own = name_by(line.point.segments.by), count(len(line.point.segments.thresholds), "threshold")
            yield (f"{title_of(line.name)} was saved with {own} by {by}: its figures here are at the common threshold.")
        if line.fitted:
            yield (
                f"{title_of(line.name)}: {count(line.fitted)} of {count(board.n, 'label')} fitted it, so its figures "
                f"are of the other {count(line.n)}."
            )


def _within(board: Scoreboard) -> Iterator[str]:
    """What is left of the leader where knowing the model does not help, and who recognises nothing but the model."""
    if not board.logged:
        yield "No labelled trace names its model: log `model`, for which model answered can beat every detector."
    if board.models < 2:
        return
    if board.logged < board.n:
        yield f"Which model answered is logged on {count(board.logged)} of {count(board.n, 'label')}."
    within = board.line(board.leader or "").within
    if within.auroc.value is not None:
        yield (
            f"Among answers of one model and operation its AUROC is {_auroc(within.auroc)} ({count(within.n, 'label')} "
            f"of {count(board.models, 'model')})."
        )
    only = [title_of(line.name) for line in board.lines if line.name != MODEL and recognizes_model(line.within)]
    if only:
        verb = "recognises" if len(only) == 1 else "recognise"
        yield f"{listed(only, most=6)} {verb} the model, not the error: within one model nothing is shown above chance."


def recognizes_model(within: Within) -> bool:
    """Whether scores are shown to tell models apart, and not errors."""
    return within.recognizes == Recognizes.STRATUM


def within_in_words(title: str, within: Within) -> str:
    """Say of one detector that it tells models apart only."""
    return f"{title} recognises the model, not the error: within one model its AUROC is {_auroc(within.auroc)}"


def recognizes(within: Within) -> str:
    """Say what scores are shown to tell apart; "" where labels do not show it, or no model is logged."""
    return {Recognizes.ERROR: "error", Recognizes.STRATUM: "model"}.get(within.recognizes, "")


def _best(board: Scoreboard) -> str:
    """Whether the leader is shown to be the best, all comparisons with it taken together."""
    others = count(len(board.ranked) - 1, "other")
    if not board.may_be_best:
        return f"It is shown to rank better than {'each of ' if len(board.ranked) > 2 else ''}the {others}."
    rivals = listed([title_of(name) for name in board.may_be_best], most=6)
    return f"It is not shown to be the best: of the {others}, {rivals} may rank as well or better."


def _comparison(against: Against, board: Scoreboard) -> str:
    result, title = against.result, title_of(against.other)
    name = f"the baseline {title.lower()}" if board.line(against.other).baseline else f"the next best, {title}"
    labels = f"{count(result.n, 'label')} that both scored"
    if result.auroc.low is None or result.auroc.high is None:
        return f"Over {name}: {labels} do not say how far apart they are."
    figure = difference(result.auroc.value, result.auroc.low, result.auroc.high)
    return f"Over {name}: {figure} ({labels}), {_verdict(against, len(board.ranked))}."


def _verdict(against: Against, many: int) -> str:
    picked = f", also held against the pick of {count(many)}" if many > 1 else ""
    words = {
        Verdict.BETTER: f"better beyond its interval{picked}",
        Verdict.WORSE: f"worse beyond its interval, where both could score{picked}",
        Verdict.ALONE: f"which the pick of the highest of {count(many)} can explain",
    }
    return words.get(against.verdict, "no significant difference on these labels")


def _auroc(figure: Interval) -> str:
    value = decimals(figure.value, 2)
    return value if figure.low is None else f"{value}, 95% {decimal_interval(figure.low, figure.high, 2)}"


def silent(board: Scoreboard) -> dict[str, str]:
    """Say of each detector that scored nothing why."""
    words: dict[str, str] = {
        Silence.NO_LABELS: "no labels: label some traces first",
        Silence.WAITING: "its labels wait behind a trace that nobody has labelled",
        Silence.FITTED: "every label fitted it, and does not count for it",
        Silence.REFUSALS: "every labelled answer is a refusal",
    }
    return {name: words.get(reason, reason) for name, reason in board.silent.items()}


def why(point: AtPoint) -> str | None:
    """Say what to know of a detector's threshold, where there is anything."""
    if point.nearest is not None:
        return figures.why(point.nearest)
    return "the saved point is of other parameters or another model" if point.other else None
