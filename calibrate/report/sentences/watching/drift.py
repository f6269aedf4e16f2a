"""A drift report in sentences: per detector, for the whole release, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from calibrate import registry
from calibrate.report.names import title_of
from calibrate.report.numbers import about, count, number, share, stamp
from calibrate.sanitize import visible
from calibrate.stats.monitoring.drift import ENOUGH, GROUPS, Moved, Shift
from calibrate.workflow.watching.drift_report import DetectorDrift, DriftState, Gap, NextStep, Report, Stale
from calibrate.workspace import current

MODEL_WIDTH = 100
# Ordered by urgency.
STATES = {
    DriftState.MOVED: "moved",
    DriftState.RECALIBRATE: "unknown model",
    DriftState.HOLDS: "no change seen",
    DriftState.TOO_FEW: "too few to tell",
    DriftState.NOT_SCORED: "not scored",
    DriftState.PARTLY_SCORED: "partly scored",
    DriftState.NO_REFERENCE: "nothing to compare with",
}


def verdict(report: Report) -> str:
    """Say what is known of the whole release."""
    began = f"{stamp(report.since)} UTC" if report.since else f"release v{report.version}"
    if not report.traces:
        return f"No dated traces since {began}: nothing to compare yet."
    if not report.lines:
        return f"No detector of release v{report.version} may flag: nothing to compare."
    return " ".join(_verdict(report, f" {began}" if report.since else ""))


def _verdict(report: Report, began: str) -> Iterator[str]:
    lines = report.lines
    if all(line.state == DriftState.HOLDS for line in lines):
        traces = count(report.traces, "trace")
        yield f"Release v{report.version} holds as far as scores tell ({traces} since{began})."
    if unseen := sorted({_model(line) for line in lines if line.unseen}):
        yield (
            f"Release v{report.version} was made without {', '.join(unseen)}, and its thresholds are not known there: "
            "label some of those answers, then recalibrate."
        )
    stale = any(line.baseline for line in lines)
    if moved := _detectors(lines, DriftState.MOVED):
        baseline = "; the entropy baseline is stale" if stale else ""
        yield f"Scores moved ({moved}){baseline}; thresholds are not known to hold."
    elif stale:
        yield "The entropy baseline is stale."
    if unknown := _detectors(lines, *set(DriftState) - {DriftState.HOLDS, DriftState.MOVED, DriftState.RECALIBRATE}):
        yield f"Not known for {unknown}."
    if report.left_out:
        yield f"{count(report.left_out, 'model')} with little traffic left out."


def next_step(report: Report) -> str:
    """Say what to do about it: a command."""
    if report.next == NextStep.IMPORT:
        return "import newer traces"
    if report.next == NextStep.RECHECK:
        first = next(line for line in report.moved if line.shift)
        model = f" --model {quote(_model(first))}" if first.unseen else ""
        target, hint = ("", "") if first.promised else (" --target 0.7", ", or whatever precision is to hold")
        if first.by is not None and not first.segments:
            return "label a sample of new traffic, and test it by `gate`: no segment has flagged traces to recheck"
        if first.by is not None:
            only = model if first.by != "model" else ""
            model = f" --segment {quote(visible(first.segments[0], 100))}{only}"
            others = count(len(first.segments) - 1, "other segment")
            hint += f"; then the same for {others}" if len(first.segments) > 1 else ""
        return f"label flagged traces until it is known: `recheck {first.detector}{model}{target}`{hint}"
    if report.next == NextStep.DETECT:
        own = [name for name in report.waiting if name not in current().external]
        commands = [f"detect {' '.join(own)} --all"] if own else []
        commands += [registry.how_to_score(name) for name in report.waiting if name not in own]
        return f"score the traffic: {', '.join(f'`{command}`' for command in commands)}"
    return "nothing to do"


def line_verdict(line: DetectorDrift) -> str:
    """Say what is known of one detector on one model's traffic."""
    return "; ".join(_line_parts(line))


def _line_parts(line: DetectorDrift) -> Iterator[str]:
    if line.unseen:
        yield f"release made without {_model(line)}"
    if line.shift is not None and line.moved is not None:
        yield comparison(line.detector, line.shift, line.moved)
    elif line.gap is not None:
        yield f"{title_of(line.detector)}: {_gap(line.gap)}: run `{registry.how_to_score(line.detector)}`"
    if line.baseline:
        yield baseline(line)
    if line.urgent:
        yield "the threshold is not known to hold"
    elif line.state == DriftState.HOLDS:
        yield "holds as far as scores tell"


def baseline(line: DetectorDrift) -> str:
    """Say why the entropy baseline is stale; "" where it is not."""
    if line.baseline is None:
        return ""
    if line.baseline.reason == Stale.MISSING:
        return f"{line.model} has no entropy baseline"
    if line.baseline.reason == Stale.OLD:
        return f"the entropy baseline is {count(line.baseline.days or 0, 'day')} old"
    return "the entropy baseline is stale"


def comparison(detector: str, shift: Shift, moved: Moved) -> str:
    """Say what moved: "scores moved: NLI is lower by 0.08 (median 0.61 → 0.53, n = 2,000 → 300)"."""
    before, now, name = shift.before, shift.now, title_of(detector)
    n, traces = (f"n = {count(a)} → {count(b)}" for a, b in ((before.scored, now.scored), (before.traces, now.traces)))
    parts = []
    if moved.scores and shift.difference is not None:
        parts.append(f"scores moved: {name} {_change(shift, n)}")
    for changed, verb, rates in (
        (moved.flags, "flags {} of traffic", (before.flag_rate, now.flag_rate)),
        (moved.coverage, "could score {} of traces", (before.coverage, now.coverage)),
    ):
        if changed and None not in rates:
            subject = "it" if parts else name
            parts.append(f"{subject} {verb.format(share(rates[1]))}, {share(rates[0])} before ({traces})")
    if parts:
        return "; ".join(parts)
    if min(before.groups, now.groups) < GROUPS <= ENOUGH <= min(before.scored, now.scored):
        sources = f"{count(before.groups)} → {count(now.groups, 'source')}; {GROUPS} on each side at least"
        return f"{name}: too few sources to tell (the traces come from {sources})"
    if shift.p_scores is None:
        return f"{name}: too few scores to tell ({n}; {ENOUGH} on each side at least)"
    visible_shift = f": a shift of {about(shift.visible)} would have been seen" if shift.visible else ""
    return f"{name}: no change seen ({n}{visible_shift})"


def _change(shift: Shift, n: str) -> str:
    before, now, difference = shift.before, shift.now, shift.difference
    spread = (before.high or 0.0) - (before.low or 0.0)
    if difference and abs(difference) >= 0.01 * spread:
        way = "lower" if difference < 0 else "higher"
        medians = f"{number(before.median, 3)} → {number(now.median, 3)}"
        return f"is {way} by {about(abs(difference))} (median {medians}, {n})"
    ranges = " → ".join(f"{number(side.low, 3)} to {number(side.high, 3)}" for side in (before, now))
    return f"is spread differently (median {number(now.median, 3)}; 80% of scores in {ranges}, {n})"


def _gap(gap: Gap) -> str:
    if gap.state == DriftState.NOT_SCORED:
        return "not scored since the release"
    if gap.state == DriftState.NO_REFERENCE:
        return "there are no scores of it from before the release"
    when = "since the release" if gap.live else "of the window before"
    scored = f"only {count(gap.scored)} of {count(gap.traces, 'trace')} {when} were scored"
    return f"{scored}, and not drawn at random"


def _detectors(lines: tuple[DetectorDrift, ...], *states: DriftState) -> str:
    return ", ".join(sorted({title_of(line.detector) for line in lines if line.state in states}))


def _model(line: DetectorDrift) -> str:
    return visible(line.model, MODEL_WIDTH)
