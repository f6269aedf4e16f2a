"""What to know of the labels that figures and plans are made from, in sentences."""

from __future__ import annotations

from collections.abc import Mapping

from calibrate.report.names import title_of
from calibrate.report.numbers import count, estimate, listed, number, share
from calibrate.stats.labels.undecided import Reach, Settled
from calibrate.types import Interval
from calibrate.workflow.evidence.basis import Caution, Chosen
from calibrate.workflow.evidence.label_counts import Gap, LabelCounts
from calibrate.workflow.evidence.labels_at_hand import LabelsAtHand
from calibrate.workflow.releasing.labels_behind import LabelsBehind
from calibrate.workflow.sampling.sizing import Doubt


def caution(labels: Caution | None) -> str | None:
    """Say why labels do not describe the traffic; None where they do."""
    if labels is None:
        return None
    if labels.chosen == Chosen.UNLIKE:
        return _unlike(labels)
    if labels.chosen == Chosen.UNSTATED and labels.sample is not None:
        return (
            f"Nobody says how the traces of the sample {labels.sample} were chosen, so these figures are of its "
            "labels, not of the traffic, and no threshold is chosen on them. Say it on the Draw page, or "
            "`sample NAME --state random|flagged|feedback`"
        )
    if labels.chosen == Chosen.UNSTATED:
        return (
            "Nobody has said how the traces with labels were chosen, so these figures are of the labels, not of the "
            "traffic, and no threshold is chosen on them. Label a sample in its order, or state how these were chosen "
            "when they are imported (random, flagged or feedback)"
        )
    held = "flagged traces only" if labels.chosen == Chosen.FLAGGED else "traces that people complained of or picked"
    if labels.sample is None:
        return (
            f"The traces with labels are {held}: these figures are of the labels, not of the traffic, and no threshold "
            "is chosen on them"
        )
    return (
        f"The sample {labels.sample} holds {held}: these figures are of its labels, not of the traffic, and no "
        "threshold is chosen on them"
    )


def _unlike(labels: Caution) -> str:
    """ "… 72% of its labels and 18% of the traffic have a Token overlap of 0.31 or less …"."""
    where = ""
    if labels.doubt is not None:
        unlike = labels.doubt.unlike
        where = (
            f": {share(unlike.of_labels)} of its labels and {share(unlike.of_traffic)} of the traffic have a "
            f"{title_of(labels.doubt.detector)} of {number(unlike.score)} or less, which a random draw gives less "
            "often than once in a thousand"
        )
    return (
        f"The sample {labels.sample} is said to be random, and is not like the traffic{where}. These figures are of "
        "its labels, and no threshold is chosen on them. Say on the Draw page how its traces were chosen, or "
        "`sample NAME --state flagged|feedback|unknown`"
    )


def doubt(labels: Doubt | None) -> str | None:
    """Say that labels know of no threshold like the one a plan reckons with; None where they do."""
    if labels is None:
        return None
    if labels.of_everything is None:
        return (
            f"by the labels of {labels.sample} no threshold is known to reach a precision of {number(labels.precision)}"
        )
    return (
        f"by the labels of {labels.sample} flagging everything has a precision of {number(labels.of_everything, 2)} "
        f"already: no threshold is around {number(labels.precision)}"
    )


def labelled(counts: LabelCounts) -> str:
    """Say which labels a figure stands on: "80 of 96 labelled · 3 unsure · 16 kept for a judge's prompt"."""
    aside = [f"{count(counts.in_prompts)} kept for a judge's prompt"] if counts.in_prompts else []
    return " · ".join([f"{count(counts.labelled)} of {count(counts.total)} labelled", *_undecided(counts), *aside])


def brief(counts: LabelCounts) -> list[str]:
    """How far labelling is, for a place with room for a few words: "521 labels", "19 disputed"."""
    if not counts.labelled:
        return ["no labels yet"]
    return [count(counts.labelled, "label"), *([f"{count(counts.disputed)} disputed"] if counts.disputed else [])]


def _undecided(counts: LabelCounts) -> list[str]:
    """ "3 unsure", "19 disputed", "2 purged"; what is zero is left out."""
    kinds = ((counts.unsure, "unsure"), (counts.disputed, "disputed"), (counts.purged, "purged"))
    return [f"{count(n)} {word}" for n, word in kinds if n]


def waiting(counts: LabelCounts) -> str | None:
    """Say that labels lie behind a gap, and what to do; None where none does."""
    return _behind_gap(counts.waiting) if counts.waiting else None


def none_counts(n: int) -> str:
    """Say that no label counts yet, as all `n` wait behind a gap, and what to do."""
    return f"no label counts yet: {_behind_gap(n)}"


def too_few_count(counted: int, n: int) -> str:
    """Say that too few labels count to plan on while `n` wait behind a gap, and what to do."""
    if not counted:
        return none_counts(n)
    return f"{count(counted, 'label')} {'counts' if counted == 1 else 'count'}, too few to plan on: {_behind_gap(n)}"


def _behind_gap(n: int) -> str:
    return (
        f"{count(n, 'label waits', 'labels wait')} behind a trace that nobody has labelled: "
        f"{'it counts' if n == 1 else 'they count'} once every trace before has a verdict. Go through the sample in "
        "its order, and label what was skipped ('unsure' is a verdict)"
    )


def held_back(gap: Gap) -> str:
    """Say how many labels wait for the traces of a gap: "3 skipped traces hold back 57 labels"."""
    hold = "holds" if gap.skipped == 1 else "hold"
    return f"{count(gap.skipped, 'skipped trace')} {hold} back {count(gap.waiting, 'label')}"


def prevalence(figure: Interval) -> str | None:
    """Say how much of the traffic is hallucinated: "about 4.9% (1–13%) of the traffic hallucinated"; None if nothing is
    known.
    """
    if figure.value is None:
        return None
    return f"about {estimate(figure.value, figure.low, figure.high)} of the traffic hallucinated"


def facts(at_hand: LabelsAtHand) -> str:
    """Say which labels a figure stands on, and what they say of the traffic."""
    return " · ".join(filter(None, (labelled(at_hand.counts), prevalence(at_hand.prevalence.share))))


def open_ones(at_hand: LabelsAtHand) -> list[str]:
    """Say what is open among the labels: what undecided ones could change, and what waits."""
    return list(filter(None, (settled_prevalence(at_hand), waiting(at_hand.counts))))


def settled_prevalence(at_hand: LabelsAtHand) -> str | None:
    """Say what the undecided labels could make of the share hallucinated; None where none is undecided."""
    kinds, reach = listed(_undecided(at_hand.counts)), at_hand.prevalence.settled
    if not kinds:
        return None
    are = "is" if at_hand.counts.undecided == 1 else "are"
    if reach is None:
        return f"{kinds} {are} in no figure"
    if at_hand.counts.undecided == 1:
        one_way, other = share(reach.low), share(reach.high)
        return f"{kinds} is in no figure: the share hallucinated is {one_way} if it is clean and {other} if it is not"
    return (
        f"{kinds} are in no figure: the share hallucinated is {share(reach.low)} if all of them are clean and "
        f"{share(reach.high)} if all are hallucinated"
    )


def behind(points: Mapping[str, LabelsBehind]) -> list[str]:
    """Say of the points of a release which labels stand behind them, and what is open among those."""
    lines: list[str] = []
    for name, labels in points.items():
        of = labels.sample or "all labels"
        lines += [f"{of}: {line}" for line in (facts(labels.evidence), *open_ones(labels.evidence))]
        if settled := settled_point(labels.settled):
            lines.append(f"{title_of(name)}: {settled}")
    return list(dict.fromkeys(lines))


def settled_point(settled: Settled | None) -> str | None:
    """Say what the undecided labels could make of a threshold's precision and recall; None where none is undecided."""
    if settled is None:
        return None
    flagged = "none of them" if not settled.flagged else f"{count(settled.flagged)} of them"
    figures = (("precision", settled.precision), ("recall", settled.recall))
    reaches = [f"{name} {_reach(reach)}" for name, reach in figures if reach is not None]
    labels = count(settled.undecided, "unsure or disputed label")
    are = "is" if settled.undecided == 1 else "are"
    return (
        f"{labels} {are} in no figure, and this threshold flags {flagged}: however they are settled, "
        f"{' and '.join(reaches)}"
    )


def _reach(reach: Reach) -> str:
    """ "lies between 40% and 75%", "stays 71%"."""
    low, high = share(reach.low), share(reach.high)
    return f"stays {low}" if low == high else f"lies between {low} and {high}"
