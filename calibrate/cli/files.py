"""`files`: show or replace the team's own prompts, lists of refusals and prices."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from calibrate.cli import Answer
from calibrate.cli.common import now, open_store, user
from calibrate.cli.output import table
from calibrate.errors import BadInput
from calibrate.sanitize import visible
from calibrate.workflow.detection import team_files as step
from db import Store

# What each action takes after its name.
FORMS = {"list": "", "show": " NAME", "set": " NAME FILE", "reset": " NAME"}


@dataclass(frozen=True)
class FileDocument:
    """A file of which `ours`, the text that comes with Touchstone, or the team's own text counts. `reason` is why it
    was saved, where somebody had to say it."""

    file: str
    version: str
    ours: bool
    saved_by: str | None
    saved_at: datetime | None
    reason: str | None
    used_by: Sequence[str]

    @classmethod
    def of(cls, file: step.File, **more: Any) -> Self:
        saved = None if file.ours else file.history[0]
        return cls(
            file=file.name,
            version=file.version,
            ours=file.ours,
            saved_by=saved.saved_by if saved else None,
            saved_at=saved.saved_at if saved else None,
            reason=saved.reason if saved else None,
            used_by=file.used_by,
            **more,
        )


@dataclass(frozen=True)
class ShownFile(FileDocument):
    text: str


@dataclass(frozen=True)
class ChangedFile(FileDocument):
    changed: bool


@dataclass(frozen=True, slots=True)
class FilesDocument:
    files: Sequence[FileDocument]


def run(args: Namespace) -> Answer:
    words = [word for word in (args.name, args.file) if word is not None]
    if len(words) != len(FORMS[args.action].split()):
        raise BadInput(f"it is `files {args.action}{FORMS[args.action]}`, with {len(words)} given")
    store = open_store(args)
    if args.action == "list":
        return _list(store)
    if args.action == "show":
        file = step.get(store, args.name)
        # A file or a pipe gets the text as it is. On a terminal, control characters are shown by name.
        text = visible(file.text) if sys.stdout.isatty() else file.text
        return Answer(ShownFile.of(file, text=file.text), text.removesuffix("\n"))
    if args.action == "set":
        changed = step.save(store, args.name, _read(args.file), by=user(), now=now())
        return _report(store, args.name, "saved" if changed else "unchanged", changed)
    changed = step.reset(store, args.name, by=user(), now=now())
    return _report(store, args.name, "ours again" if changed else "ours already", changed)


def _list(store: Store) -> Answer:
    files = [FileDocument.of(step.get(store, name)) for name in step.names()]
    rows = [("file", "version", "whose", "used by")]
    for file in files:
        saved = f"{visible(file.saved_by, 40)}, {file.saved_at.date().isoformat()}" if file.saved_at else "ours"
        rows.append((file.file, file.version, saved, ", ".join(file.used_by)))
    return Answer(FilesDocument(files), table(rows))


def _report(store: Store, name: str, outcome: str, changed: bool) -> Answer:
    file = step.get(store, name)
    text = f"{name}: {outcome}, version {file.version}"
    if changed and name.startswith(("prompts/", "templates/", "refusals/")):
        text += "; scores made with another version are not reused"
    return Answer(ChangedFile.of(file, changed=changed), text)


def _read(name: str) -> str:
    path = Path(name)
    try:
        if path.stat().st_size > 4 * step.LONGEST:
            raise BadInput(f"{name!r} has more than {step.LONGEST:,} characters, the most that a file may have")
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{name!r} is not UTF-8 (byte {error.start + 1}); save it as UTF-8") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadInput(f"cannot read {name!r}: {reason}") from error
