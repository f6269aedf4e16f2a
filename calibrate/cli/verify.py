"""`verify`: check a thresholds file. Works from the wheel alone."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict

from calibrate.cli import Answer
from calibrate.cli.output import warn
from calibrate.errors import BadThresholds
from calibrate.report.sentences import known_bad
from calibrate.thresholds.files import read
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
        cautions = _cautions(args.file)
        warn(cautions)
        return Answer({**asdict(report), "known_bad": cautions}, text)
    document = {**asdict(report), "known_bad": []}
    return Answer(document, f"{shown} must not be used: {report.problem}", exit_code=2)


def _cautions(path: str) -> list[str]:
    """What the file says against its own thresholds."""
    try:
        return known_bad.cautions(states_in(read(path)))
    except BadThresholds:  # it changed in this moment
        return []
