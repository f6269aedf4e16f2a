"""Whether curves differ by more than chance, in sentences."""

from __future__ import annotations

from calibrate.report import numbers
from calibrate.report.numbers import count
from calibrate.report.sentences.tuning import figures
from calibrate.report.sentences.tuning.figures import FEW_POSITIVES
from calibrate.sanitize import one_line
from calibrate.stats.intervals.best_of_many import Verdict
from calibrate.stats.intervals.ranking_differences import Comparison
from calibrate.stats.sweep.sweep import RANKABLE, Missing
from calibrate.types import Interval
from calibrate.workflow.tuning.compare import Contrast, Difference


def difference(contrast: Contrast, pair: Difference) -> tuple[str, str]:
    """Say whether a series differs from the first, and the figures behind it."""
    name, first = (one_line(series, 60) for series in (pair.name, contrast.series[0].name))
    if absent := missing(contrast, pair):
        return f"{name} cannot be compared with {first}", absent
    area, labels = pair.auroc, f"{count(pair.n, 'label')} {'that both scored' if pair.paired else 'of both together'}"
    figures = f"AUROC {numbers.difference(area.value, area.low, area.high)}, {labels}"
    figures += f", {count(pair.positives)} hallucinated"
    if pair.verdict == Verdict.ALONE:
        figures += f"; comparing {count(len(contrast.differences))} can explain that much"
    return f"{name} {verdict(pair.verdict)} {first}", figures


def verdict(shown: Verdict) -> str:
    """Say whether a difference is beyond its interval, the number of differences reckoned with."""
    words = {
        Verdict.UNKNOWN: "cannot be told from",
        Verdict.BETTER: "ranks better than",
        Verdict.WORSE: "ranks worse than",
    }
    return words.get(shown, "is not shown to differ from")


def settings(figure: Interval) -> str:
    """Say whether one of two settings, A and B, ranks better: "B ranks better than A". `figure`: B minus A."""
    if figure.low is None or figure.high is None:
        return "Too few labels to compare the two"
    shown = Verdict.BETTER if figure.low > 0 else Verdict.WORSE if figure.high < 0 else Verdict.SAME
    return f"B {verdict(shown)} A"


def missing(contrast: Contrast, difference: Difference) -> str | None:
    """Say why two series cannot be compared; None where they can."""
    if difference.missing is None:
        return None
    series = next((series for series in contrast.series if series.name == difference.lacking), None)
    if series is not None:
        few = few_to_rank(series.sweep.scored_positives, series.sweep.scored)
        return f"{series.name}: {few if difference.missing == Missing.FEW_TO_RANK else figures.missing(series.sweep)}"
    return _paired(difference.missing, difference.n, difference.positives)


def nothing_paired(result: Comparison) -> str | None:
    """Say why two sets of scores of the same labels cannot be compared; None where they can."""
    return None if result.missing is None else _paired(result.missing, result.n, result.positives)


def few_to_rank(positives: int, n: int) -> str:
    """Say that labels are too few to say how well scores rank."""
    labels = f"{count(positives)} of {count(n, 'label')} with a score {'is' if positives == 1 else 'are'} hallucinated"
    return f"{labels}; to say how well scores rank takes at least {RANKABLE} of either kind"


def _paired(missing: Missing, n: int, positives: int) -> str:
    if missing == Missing.FEW_TO_RANK:
        return few_to_rank(positives, n)
    labels = f"all {count(n, 'label')} that both scored are of one kind"
    if missing == Missing.NO_LABELS:
        labels = "no label has a score of both"
    return f"{labels}; a comparison needs hallucinated and clean ones"


def cautions(contrast: Contrast) -> list[str]:
    """List what a reader of the intervals must know."""
    sets = [(series.name, series.sweep.n, series.sweep.positives) for series in contrast.series]
    sets += [(pair.name, pair.n, pair.positives) for pair in contrast.differences if pair.paired]
    few = list(dict.fromkeys(name for name, n, positives in sets if min(positives, n - positives) < FEW_POSITIVES))
    notes = []
    if few:
        notes.append(
            f"{', '.join(few)}: one label more or less moves every figure. Label until there are at least "
            f"{FEW_POSITIVES} hallucinated and {FEW_POSITIVES} clean ones"
        )
    first, many = contrast.series[0].name, len(contrast.differences)
    if many > 1:
        notes.append(
            f"Each interval is 95% by itself; what is said of a difference holds for all {count(many)} together. "
            "Detectors picked by their rank on these labels are called different too often: the scoreboard reckons "
            "with that"
        )
    notes += [
        f"Labelled traces that {first} and {pair.name} share: {count(pair.shared)}. Their difference is taken as that "
        "of separate traces, so its interval is too wide, if anything"
        for pair in contrast.differences
        if pair.shared
    ]
    return notes
