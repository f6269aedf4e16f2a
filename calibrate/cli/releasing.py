"""Verbs about the thresholds file."""

from __future__ import annotations

import json
import math
import sys
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

from calibrate.cli import Answer
from calibrate.cli.common import now, outfile, pairs, store, user
from calibrate.errors import BadInput
from calibrate.runtime import decide as decide_one
from calibrate.runtime import load
from calibrate.thresholds.files import verify as verify_file

TIERS = ("page", "signal", "off")


def release(args: Namespace) -> Answer:
    from calibrate.steps import release as step

    out = outfile(args.out, replace=True)
    found = store(args)
    if args.again is not None:
        row = step.again(found, args.again, out)
    else:
        tiers: dict[str, Any] = pairs(args.tier, "--tier")
        for detector, tier in tiers.items():
            if tier not in TIERS:
                raise BadInput(f"--tier {detector}={tier}: a tier is one of {', '.join(TIERS)}")
        names = args.detectors or None
        row = step.release(
            found,
            detectors=names,
            ensembles=args.ensemble,
            tiers=tiers,
            note=args.note,
            by=user(),
            now=now(),
            out=out,
        )
    file = step.read(row)
    said = [] if args.again is not None else [*step.cautions(file), *step.stale(found, file)]
    document = {"version": row.version, "sha256": row.sha256, "path": str(out), "cautions": said}
    return Answer(document, "\n".join([f"version {row.version} is in {out} (sha256 {row.sha256[:16]}…)", *said]))


def verify(args: Namespace) -> Answer:
    report = verify_file(args.file)
    if report.ok:
        text = (
            f"{args.file} is whole: version {report.version}, released {report.released_at} by {report.released_by}, "
            f"{len(report.detectors)} detectors ({', '.join(report.detectors)})"
        )
        if report.ensembles:
            text += f"; ensembles: {', '.join(report.ensembles)}"
        return Answer(asdict(report), text)
    return Answer(asdict(report), f"{args.file} must not be used: {report.problem}", exit_code=2)


def decide(args: Namespace) -> Answer:
    thresholds = load(args.file)
    scores = _scores(args.scores)
    decision = decide_one(thresholds, scores)
    for name in decision.scored:
        _refuse_out_of_bounds(name, scores[name])
    lines = [f"{decision.verdict} (release {decision.version}, tier {decision.tier})", *decision.reasons]
    if decision.missing:
        lines.append(f"no score from: {', '.join(decision.missing)}")
    if decision.unknown:
        lines.append(f"not in this release, ignored: {', '.join(decision.unknown)}")
    return Answer(asdict(decision), "\n".join(lines))


def _scores(path: str) -> dict[str, float | None]:
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
        scores = json.loads(
            text, object_pairs_hook=_once, parse_float=_finite, parse_int=_finite, parse_constant=_not_a_score
        )
    except OSError as error:
        raise BadInput(f"cannot read the scores in {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{'standard input' if path == '-' else path} is not JSON: {error}") from error
    if not isinstance(scores, dict):
        raise BadInput(f'{path} should hold one object like {{"rouge_l": 0.31, "schema": null}}')
    return scores


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise BadInput(f"the scores name {twice!r} twice: which one counts? Give one score a detector")
    return found


def _finite(text: str) -> float:
    number = float(text)
    return _not_a_score(text[:20]) if math.isinf(number) else number


def _not_a_score(text: str) -> NoReturn:
    raise BadInput(f"{text} is no score: give a finite number, or null where a detector could not score")


def _refuse_out_of_bounds(name: str, score: float | None) -> None:
    """A score its detector cannot give comes from elsewhere, or in another unit: no decision rests on it."""
    from calibrate import registry

    if score is None or name not in registry.names():  # another package's detector, which this machine does not have
        return
    low, high = registry.get(name).bounds
    slack = 1e-6 * max(abs(score), 1.0)  # single precision
    if not low - slack <= score <= high + slack:
        raise BadInput(f"the score {score:.6g} of {name} cannot be: it is from {low:g} to {high:g}")
