"""What there is to say of a thresholds file that is not used, only looked at."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import Any

from calibrate.errors import BadThresholds
from calibrate.thresholds.checks import digest_problem, format_problem, schema_problem
from calibrate.thresholds.files import name_of, parse, read_bytes, refuse_deep_nesting
from calibrate.thresholds.signing import SIGNATURE, KeyPlace, read_public_keys, signature_problem


@dataclass(frozen=True)
class Verification:
    """What `python -m calibrate verify` shows. A field is None if the problem prevented looking at it.

    `signed` says whether there is a signature, `signature_ok` whether it is by a key that was given.
    """

    path: str
    ok: bool
    problem: str | None
    sha256: str | None = None
    format: int | None = None
    schema_ok: bool | None = None
    digest_ok: bool | None = None
    digest: str | None = None
    version: int | None = None
    released_at: str | None = None
    released_by: str | None = None
    detectors: tuple[str, ...] = ()
    ensembles: tuple[str, ...] = ()
    signed: bool | None = None
    signature_ok: bool | None = None


def verify(path: str | os.PathLike[str], *, key: KeyPlace | None = None) -> Verification:
    """Check a file without using it, and its signature where a public `key` is given.

    Never raises for a bad file: the report says what is wrong. Raises BadInput for a bad key.
    """
    name = name_of(path)
    keys = read_public_keys(key)
    report: dict[str, Any] = {}
    try:
        content = read_bytes(path, name)
        report["sha256"] = hashlib.sha256(content).hexdigest()
        document = parse(content, name)
        with refuse_deep_nesting(name):
            _inspect(document, report)
            if report["problem"] is None and keys:
                report["problem"] = signature_problem(document, keys)
                report["signature_ok"] = report["problem"] is None
    except BadThresholds as error:
        return Verification(name, ok=False, problem=str(error).removeprefix(f"{name}: "), **report)
    return Verification(name, ok=report.get("problem") is None, **{"problem": None, **report})


def _inspect(document: Any, report: dict[str, Any]) -> None:
    report["problem"] = format_problem(document)
    if report["problem"]:
        return
    report["format"] = int(document["touchstone_thresholds"])
    report["problem"] = schema_problem(document)
    report["schema_ok"] = report["problem"] is None
    if not report["schema_ok"]:
        return
    report["problem"] = digest_problem(document)
    report["digest_ok"] = report["problem"] is None
    report["signed"] = SIGNATURE in document
    report |= {key: document[key] for key in ("digest", "version", "released_at", "released_by")}
    report |= {key: tuple(sorted(document.get(key, ()))) for key in ("detectors", "ensembles")}
