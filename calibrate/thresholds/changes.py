"""Compare two releases. Each change is a record whose text is a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from calibrate.thresholds.ensembles import FIGURES, EnsembleEntry
from calibrate.thresholds.model import DetectorEntry, Sampling, ThresholdsFile
from calibrate.thresholds.segments import describe_segments, name_segment
from calibrate.types import Guarantee, Interval, Segments

_VERBATIM = ("version", "flag_when", "tier", "policy", "feasible")
_PROMPT = "+prompt-"  # before the version of a judge's prompt, in its revision
MEASURED = ("precision", "recall", "fpr", "flag_rate")


@dataclass(frozen=True)
class Change:
    """One difference; `str()` is the sentence.

    `detector` is a detector's name, "ensemble NAME", or None for a change of the release as a whole.
    """

    detector: str | None
    field: str
    before: Any
    after: Any

    def __str__(self) -> str:
        subject = f"{self.detector}: " if self.detector else ""
        if self.field == "detector":
            return f"{self.detector} {'added' if self.before is None else 'removed'} ({self.before or self.after})"
        if self.field.startswith(("threshold", "page cut", "signal cut")) and None not in (self.before, self.after):
            return f"{subject}{self.field} moved from {self.before:g} to {self.after:g}"
        verb = "moved" if isinstance(self.after, Interval) else "changed"
        return f"{subject}{self.field} {verb} from {_describe(self.before)} to {_describe(self.after)}"


def diff(old: ThresholdsFile | None, new: ThresholdsFile) -> list[Change]:
    """List what `new` changes against `old`: the release as a whole, then by detector, then by ensemble.

    Without `old`, everything is new. Version, time, person and note always differ and are left out.
    """
    before = old.detectors if old else {}
    changes = list(_diff_data(old, new)) if old else []
    for name in sorted({*before, *new.detectors}):
        changes += _diff_detector(name, before.get(name), new.detectors.get(name))
    ensembles = old.ensembles if old else {}
    for name in sorted({*ensembles, *new.ensembles}):
        changes += _diff_ensemble(f"ensemble {name}", ensembles.get(name), new.ensembles.get(name))
    return changes


def _diff_data(old: ThresholdsFile, new: ThresholdsFile) -> Iterator[Change]:
    before, after = old.data, new.data
    for field in ("sample", "design", "n", "positives", "models"):
        if getattr(before, field) != getattr(after, field):
            yield Change(None, f"data.{field}", getattr(before, field), getattr(after, field))
    if before.label_set_digest != after.label_set_digest and (before.n, before.positives) == (after.n, after.positives):
        yield Change(None, "data.label_set_digest", before.label_set_digest[:19], after.label_set_digest[:19])
    if before.samples != after.samples:
        yield Change(
            None,
            "data.samples",
            *([f"{name} ({how})" for name, how in sorted(them.items())] for them in (before.samples, after.samples)),
        )
    if old.baselines != new.baselines:
        yield Change(None, "baselines", sorted(old.baselines), sorted(new.baselines))


def _diff_revision(name: str, old: str, new: str) -> Iterator[Change]:
    """The revision; where only the prompt's version in it differs, that version."""
    if old == new:
        return
    (model, _, before), (same, _, after) = old.partition(_PROMPT), new.partition(_PROMPT)
    if before and after and model == same:
        yield Change(name, "prompt version", before, after)
    else:
        yield Change(name, "revision", old, new)


def _diff_detector(name: str, old: DetectorEntry | None, new: DetectorEntry | None) -> Iterator[Change]:
    if old is None or new is None:
        yield Change(name, "detector", old and _summarize_detector(old), new and _summarize_detector(new))
        return
    if old.threshold != new.threshold:
        yield Change(name, "threshold", old.threshold, new.threshold)
    yield from _diff_segments(name, old.segments, new.segments)
    yield from _diff_revision(name, old.revision, new.revision)
    for field in _VERBATIM:
        if getattr(old, field) != getattr(new, field):
            yield Change(name, field, getattr(old, field), getattr(new, field))
    if old.strength != new.strength:
        yield Change(name, "strength", old.strength, new.strength)
    elif old.guarantee != new.guarantee:
        yield Change(name, "guarantee", old.guarantee, new.guarantee)
    if old.probability_map != new.probability_map:
        yield Change(name, "probability_map", *(fit and str(fit) for fit in (old.probability_map, new.probability_map)))
    if old.sampling != new.sampling:
        yield Change(name, "sampling", str(old.sampling or Sampling()), str(new.sampling or Sampling()))
    for param in sorted({*old.params, *new.params}):
        if old.params.get(param, _UNSET) != new.params.get(param, _UNSET):
            yield Change(name, f"params.{param}", old.params.get(param, _UNSET), new.params.get(param, _UNSET))
    for field in MEASURED:
        if getattr(old.metrics, field) != getattr(new.metrics, field):
            yield Change(name, field, getattr(old.metrics, field), getattr(new.metrics, field))
    if old.coverage != new.coverage:
        yield Change(name, "coverage", Interval(old.coverage), Interval(new.coverage))


def _diff_segments(name: str, old: Segments | None, new: Segments | None) -> Iterator[Change]:
    """Thresholds per segment, one by one where both tell the segments apart alike."""
    if old is None or new is None or old.by != new.by:
        if old != new:
            yield Change(name, "segments", *(describe_segments(each) if each else None for each in (old, new)))
        if new is not None:
            for segment, own in sorted(new.thresholds.items()):
                if own.guarantee is not None:
                    yield Change(name, f"guarantee ({name_segment(new.by, segment)})", None, own.guarantee)
        return
    for segment in sorted({*old.thresholds, *new.thresholds}):
        before, after = old.thresholds.get(segment), new.thresholds.get(segment)
        where = f"({name_segment(new.by, segment)})"
        thresholds = before and before.threshold, after and after.threshold
        if thresholds[0] != thresholds[1]:
            yield Change(name, f"threshold {where}", *thresholds)
        guarantees = before and before.guarantee, after and after.guarantee
        if guarantees[0] != guarantees[1]:
            yield Change(name, f"guarantee {where}", *guarantees)
        if before is None or after is None:
            continue
        for field in ("precision", "recall"):
            if getattr(before, field) != getattr(after, field):
                yield Change(name, f"{field} {where}", getattr(before, field), getattr(after, field))


def _diff_ensemble(name: str, old: EnsembleEntry | None, new: EnsembleEntry | None) -> Iterator[Change]:
    if old is None or new is None:
        yield Change(name, "detector", old and _summarize_ensemble(old), new and _summarize_ensemble(new))
        return
    if old.rule != new.rule:
        was, now = old.rule["form"], new.rule["form"]
        yield Change(name, "rule", was, now if was != now else f"{now}, made anew")
    if old.members != new.members:
        yield Change(name, "members", old.members, new.members)
    for tier in ("signal", "page"):
        before, after = getattr(old.cuts, tier), getattr(new.cuts, tier)
        if before != after:
            yield Change(name, f"{tier} cut", before, after)
    if old.budget != new.budget:
        yield Change(name, "budget", Interval(old.budget), Interval(new.budget))
    for field in FIGURES:
        if getattr(old.metrics, field) != getattr(new.metrics, field):
            yield Change(name, field, getattr(old.metrics, field), getattr(new.metrics, field))


class _Unset:
    def __repr__(self) -> str:
        return "unset"


_UNSET = _Unset()


def _summarize_detector(entry: DetectorEntry) -> str:
    thresholds = entry.segments.thresholds if entry.segments else {}
    by = entry.segments.by if entry.segments else ""
    proven = [name_segment(by, name) for name, own in sorted(thresholds.items()) if own.guarantee]
    parts = [f"flags at {entry.limits}", f"tier {entry.tier}", *([entry.strength] if entry.guarantee else [])]
    return ", ".join([*parts, *(f"certified in {part} alone" for part in proven)])


def _summarize_ensemble(entry: EnsembleEntry) -> str:
    cuts = [f"{tier} at ≥ {cut:.4g}" for tier in ("signal", "page") if (cut := getattr(entry.cuts, tier)) is not None]
    return f"{entry.rule['form']} of {', '.join(entry.members)}; {', '.join(cuts) or 'never flags'}"


def describe_guarantee(given: Guarantee) -> str:
    """Describe a guarantee: "precision at least 0.7 (wrong in at most 5%, 78 of 84 labels)"."""
    labels = f"{given.hallucinated:,} of {given.labels:,} labels"
    return f"precision at least {given.target:g} (wrong in at most {100 * (1 - given.confidence):.10g}%, {labels})"


def _describe(value: Any) -> str:
    if isinstance(value, Interval):
        if value.value is None:
            return "unknown"
        has_interval = value.low is not None and value.high is not None
        return f"{value.value:.1%}" + (f" ({value.low:.1%} to {value.high:.1%})" if has_interval else "")
    if isinstance(value, Guarantee):
        return describe_guarantee(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or value == "":
        return "none"
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value)) or "none"
    return str(value)
