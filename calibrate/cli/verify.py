"""`verify`: check a thresholds file. Works from the wheel alone."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict

from calibrate.cli import Answer
from calibrate.cli.output import warn
from calibrate.errors import BadThresholds
from calibrate.report import numbers
from calibrate.report.sentences.releasing import known_bad
from calibrate.sanitize import one_line
from calibrate.thresholds.files import read
from calibrate.thresholds.segments import describe_segments
from calibrate.thresholds.states import states_in
from calibrate.thresholds.verification import verify
from calibrate.urls import redact


def run(args: Namespace) -> Answer:
    report, shown = verify(args.file, key=args.key), redact(args.file)
    if report.ok:
        text = (
            f"{shown} is whole: version {report.version}, released {report.released_at} by {report.released_by}, "
            f"{len(report.detectors)} detectors ({', '.join(report.detectors)})"
        )
        if report.ensembles:
            text += f"; ensembles: {', '.join(report.ensembles)}"
        if report.signature_ok:
            text += "; its signature is by the key that was given"
        elif report.signed:
            text += "; signed, which `--key PUBLIC` checks"
        text = "\n".join([text, *_segments(args.file)])
        cautions = _cautions(args.file)
        warn(cautions)
        return Answer({**asdict(report), "known_bad": cautions}, text)
    document = {**asdict(report), "known_bad": []}
    return Answer(document, f"{shown} must not be used: {report.problem}", exit_code=2)


def _segments(path: str) -> list[str]:
    """A line for each detector that has thresholds per segment."""
    try:
        entries = sorted(read(path).detectors.items())
    except BadThresholds:  # it changed in this moment
        return []
    return [
        f"{name}: {numbers.count(len(entry.segments.thresholds), 'threshold')} per segment "
        f"({one_line(describe_segments(entry.segments), 400)}), {entry.limit} for the rest"
        for name, entry in entries
        if entry.segments is not None
    ]


def _cautions(path: str) -> list[str]:
    """What the file says against its own thresholds."""
    try:
        return known_bad.cautions(states_in(read(path)))
    except BadThresholds:  # it changed in this moment
        return []
