"""What a store, a backup or an archive holds, in a sentence."""

from __future__ import annotations

from collections.abc import Mapping

from calibrate.report.numbers import count

# What people count a store by: the other tables follow from these.
NAMED = {"traces": "trace", "labels": "label", "samples": "sample", "scores": "score", "releases": "release"}


def holds(rows: Mapping[str, int]) -> str:
    """Say how much of each is in there."""
    return ", ".join(count(rows.get(name, 0), noun) for name, noun in NAMED.items())
