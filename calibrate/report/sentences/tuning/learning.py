"""What is known of a head learned from labels: whether it gains, what it costs, what it reads."""

from __future__ import annotations

from calibrate.report.names import title_of
from calibrate.report.numbers import count, decimal_interval, decimals, listed, share, signed
from calibrate.types import Interval
from calibrate.workflow.tuning.learn import Learning, LeftOut

_WHY = {
    LeftOut.ASKS: "a chat endpoint would be asked twice",
    LeftOut.EXTERNAL: "no runtime computes imported scores",
    LeftOut.SAME_LABELS: "fitted to the same clean labels",
    LeftOut.UNAVAILABLE: "cannot run here",
    LeftOut.CHANGED: "changed since the scores were made",
    LeftOut.FEW: "less than half of the traffic is scored",
}


def answer(learning: Learning) -> str:
    """Say in one sentence whether learning gains, with the numbers.

    "Learning gains: out of fold the head ranks with an AUROC of .84 (.79 to .88), the best single detector, ROUGE-L on
    all labels, with .76 (.70 to .81), a difference of +.08 (+.03 to +.13) on 300 labels, 61 hallucinated."
    """
    if learning.difference.value is None or learning.difference.low is None:
        return f"Whether learning gains is unknown: {_labels(learning)} are too few to compare."
    gap = learning.difference
    figures = (
        f"out of fold the head ranks with an AUROC of {area(learning.auroc)}, the best single detector, "
        f"{title_of(learning.best)} on all labels, with {area(learning.best_auroc)}, a difference of {apart(gap)} on "
        f"{_labels(learning)}."
    )
    if learning.gains:
        return f"Learning gains: {figures}"
    if gap.high is not None and gap.high < 0:
        return f"Learning loses: {figures} Use the single detector."
    return f"Learning is not shown to gain: {figures} Use the single detector, or label more."


def cost(learning: Learning) -> str:
    """Say which labels are left for its threshold, once it is saved."""
    lost = "Labels that fit it do not count for its figures any more"
    if learning.left:
        return f"{lost}: {count(learning.left, 'other label')} would be left to choose its threshold."
    return (
        f"{lost}: 0 labels would be left to choose its threshold. Learn from an older sample (`learn --sample OLDER`), "
        "or label traces that it has not seen."
    )


def notes(learning: Learning) -> list[str]:
    """List what a reader must know: what it reads, what it leaves out and why, how much it scores."""
    bases = [title_of(base.name) for base in learning.head.bases]
    lines = [
        f"It reads {count(len(bases), 'detector')}: {listed(bases, len(bases))}; of each the answer's score, and of "
        "its sentences the worst, the two worst, the mean, and the share beyond the usual threshold."
    ]
    if learning.left_out:
        lines.append(f"Left out: {'; '.join(_left_out(learning))}.")
    if learning.coverage < 1:
        lines.append(f"It can score {share(learning.coverage)} of the traffic.")
    lines.append(
        f"Figures are out of fold (10 times 5 folds, {count(learning.groups, 'group')} kept together), and so are the "
        "choice of the best single detector and that of the penalty."
    )
    return lines


def area(figure: Interval) -> str:
    """An AUROC with its interval: ".84 (.79 to .88)"."""
    return f"{decimals(figure.value, 2)} ({decimal_interval(figure.low, figure.high, 2)})"


def apart(gap: Interval) -> str:
    """A difference of AUROCs with its interval: "+.08 (+.03 to +.13)"."""
    if gap.value is None or gap.low is None or gap.high is None:
        return "unknown"
    return f"{signed(gap.value, 3)} ({signed(gap.low, 3)} to {signed(gap.high, 3)})"


def _left_out(learning: Learning) -> list[str]:
    """The detectors that are not read, by why: "Schema and NLI (cannot run here)"."""
    reasons = sorted(set(learning.left_out.values()))
    names = {
        why: [title_of(name) for name, other in sorted(learning.left_out.items()) if other == why] for why in reasons
    }
    return [f"{listed(titles, len(titles))} ({_WHY[why]})" for why, titles in names.items()]


def _labels(learning: Learning) -> str:
    return f"{count(learning.n, 'label')}, {count(learning.positives)} hallucinated"
