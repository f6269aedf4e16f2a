"""Verbs about the team's own prompts, lists and prices."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from calibrate.cli import Answer
from calibrate.cli.common import now, store, table, user
from calibrate.errors import BadInput
from calibrate.sanitize import visible
from calibrate.workflow.detection import team_files as step
from db import Store

TAKES = {"list": 0, "show": 1, "set": 2, "reset": 1}


def run(args: Namespace) -> Answer:
    given = [one for one in (args.name, args.file) if one is not None]
    if len(given) != TAKES[args.action]:
        form = {"list": "", "show": " NAME", "set": " NAME FILE", "reset": " NAME"}[args.action]
        raise BadInput(f"it is `files {args.action}{form}`, with {len(given)} given")
    found = store(args)
    if args.action == "list":
        return _list(found)
    if args.action == "show":
        file = step.get(found, args.name)
        # A file or a pipe gets the text as it is; what a terminal would act on is named there.
        text = visible(file.text) if sys.stdout.isatty() else file.text
        return Answer({**_about(file), "text": file.text}, text.removesuffix("\n"))
    if args.action == "set":
        changed = step.save(found, args.name, _text(args.file), by=user(), now=now())
        return _done(found, args.name, "saved" if changed else "unchanged", changed)
    changed = step.reset(found, args.name, by=user(), now=now())
    return _done(found, args.name, "ours again" if changed else "ours already", changed)


def _list(found: Store) -> Answer:
    every = [_about(step.get(found, name)) for name in step.names()]
    rows = [("file", "version", "whose", "used by")]
    for one in every:
        whose = "ours" if one["ours"] else f"{visible(one['saved_by'], 40)}, {one['saved_at'][:10]}"
        rows.append((one["file"], one["version"], whose, ", ".join(one["used_by"])))
    return Answer({"files": every}, table(rows))


def _about(file: step.File) -> dict[str, Any]:
    saved = None if file.ours else file.history[0]
    return {
        "file": file.name,
        "version": file.version,
        "ours": file.ours,
        "saved_by": saved.saved_by if saved else None,
        "saved_at": saved.saved_at.isoformat() if saved else None,
        "used_by": list(file.used_by),
    }


def _done(found: Store, name: str, what: str, changed: bool) -> Answer:
    file = step.get(found, name)
    text = f"{name}: {what}, version {file.version}"
    if changed and name.startswith(("prompts/", "refusals/")):
        text += "; scores made with another version are not reused"
    return Answer({**_about(file), "changed": changed}, text)


def _text(given: str) -> str:
    path = Path(given)
    try:
        if path.stat().st_size > 4 * step.LONGEST:
            raise BadInput(f"{given!r} has more than {step.LONGEST:,} characters; that is more than is kept")
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{given!r} is not UTF-8 (byte {error.start + 1}); save it as UTF-8") from error
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise BadInput(f"cannot read {given!r}: {why}") from error
