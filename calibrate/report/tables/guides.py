"""The versions of the labelling guide: one row for each."""

from __future__ import annotations

from calibrate.report.numbers import count, listed, stamp
from calibrate.report.tables.column import Column, Form
from calibrate.sanitize import one_line
from calibrate.types import Guide

OURS = "came with Touchstone"
COLUMNS: tuple[Column[Guide], ...] = (
    Column("version", "Version", lambda guide: guide.version, Form.COUNT),
    Column("saved_at", "When (UTC)", lambda guide: stamp(guide.saved_at) if guide.saved_at else None),
    Column("saved_by", "Who", lambda guide: one_line(guide.saved_by, 60) if guide.saved_by else OURS),
    Column("kinds", "Kinds", lambda guide: listed([one_line(kind.name) for kind in guide.kinds], most=9)),
    Column("why", "Why", lambda guide: one_line(guide.why, 200)),
)


def head(guide: Guide) -> str:
    """Name a version: "labelling guide, version 3 (saved by ann, 2026-11-20 12:00; 6 kinds)"."""
    origin = f"saved by {one_line(guide.saved_by, 60)}, {stamp(guide.saved_at)} UTC" if guide.saved_at else OURS
    return f"labelling guide, version {guide.version} ({origin}; {count(len(guide.kinds), 'kind')})"
