"""Verbs about the models behind detectors."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from calibrate.backends import models as backend
from calibrate.cli import Answer
from calibrate.cli.common import table
from calibrate.errors import BadInput


def run(args: Namespace) -> Answer:
    if args.name is not None and args.action != "pull":
        raise BadInput(f"`models {args.action}` takes no name; it is about all models")
    if args.action == "verify":
        return _verify()
    return _list() if args.action == "list" else _pull(args.name)


def _list() -> Answer:
    found = [_about(one) for one in backend.list_models()]
    rows = [("for", "model", "status", "MB", "revision", "used by")]
    for one in found:
        size = "" if one["bytes"] is None else f"{one['bytes'] / 1e6:.0f}"
        rows.append((one["kind"], one["model"], one["status"], size, one["revision"] or "", ", ".join(one["used_by"])))
    lines = [table(rows, right=(3,))]
    lines += [f"{one['kind']}: in {one['directory']}" for one in found if one["directory"]]
    lines += [f"{one['kind']}: {one['how']}" for one in found if one["how"]]
    return Answer({"models": found}, "\n".join(lines))


def _about(one: backend.Model) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "model": one.name,
        "status": one.status,
        "how": one.how,
        "bytes": one.size,
        "revision": one.revision,
        "directory": str(one.directory) if one.directory else None,
        "used_by": list(one.used_by),
    }


def _verify() -> Answer:
    checks = backend.verify()
    words = {True: "as published", False: "DIFFERS", None: "nothing to compare with"}
    rows = [("model", "file", "sha256", "")]
    rows += [(one.model, one.file.name, one.sha256, words[one.intact]) for one in checks]
    differing = [str(one.file) for one in checks if one.intact is False]
    text = table(rows) if checks else "no model is here"
    if differing:
        text += f"\n{len(differing)} of {len(checks)} files are not what was published: fetch that model again"
    files = [{"model": c.model, "file": str(c.file), "sha256": c.sha256, "intact": c.intact} for c in checks]
    return Answer({"files": files, "differing": differing}, text, 1 if differing else 0)


def _pull(name: str | None) -> Answer:
    if name is None:
        raise BadInput("say which model: `models pull nli`, or a hub id like organisation/name")
    got = backend.pull(name)
    if isinstance(got, Path):
        return Answer({"model": name, "directory": str(got)}, f"{name} is in {got}")
    return Answer({"model": got.name, "directory": str(got.directory), "revision": got.revision}, _ready(got))


def _ready(got: backend.Model) -> str:
    return f"{got.name} is ready{f' in {got.directory}' if got.directory else ''}"
