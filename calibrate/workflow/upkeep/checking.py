"""Whether a store is sound, and each of its releases a thresholds file that runtimes take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import db
from calibrate.errors import BadThresholds
from calibrate.thresholds import files
from db.upkeep import soundness
from db.upkeep.soundness import EXAMPLES, Checked, Finding, Progress


def check(store: db.Store, *, on_progress: Progress = lambda *_: None) -> Checked:
    """Look at all of a store; nothing is changed."""
    checked = soundness.check(store.engine, on_progress=on_progress)
    refused = list(_refused(store))
    if not refused:
        return checked
    finding = Finding("documents", "releases", len(refused), tuple(refused[:EXAMPLES]))
    return replace(checked, findings=(*checked.findings, finding))


def _refused(store: db.Store) -> Iterator[str]:
    """What is wrong with releases that a runtime would not take: a digest, a field, a number of another version."""
    for version, document in soundness.documents(store.engine):
        name = f"version {version}"
        try:
            file = files.read(document.encode(), name=name)
        except BadThresholds as error:
            yield str(error)
        else:
            if file.version != version:
                yield f"{name}: version {file.version}"


__all__ = ["Checked", "Finding", "check"]
