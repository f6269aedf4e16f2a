"""How far labellers agree, which labels the detectors doubt, and what wrong labels would do, in sentences."""

from __future__ import annotations

from calibrate.report.names import title_of
from calibrate.report.numbers import UNKNOWN, count, decimal_interval, decimals, interval, listed, number, share
from calibrate.sanitize import one_line
from calibrate.stats.labels.agreement import Agreement
from calibrate.stats.labels.sensitivity import Corrected, Errors, Impossible, WhatIf
from calibrate.types import Interval
from calibrate.workflow.labelling.agreement import SecondLook, Suspect
from calibrate.workflow.labelling.gold_agreement import GoldAgreement
from calibrate.workflow.labelling.repeats import SelfAgreement

RELIABLE, TENTATIVE = 0.8, 0.667
"""Krippendorff's customary levels of alpha: rely on the labels, and draw tentative conclusions."""
WEAK = 0.65  # an AUROC below this is close to guessing
WHY_THEY_DIFFER = (
    "α and AC1 part where hallucinated is rare: α asks whether the few hallucinated traces are the same for both, "
    "AC1 gives credit for agreeing on the many clean ones."
)
UNSURE = "Unsure counts as no verdict"


def sentence(figures: Agreement) -> str:
    """Say how far labellers agree: "ann and bob agree on 84% of 100 traces (76–90%). Where one says …"."""
    return " ".join(sentences(figures))


def sentences(figures: Agreement) -> list[str]:
    """Say how far labellers agree, the headline first."""
    labellers = figures.labellers
    who = listed(labellers) if len(labellers) == 2 else count(len(labellers), "labeller")
    if not figures.traces:
        return [f"No trace has a definite verdict of two of {who}."]
    raw, positive, alpha = figures.raw, figures.positive, figures.alpha
    traces = count(figures.traces, "trace")
    parts = [f"{who} agree on {share(raw.value)} of {traces} ({interval(raw.low, raw.high)})."]
    if positive.value is not None:
        often = f"{share(positive.value)} of the time ({interval(positive.low, positive.high)})"
        parts.append(f"Where one says hallucinated, another does {often}.")
    if alpha.value is None:
        parts.append(f"Agreement beyond chance is unknown: {_unknown(figures)}.")
    else:
        parts.append(f"Beyond chance, α is {coefficient(alpha)}: {_level(alpha)}.")
    return parts


def _unknown(figures: Agreement) -> str:
    if figures.traces == 1:
        return "it is one trace"
    return "every verdict is the same" if figures.hallucinated in (0.0, 1.0) else "these traces share their sources"


def _level(alpha: Interval) -> str:
    value, low = alpha.value or 0.0, alpha.low or 0.0
    if low >= TENTATIVE:
        return "labels of one person can be relied on" if value >= RELIABLE else "enough for tentative conclusions"
    if value >= TENTATIVE:
        return "promising, but too few traces are labelled twice to be sure"
    return "too little to rely on one person's labels; agree on the rules, then label again"


def coefficient(figure: Interval) -> str:
    """Write α or AC1 with its interval: "0.79 (0.67–0.90)"."""
    return UNKNOWN if figure.value is None else f"{decimals(figure.value, 2)} ({coefficient_interval(figure)})"


def coefficient_interval(figure: Interval) -> str:
    """Write the interval of α or AC1: "0.67–0.90"."""
    return decimal_interval(figure.low, figure.high, 2)


def doubts(suspect: Suspect) -> list[str]:
    """Say which detectors speak against a label: "Token overlap 0.12, more suspicious than 97% of the clean"."""
    gold = suspect.row.gold
    than = "less" if gold == "hallucinated" else "more"
    return [
        f"{title_of(doubt.detector)} {number(doubt.value, 3)}, {than} suspicious than {share(doubt.beyond)} of the "
        f"{gold}"
        for doubt in suspect.doubt.reasons
    ]


def against(detector: str, gold: str) -> str:
    """Say whose evidence a card shows, and against which label: "Unsupported spans, against clean"."""
    return f"{title_of(detector)}, against {gold}"


def second_look(look: SecondLook) -> str:
    """Say what the doubts of a second look are worth."""
    labels = f"{count(look.n, 'gold label')} ({count(look.positives)} hallucinated)"
    worth = (
        f"{count(len(look.detectors), 'detector')} together, each trace judged by a fit without it, tell {labels} "
        f"apart with AUROC {decimals(look.auroc, 2)}"
    )
    return f"{worth}: close to guessing, so read these doubts lightly." if look.auroc < WEAK else f"{worth}."


def impossible(result: WhatIf, errors: Errors) -> list[str]:
    """Say why error rates cannot have made these labels; nothing where they can."""
    inherited = result.recall.why in (result.prevalence.why, result.precision.why)
    figures = (result.prevalence, result.precision, *(() if inherited else (result.recall,)))
    return list(dict.fromkeys(_impossible(figure, errors) for figure in figures if figure.why))


def _impossible(figure: Corrected, errors: Errors) -> str:
    if figure.why == Impossible.UNINFORMATIVE:
        return "A labeller who misses and wrongly calls this often tells nothing apart: the labels would mean nothing."
    if figure.why == Impossible.FALSE_CALLS:
        calls, labels = share(errors.false_calls), share(figure.apparent)
        return f"False calls of {calls} alone would make more than {labels}: fewer must be false."
    if figure.why == Impossible.MISSES:
        most = share(1 - errors.misses)
        return f"With {share(errors.misses)} missed, no more than {most} could be called hallucinated."
    if figure.why == Impossible.NOTHING_LEFT:
        return "Nothing would be hallucinated, so there would be nothing to find."
    return "More would be flagged than there is: these error rates do not fit these labels."


def gold_agreement(figure: GoldAgreement) -> str:
    """Say how far somebody agrees with gold: "ann says what gold says of 45 of 50 traces (79–96%): missed 3 of 12
    hallucinated, called 2 of 38 clean hallucinated"."""
    who = one_line(figure.labeller, 60)
    unsure = f", and was unsure of {count(figure.unsure)} more" if figure.unsure else ""
    if figure.same.value is None:
        return f"{who}: no gold trace labelled yet" if not figure.unsure else f"{who} was unsure of every gold trace"
    same = figure.traces - figure.missed - figure.false_calls
    parts = []
    if figure.hallucinated:
        parts.append(f"missed {count(figure.missed)} of {count(figure.hallucinated)} hallucinated")
    if figure.clean:
        parts.append(f"called {count(figure.false_calls)} of {count(figure.clean)} clean hallucinated")
    reach = interval(figure.same.low, figure.same.high)
    says = f"{who} says what gold says of {count(same)} of {count(figure.traces, 'trace')} ({reach})"
    return f"{says}: {', '.join(parts)}{unsure}"


def self_agreement(figure: SelfAgreement) -> str:
    """Say how far somebody agrees with themselves: "ann said the same of 9 of 10 traces that came again (60–98%)"."""
    who = one_line(figure.labeller, 60)
    if figure.same.value is None:
        return f"{who} was asked again, and was unsure"
    same = round(figure.same.value * figure.traces)
    unsure = f", and was unsure of {count(figure.unsure)} more" if figure.unsure else ""
    reach = interval(figure.same.low, figure.same.high)
    return f"{who} said the same of {count(same)} of {count(figure.traces, 'trace')} that came again ({reach}){unsure}"
