"""The versions of the labelling guide, in sentences."""

from __future__ import annotations

from calibrate.report.numbers import listed
from calibrate.sanitize import one_line
from calibrate.types import Kind
from calibrate.workflow.labelling.guide_changes import Changes


def kinds_changed(changes: Changes) -> list[str]:
    """Say what became of the kinds: "added Wrong date", "Other is now Something else"."""
    lines = []
    for verb, kinds in (("added", changes.added), ("retired", changes.retired), ("redefined", changes.redefined)):
        if kinds:
            lines.append(f"{verb} {_named(kinds)}")
    lines += [f"{one_line(old.name)} is now {one_line(new.name)}" for old, new in changes.renamed]
    return [*lines, *(["another order"] if changes.reordered else [])]


def retired(kinds: tuple[Kind, ...]) -> str:
    """Say which kinds are offered no more, and how to bring one back."""
    return f"Retired: {_named(kinds)}. Labels keep them; a kind of the same name is that kind again."


def _named(kinds: tuple[Kind, ...]) -> str:
    return listed([one_line(kind.name) for kind in kinds], most=9)
