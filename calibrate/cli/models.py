"""`models`: list the models behind detectors, fetch them, verify them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from calibrate.backends import models as backend
from calibrate.cli import Answer
from calibrate.cli.output import table
from calibrate.errors import BadInput
from calibrate.report import numbers


@dataclass(frozen=True, slots=True)
class ModelDocument:
    """A model and whether it is here; `how` says how to get a missing one, `bytes` is the size of its weights."""

    kind: str
    model: str
    status: str
    how: str | None
    bytes: int | None
    revision: str | None
    directory: Path | None
    used_by: Sequence[str]


@dataclass(frozen=True, slots=True)
class ModelsDocument:
    models: Sequence[ModelDocument]


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A file with its digest; `intact` is None where nobody published a digest to compare with."""

    model: str
    file: Path
    sha256: str
    intact: bool | None


@dataclass(frozen=True, slots=True)
class VerifyDocument:
    files: Sequence[CheckedFile]
    differing: Sequence[Path]


@dataclass(frozen=True)
class PulledDocument:
    model: str
    directory: Path | None


@dataclass(frozen=True)
class PulledModel(PulledDocument):
    revision: str | None


def run(args: Namespace) -> Answer:
    if args.name is not None and args.action != "pull":
        raise BadInput(f"`models {args.action}` takes no name; it is about all models")
    if args.action == "verify":
        return _verify()
    return _list() if args.action == "list" else _pull(args.name)


def _list() -> Answer:
    models = [
        ModelDocument(
            kind=model.kind,
            model=model.name,
            status=model.status,
            how=model.how,
            bytes=model.size,
            revision=model.revision,
            directory=model.directory,
            used_by=model.used_by,
        )
        for model in backend.list_models()
    ]
    lines = [table([("for", "model", "status", "MB", "revision", "used by"), *map(_row, models)], right=(3,))]
    lines += [f"{model.kind}: in {model.directory}" for model in models if model.directory]
    lines += [f"{model.kind}: {model.how}" for model in models if model.how]
    return Answer(ModelsDocument(models), "\n".join(lines))


def _row(model: ModelDocument) -> tuple[str, ...]:
    megabytes = "" if model.bytes is None else numbers.count(round(model.bytes / 1e6))
    return model.kind, model.model, model.status, megabytes, model.revision or "", ", ".join(model.used_by)


def _verify() -> Answer:
    files = [CheckedFile(check.model, check.file, check.sha256, check.intact) for check in backend.verify()]
    verdicts = {True: "as published", False: "DIFFERS", None: "nothing to compare with"}
    rows = [("model", "file", "sha256", "")]
    rows += [(check.model, check.file.name, check.sha256, verdicts[check.intact]) for check in files]
    differing = [check.file for check in files if check.intact is False]
    text = table(rows) if files else "no model is here"
    if differing:
        text += f"\n{len(differing)} of {len(files)} files are not what was published: fetch that model again"
    return Answer(VerifyDocument(files, differing), text, 1 if differing else 0)


def _pull(name: str | None) -> Answer:
    if name is None:
        raise BadInput("say which model: `models pull nli`, or a hub id like organisation/name")
    pulled = backend.pull(name)
    if isinstance(pulled, Path):
        return Answer(PulledDocument(name, pulled), f"{name} is in {pulled}")
    place = f" in {pulled.directory}" if pulled.directory else ""
    return Answer(PulledModel(pulled.name, pulled.directory, pulled.revision), f"{pulled.name} is ready{place}")
