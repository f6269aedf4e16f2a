"""What is known about a chosen threshold, in sentences. Every percentage has its n near it."""

from __future__ import annotations

from calibrate import registry
from calibrate.errors import TouchstoneError
from calibrate.orientation import SIGNS
from calibrate.report.names import title_of
from calibrate.report.numbers import about, count, decimals, difference, exact_share, number, share
from calibrate.report.numbers import interval as interval_of
from calibrate.report.sentences.labelling.labels import none_counts
from calibrate.report.sentences.tuning.certification import tested
from calibrate.sanitize import one_line
from calibrate.stats.choosing.bounded import START, NotBounded
from calibrate.stats.choosing.elbow import Elbow, ElbowDoubt
from calibrate.stats.choosing.policy import Policy, parse
from calibrate.stats.sweep.sweep import Missing, Sweep, missing_of
from calibrate.types import Counted, Interval, OperatingPoint, UnmetReason
from calibrate.workflow.tuning.operating_points import BoundedScope

# Below about this many hallucinated labels one label more or less moves every figure.
FEW_POSITIVES = 10
# Below so many labels the interval says more than the figure: a 95% interval of 15 of 30 is 33 points wide.
FEW_LABELS = 30
# What simulation found, where no chance was worked out for the labels at hand: 29 to 54% over all its cells.
FREQUENCY = "about as often as not"
OCTAVE = (
    "A sample by octaves labels many more of the flagged traces, and bounds a precision where one drawn at random "
    "seldom does: `sample NAME --design octave`, or Octave on the Draw page, once the window is scored."
)


def sentence(
    point: OperatingPoint,
    flags_per_day: float | None = None,
    *,
    chance: float | None = None,
    drawn: str = "for it",
    state_apart: bool = False,
) -> str:
    """Say what the point does and how well that is known, by its strength.

    `flags_per_day` is what it would flag a day, if that is known. `chance` is `chance_below` of a measured precision
    policy. `drawn` says when the labels of a certificate were drawn, like "this week". With `state_apart` the chance
    stands beside it, in the sentence of the point's state.
    "Flags 3.1% of traffic, about 260 a day. Of what it flags, 71% was hallucinated (95% interval 58–81%, 84 labels)..."
    """
    # A policy that no threshold meets is never passed over in silence.
    reason = why(point)
    parts = [
        f"{capitalised(reason)}." if reason else "",
        flags(point, flags_per_day),
        _precision(point, drawn),
        _recall(point),
        _certainty(point, chance, state_apart=state_apart),
    ]
    return " ".join(part for part in parts if part)


def lead(figure: Interval, n: int) -> tuple[str, str]:
    """Write a share and its interval, that first which a reader should believe: below FEW_LABELS the interval.

    About `n` labels are behind the figure: ("81%", "74–87%"), or of six ("11–100%", "83% measured").
    """
    if figure.value is None:
        return "–", "unknown"
    if n < FEW_LABELS and figure.low is not None and figure.high is not None:
        return interval(figure), f"{share(figure.value)} measured"
    return share(figure.value), interval(figure)


def capitalised(text: str) -> str:
    """Begin a sentence with a capital."""
    return text[:1].upper() + text[1:]


def why(point: OperatingPoint) -> str | None:
    """Say why no threshold meets the point's policy, or what its labels cannot measure; None where neither is so."""
    if point.why is None:
        return _missing_of(point) if point.policy.startswith("manual") else None
    at, policy = number(point.threshold), parse(point.policy)
    target = policy.value or 0.0
    flagged = point.true_positives + point.false_positives
    if point.why.reason == UnmetReason.PRECISION:
        best = _short_of(point.precision.value or 0.0, target)
        return (
            f"no threshold reaches a precision of {exact_share(target)}; the best is {best} at {at} "
            f"({count(flagged, 'label')} flagged)"
        )
    if point.why.reason == UnmetReason.RECALL:
        scored = point.true_positives + point.false_negatives
        return (
            f"no threshold reaches a recall of {exact_share(target)}; the most is "
            f"{_short_of(point.recall.value or 0.0, target)} at {at} (only {count(scored)} of {count(point.positives)} "
            "hallucinated labels have a score)"
        )
    if point.why.reason == UnmetReason.COST:
        return (
            f"no threshold is worth its false alarms: flagging nothing costs {number(point.why.instead)} a trace, "
            f"the cheapest threshold, {at}, costs {number(point.why.best)}"
        )
    if point.why.reason == UnmetReason.ALERTS:
        return (
            f"no threshold keeps to {number(target)} a day; the strictest, the traffic's most suspicious score {at}, "
            f"flags about {about(point.why.best or 0.0)} a day"
        )
    if point.why.reason == UnmetReason.FEW_FLAGGED:
        return _few_flagged(flagged)
    if point.why.reason == UnmetReason.BOUND:
        return _low_bound(at, point.precision.value, point.why.best, target)
    return f"no threshold meets {point.policy}"


def not_bounded(result: NotBounded) -> str:
    """Say why no lower bound reaches the target."""
    if result.missing:
        return f"these labels make no sweep ({result.missing})"
    if result.unmet.reason == UnmetReason.FEW_FLAGGED:
        return _few_flagged(result.labels)
    return _low_bound(number(float(result.thresholds[0])), result.precision, result.unmet.best, result.target)


def _few_flagged(most: int) -> str:
    return f"no threshold flags {START} labels; all together there are {count(most)}: label more"


def _low_bound(at: str, precision: float | None, bound: float | None, target: float) -> str:
    return (
        f"at the strictest threshold with {START} flagged labels, {at}, precision is {share(precision)} and only "
        f"{share(bound)} is sure; label more, or lower the target of {exact_share(target)}"
    )


def missing(sweep: Sweep, *, waiting: int = 0, fitted: int = 0) -> str | None:
    """Say what keeps these labels from making a sweep, and the remedy; None where nothing is missing."""
    if fitted and sweep.missing == Missing.NO_LABELS:
        return f"{fitted_labels(fitted)}: label traces that it has not seen"
    if waiting and sweep.missing == Missing.NO_LABELS:
        return none_counts(waiting)
    return None if sweep.missing is None else _missing(sweep.missing, sweep.n, sweep.positives)


def fitted_labels(n: int) -> str:
    """Say that labels do not count for the detector that they fitted."""
    return f"{count(n, 'label')} fitted this detector and {'does' if n == 1 else 'do'} not count for it"


def _missing_of(point: OperatingPoint) -> str | None:
    hits, misses = point.true_positives, point.false_negatives
    scored = hits + misses + point.false_positives + point.true_negatives
    lacking = missing_of(point.n, point.positives, scored, hits + misses)
    return None if lacking is None else _missing(lacking, point.n, point.positives)


def _missing(lacking: Missing, n: int, positives: int) -> str:
    if lacking == Missing.NO_LABELS:
        return "no labels: label some traces first; a sweep needs hallucinated and clean ones"
    if lacking == Missing.ALL_CLEAN:
        return f"all {count(n, 'label')} are clean: label some hallucinated traces; a sweep needs both"
    if lacking == Missing.ALL_HALLUCINATED:
        return f"all {count(n, 'label')} are hallucinated: label some clean traces; a sweep needs both"
    if lacking == Missing.NO_SCORES:
        return f"none of the {count(n, 'labelled trace')} has a score: run the detector, or see why it abstained"
    if lacking == Missing.HALLUCINATED_SCORED:
        traces = count(positives, "hallucinated trace")
    else:
        traces = count(n - positives, "clean trace")
    return f"none of the {traces} has a score: see why the detector abstained on them"


def scope(of: BoundedScope | None) -> list[str]:
    """Say which traffic a bounded precision holds for, and how many choices."""
    if of is None:
        return []
    sentences = []
    if of.window is not None and of.window.differs:
        sentences.append(
            f"It holds for the whole window: of about {about(of.window.flagged)} traces that it flags there "
            f"{count(of.window.labelled)} ({share(of.window.share)}) are labelled. It does not hold for the about "
            f"{about(of.window.rest)} others alone: the sample took the surest first, and the rest is often below."
        )
    if of.looks > 1:
        sentences.append(f"Its error of at most 5% is shared among {count(of.looks)} detectors and looks.")
    else:
        best = f"; {count(of.detectors)} have scores here, and the best of several is" if of.detectors > 1 else ", and"
        often = "wrong more often" if of.detectors > 1 else "looking again after more labels makes it wrong more often"
        sentences.append(
            f"Its error of at most 5% is that of one detector looked at once{best} {often}. Say among how "
            "many detectors and looks you choose (--looks N, or Looks on Tune), and they share it."
        )
    return sentences


def elbow(of: Elbow) -> list[str]:
    """Say how steady an elbow is, and where it is hardly a threshold."""
    return [_steadiness(of), *(_doubt(of, doubt) for doubt in of.doubts)]


def limit(point: OperatingPoint) -> str:
    """Write where a point flags: "≥ 0.62"."""
    return f"{SIGNS[point.flag_when]} {number(point.threshold)}"


def policy_in_words(policy: Policy) -> str:
    """Write a policy as people say it: "precision at least 70%"."""
    value, miss = number(policy.value, 6), number(policy.miss, 6)
    words = {
        "precision": f"precision at least {exact_share(policy.value or 0.0)}",
        "recall": f"recall at least {exact_share(policy.value or 0.0)}",
        "f-beta": f"highest F{value}",
        "cost": f"cheapest at {value} a false alarm and {miss} a miss",
        "alerts": f"at most {value} flags a day",
        "manual": "set by hand",
    }
    return words.get(policy.kind, policy.kind)


def saved_policy_in_words(text: str) -> str:
    """Write the policy of a saved point in words; as it is written if this version does not know it."""
    try:
        return policy_in_words(parse(text))
    except TouchstoneError:
        return one_line(text, 80)


def cautions(point: OperatingPoint, *, not_run: int = 0) -> list[str]:
    """List what to know before relying on the figures. On `not_run` labelled traces nobody has run the detector."""
    notes = []
    if point.positives < FEW_POSITIVES:
        notes.append(
            f"Only {count(point.positives, 'hallucinated label')}: one more or less moves every measured figure. "
            f"Label until there are at least {FEW_POSITIVES}."
        )
    labels, unscored = count(point.n, "labelled trace"), point.n - _scored(point)
    if not_run:
        notes.append(
            f"{title_of(point.detector)} was not run on {count(not_run)} of {labels} "
            f"({registry.how_to_score(point.detector, '')}); until it is, they count as not flagged, and "
            "hallucinations among them as missed."
        )
    if unscored > not_run:
        notes.append(
            f"{count(unscored - not_run)} of {labels} could not be scored; they are never flagged, and hallucinations "
            "among them count as missed."
        )
    return notes


def interval(figure: Interval, unit: str = "%") -> str:
    """Write the interval of a share: "58–81%"."""
    return interval_of(figure.low, figure.high, unit)


def flags(point: OperatingPoint, flags_per_day: float | None = None) -> str:
    """Say what share of the traffic is flagged, and how many traces a day."""
    if point.flag_rate.value is None:
        return "How much it flags is unknown: there are no labels."
    a_day = "" if flags_per_day is None else f", {_per_day(flags_per_day)}"
    if point.counted is not None:
        return f"Flags {_counted(point.counted)}{a_day if point.counted.flagged else ''}."
    if point.flag_rate.value == 0:
        most = "" if point.flag_rate.high is None else f" (95% interval {interval(point.flag_rate)} of traffic)"
        return f"Flags 0 of {count(point.n, 'labelled trace')}{most}{a_day if flags_per_day else ''}."
    return f"Flags {share(point.flag_rate.value)} of traffic{a_day}."


def _counted(counted: Counted) -> str:
    """What is flagged of the window: "6% of traffic (1,234 of the window's 20,000 traces)"."""
    traces = f"of the window's {count(counted.traffic, 'trace')}"
    if not counted.flagged:
        return f"none {traces}"
    return f"{share(counted.flagged / counted.traffic)} of traffic ({count(counted.flagged)} {traces})"


def _precision(point: OperatingPoint, drawn: str) -> str:
    if point.guarantee:
        target = exact_share(point.guarantee.target)
        return f"Of what it flags, at least {target} is hallucinated ({_basis(point, drawn)})."
    if point.precision.value is None:
        # Without a label at all that much has been said.
        return f"Its precision is unknown: none of the {count(point.n, 'label')} is flagged." if point.n else ""
    flagged = point.true_positives + point.false_positives
    return (
        f"Of what it flags, {share(point.precision.value)} was hallucinated "
        f"(95% interval {interval(point.precision)}, {count(flagged, 'label')} flagged)."
    )


def _basis(point: OperatingPoint, drawn: str) -> str:
    """What the guarantee rests on."""
    guarantee = point.guarantee
    assert guarantee is not None
    sure = exact_share(guarantee.confidence)
    if guarantee.strength == "certified":
        return f"{tested(guarantee)}; {count(guarantee.labels, 'label')} drawn {drawn}"
    same = f"on the same {count(point.n, 'label')} that chose it"
    return f"approximate {sure} bound, {same}, {count(guarantee.labels)} of them flagged"


def _recall(point: OperatingPoint) -> str:
    if point.recall.value is None:
        return "How many hallucinations it finds is unknown: none is labelled."
    labels = count(point.positives, "hallucinated label")
    if point.recall.value == 0:
        return f"It found 0 of {labels} (95% interval {interval(point.recall)} of all hallucinations)."
    recall = f"{share(point.recall.value)} ({interval(point.recall, unit='')})"
    roughly = "" if recall.startswith(("over", "under")) else "about "
    return f"It finds {roughly}{recall} of all hallucinations ({labels})."


def _certainty(point: OperatingPoint, chance: float | None, *, state_apart: bool) -> str:
    if not point.n or point.guarantee:
        return ""
    if point.policy.startswith("manual"):
        return f"Set by hand; measured on {count(point.n, 'label')}, not certified."
    worse = ": expect it to do somewhat worse on new traffic" if point.feasible else ""
    basis = f"Measured on the same {count(point.n, 'label')} that chose it, not certified{worse}."
    kind, _, target = point.policy.partition(">=")
    if kind != "precision" or not point.feasible or state_apart:
        return basis
    often = FREQUENCY if chance is None else f"in {chance_words(chance)} of cases"
    return f"{basis} Thresholds chosen so on labels like these are truly below {exact_share(float(target))} {often}."


def chance_words(chance: float) -> str:
    """Write a chance to the nearest 5%, which is what a simulated one is worth."""
    near = 5 * round(20 * chance)
    return "under 5%" if near < 5 else "over 95%" if near > 95 else f"about {near}%"


def _per_day(flags: float) -> str:
    return "less than one a day" if flags < 1 else f"about {about(round(flags))} a day"


def _short_of(value: float, target: float) -> str:
    """`value` as percent with as many digits as it takes not to read like the `target` it misses."""
    for places in range(10):
        if decimals(100 * value, places) != decimals(100 * target, places):
            return f"{decimals(100 * value, places)}%"
    return exact_share(value)


def _scored(point: OperatingPoint) -> int:
    return point.true_positives + point.false_positives + point.false_negatives + point.true_negatives


def _steadiness(of: Elbow) -> str:
    if of.spread is None:
        return "How steady the elbow is is unknown: too few of these labels are of one kind."
    quartiles = f"from {number(of.spread.low)} to {number(of.spread.high)}"
    return f"Were as many labels drawn again, half of the elbows would lie {quartiles}."


def _doubt(of: Elbow, doubt: ElbowDoubt) -> str:
    if doubt == ElbowDoubt.FLAGS_MOST:
        return f"It flags {share(of.flag_rate)} of traffic: ask for a precision, a recall or flags a day instead."
    f1s = f"an F1 of {decimals(of.f1)} against {decimals(of.everything)}"
    gain = "" if of.gain.low is None else f" (difference {difference(of.gain.value, of.gain.low, of.gain.high)})"
    return f"It is not shown to be better than flagging everything: {f1s}{gain}."
