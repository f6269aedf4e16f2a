"""What is known of an ensemble, in sentences that anybody can check against the labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from calibrate.report.names import title_of
from calibrate.report.numbers import UNKNOWN, count, estimate, exact_share, interval, listed, points, share
from calibrate.report.sentences.tuning.figures import not_bounded
from calibrate.stats.ensembles.combine import FEW, Kind, Recipe
from calibrate.stats.ensembles.joint import Joint
from calibrate.types import Ensemble, Interval
from calibrate.workflow.tuning.ensemble import Report, document_of
from calibrate.workflow.tuning.ensemble_data import COVERED
from calibrate.workflow.tuning.ensemble_judging import Compared

BETTER, WORSE, SAME = "better", "worse", "same"


def against(difference: Interval) -> str:
    """Whether a difference in recall is significant: better, worse or same (which is: not shown)."""
    if difference.low is not None and difference.low > 0:
        return BETTER
    return WORSE if difference.high is not None and difference.high < 0 else SAME


def compared_name(row: Compared) -> str:
    """Name a detector, or a kind of ensemble in words."""
    return title_of(row.ranked_by) if isinstance(row.ranked_by, str) else kind_name(row.ranked_by)


def kind_name(recipe: Recipe) -> str:
    """Name a kind of ensemble in words: "at least 2"."""
    names: dict[Kind, str] = {
        "k_of_n": "any of them" if recipe.k == 1 else f"at least {recipe.k}",
        "logistic": "logistic",
        "cascade": f"cascade, {title_of(recipe.expensive)} last",
    }
    return names[recipe.kind]


def sentences(report: Report) -> list[str]:
    """Say what an ensemble flags and finds, and whether it beats the best single detector."""
    recall, single = report.figures.recall, report.best_figures.recall
    return comparison(report.signal.share, recall, report.best, single, report.apart, positives=report.positives)


def answer(report: Report, best: str, *, known_bad: bool = False) -> str:
    """Say in one sentence whether to combine, with the numbers. `best` is the best single detector's name for people;
    `known_bad`: something else speaks against it.

    "Not shown to help: together they find 40% (20–64) of hallucinations when they flag 19% of traffic, ROUGE-L alone
    39% (21–60), a difference of +1 point (−17 to +18) on 28 hallucinated labels."
    """
    recall, single, apart = report.figures.recall, report.best_figures.recall, report.apart
    if not report.signal.share:
        return "Do not combine: the most suspicious score is shared by more traffic than the budget allows."
    if recall.value is None:
        return f"Combine or not is unknown: no hallucination is labelled ({count(report.n, 'label')})."
    shown = {BETTER: "Combine", WORSE: "Do not combine", SAME: "Not shown to help"}[against(apart)]
    words = "Do not combine" if known_bad else shown
    return (
        f"{words}: together they find {_recall(recall)} of hallucinations when they flag {share(report.signal.share)} "
        f"of traffic, {best} alone {_recall(single)}, a difference of {points(apart.value, apart.low, apart.high)} on "
        f"{count(report.positives, 'hallucinated label')}."
    )


def comparison(
    flagged: float, recall: Interval, best: str, best_recall: Interval, difference: Interval, *, positives: int
) -> list[str]:
    """Say what it flags and finds, and whether it beats the best single detector. `flagged` of the traffic, 0 to 1.

    "Flags 5% of traffic and finds about 34% (22–48) of hallucinations (62 labelled); the single detector ..."
    """
    if not flagged:
        return ["Flags nothing: its most suspicious score is shared by more traffic than the budget allows."]
    if recall.value is None:
        return [
            f"Flags {share(flagged)} of traffic.",
            "How many hallucinations it finds is unknown: none is labelled.",
        ]
    return [
        f"Flags {share(flagged)} of traffic and finds about {_recall(recall)} of hallucinations ({count(positives)} "
        f"labelled); the single detector that ranks best in each fold (AUROC), {title_of(best)} on all labels, finds "
        f"{_recall(best_recall)}.",
        _verdict(difference),
    ]


def notes(report: Report) -> list[str]:
    """List what a reader must know before relying on the figures."""
    return list(_notes(report))


def _notes(report: Report) -> Iterator[str]:
    recipe, positives, traffic = report.recipe, report.positives, report.gathered.traffic
    if report.picks is not None:
        yield picking(report.picks, report.rule.detectors, report.dealt)
    if positives < FEW:
        labels = count(report.n, "label")
        yield f"Only {count(positives)} of {labels} are hallucinated: one more or less moves every figure."
        if recipe.kind == "logistic":
            yield f"With fewer than {FEW} hallucinated labels a logistic fit chases noise: this is the mean rank."
    bad = report.prevalence
    if bad.value is not None and report.budget < bad.value:
        yield (
            f"About {estimate(bad.value, bad.low, bad.high)} of the traffic is hallucinated: flagging "
            f"{share(report.budget)} of it finds at best {share(report.budget / bad.value)} or so of the "
            "hallucinations."
        )
    if recipe.thresholds:
        yield "The thresholds are the saved operating points. Where these labels chose them, the figures flatter them."
    if report.gathered.from_labels:
        window = count(traffic.window, "trace")
        yield (
            f"Every detector was asked about only {count(traffic.n)} of {window}, so the cut is read from the "
            f"{count(report.n, 'label')}, each counting for what it stands for. Run the detectors on all traces "
            "(`detect … --all`) to read it from the traffic."
        )
    for name, threshold in sorted(report.each.items()):
        if threshold is None:
            little = share(report.budget)
            yield f"{title_of(name)} alone cannot flag as little as {little}: more share its most suspicious score."
    for name, coverage in report.coverage.items():
        if coverage < COVERED:
            yield f"{title_of(name)} can score only {share(coverage)} of the traffic."


def picking(picks: Mapping[str, int], members: Sequence[str], dealt: int) -> str:
    """Say how the members were picked, and how often each was: "a in 50 of 50 training folds, b in 31 …"."""
    times = listed([f"{title_of(name)} in {count(times)}" for name, times in picks.items()], most=8)
    return (
        f"Nobody named the members: they are the {count(len(members))} detectors that rank best, picked anew in each "
        f"of {count(dealt)} training folds, so that the figures are of the picking too ({times}); the ensemble is of "
        "those picked on all labels."
    )


def no_page(report: Report) -> str:
    """Say why there is no cut for tier page."""
    return not_bounded(report.page.unmet) if report.page.unmet else "the budget's cut flags nothing"


def page_cut(report: Report) -> str:
    """Say what the cut for tier page flags, or why there is none."""
    page = report.page
    if page.threshold is None or page.target is None:
        return f"No cut for tier page: {no_page(report)}."
    return (
        f"For tier page a stricter cut flags {share(page.share)} of traffic, of which at least "
        f"{exact_share(page.target)} is hallucinated by its lower bound ({page.strength}, approximate)."
    )


def document(report: Report) -> Ensemble:
    """Everything worth keeping of an ensemble, with what people read of it."""
    ensemble = document_of(report)
    page = ensemble.cuts.page
    cuts = replace(ensemble.cuts, page=replace(page, why=no_page(report) if page.threshold is None else None))
    return replace(ensemble, cuts=cuts, sentence=" ".join(sentences(report)), notes=tuple(notes(report)))


def joint_sentence(joint: Joint, detectors: Sequence[str], budget: float) -> str:
    """Say what share of the clean traces the detectors flag together."""
    measured = joint.measured
    if measured.value is None:
        return "How often they flag clean traces together is unknown: none is labelled clean."
    who = "at least one" if joint.k == 1 else f"at least {joint.k}"
    return (
        f"Were {names(detectors)} each to flag {share(budget)} of traffic, {who} would flag "
        f"{estimate(measured.value, measured.low, measured.high)} of clean traces."
    )


def difference_words(difference: Interval) -> str:
    """Write a difference of shares: "+4 points (−6 to +13)"."""
    return points(difference.value, difference.low, difference.high)


def names(detectors: Sequence[str]) -> str:
    """Join all names: "a, b and c"."""
    return listed([title_of(name) for name in detectors], most=len(detectors))


def _verdict(difference: Interval) -> str:
    words = difference_words(difference)
    if difference.value is None or difference.low is None:
        return "The labels are too few to compare the two."
    if against(difference) == BETTER:
        return f"The difference, {words}, is beyond its interval: the ensemble finds more."
    if against(difference) == WORSE:
        return f"The difference, {words}, is beyond its interval: the ensemble finds less. Use the single detector."
    return f"The difference, {words}, is within its interval: the ensemble is not shown to be better."


def _recall(figure: Interval) -> str:
    if figure.value is None:
        return "an unknown share"
    bounds = interval(figure.low, figure.high, unit="")
    return share(figure.value) if bounds == UNKNOWN else f"{share(figure.value)} ({bounds})"
