"""`decide`: what a runtime would decide from scores. Works from the wheel alone."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from calibrate import registry, runtime
from calibrate.cli import Answer
from calibrate.cli.output import warn
from calibrate.cli.pairs import parse_pairs
from calibrate.errors import BadInput
from calibrate.report.numbers import listed
from calibrate.report.sentences.releasing import known_bad
from calibrate.sanitize import one_line
from calibrate.thresholds.model import ThresholdsFile
from calibrate.thresholds.ranges import EVERYWHERE, describe_outside, is_outside, range_in
from calibrate.thresholds.states import states_in
from calibrate.types import names_segments


def run(args: Namespace) -> Answer:
    thresholds = runtime.load(args.file)
    scores = _read_scores(args.scores)
    segments = _read_segments(args.segment)
    decision = runtime.decide(thresholds, scores, on_missing=args.on_missing, segments=segments)
    tier = f", tier {decision.tier}" if decision.scored else ""
    lines = [f"{decision.verdict} (release {decision.version}{tier})", *decision.reasons]
    if decision.missing:
        lines.append(f"no score from: {', '.join(decision.missing)}")
    if decision.unknown:
        lines.append(f"not in this release, ignored: {', '.join(decision.unknown)}")
    bad = known_bad.cautions(states_in(thresholds))
    cautions = [*_caution_scores(thresholds, scores, decision), *_caution_segments(thresholds, segments, decision)]
    warn([*bad, *cautions])
    return Answer({**asdict(decision), "known_bad": bad, "cautions": cautions}, "\n".join(lines))


def _read_scores(path: str) -> dict[str, float | None]:
    name = "standard input" if path == "-" else path
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
        scores = json.loads(text, object_pairs_hook=_unique)
    except OSError as error:
        raise BadInput(f"cannot read the scores in {name}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{name} is not JSON: {error}") from error
    if not isinstance(scores, dict):
        raise BadInput(f'{name} should hold one object like {{"rouge_l": 0.31, "schema": null}}')
    return scores


def _read_segments(items: Sequence[str]) -> dict[str, str]:
    segments = parse_pairs(items, "--segment")
    for by, name in segments.items():
        if not name:
            raise BadInput(f"--segment {by}=: name the segment, like {by}=qa, or leave the option out")
        if not names_segments(by):
            raise BadInput(
                f"--segment {by}=…: segments are told apart by operation, model, language or attributes.NAME"
            )
    return segments


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object that names a detector twice: JSON would silently keep the last score."""
    scores = dict(pairs)
    if len(scores) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise BadInput(f"the scores name {repeated!r} twice: give one score per detector")
    return scores


def _caution_scores(
    thresholds: ThresholdsFile, scores: Mapping[str, float | None], decision: runtime.Decision
) -> Iterator[str]:
    """Say of scores that are no numbers that they count as missing, and of those that cannot be that they count.

    Where the release knows the range, the runtime has logged it; an older one does not, but this machine may.
    """
    for name in decision.missing:
        if scores.get(name) is not None:
            yield f"the score of {name} is not finite: it counts as missing"
    for name in decision.scored:
        score, has_range = scores[name], range_in(thresholds.detectors[name].extra) != EVERYWHERE
        if score is not None and not has_range and name in registry.names():
            low, high = registry.get(name).bounds
            if is_outside(score, low, high):
                yield describe_outside(name, score, low, high)


def _caution_segments(
    thresholds: ThresholdsFile, segments: Mapping[str, str], decision: runtime.Decision
) -> Iterator[str]:
    """Say which detectors have thresholds per segment and decided by their common one."""
    for name in decision.scored:
        own = thresholds.detectors[name].segments
        if own is None or segments.get(own.by) in own.thresholds:
            continue
        given = segments.get(own.by)
        by, names = one_line(own.by, 60), listed([one_line(each, 60) for each in sorted(own.thresholds)])
        why = f"{one_line(given, 60)!r} is none of these" if given else f"name one with --segment {by}=NAME"
        yield f"{name} has thresholds by {by} ({names}), and its common one decided: {why}"
