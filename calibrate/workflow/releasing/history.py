"""The history of releases: what each holds, which ones decide alike, and which precision each promised."""

from __future__ import annotations

import json
from collections.abc import Sequence

from calibrate.stats.choosing.policy import parse
from calibrate.thresholds.model import Data, DetectorEntry, ThresholdsFile, from_json, to_json
from calibrate.thresholds.signing import SIGNATURE
from calibrate.types import merged_name
from calibrate.workflow.evidence.merging import MERGED
from db import Store
from db.releases import Release

OF_ITS_OWN = ("version", "released_at", "released_by", "note", "replaces", "digest", SIGNATURE)
"""The fields of a document that belong to its release and decide nothing."""


def content(file: ThresholdsFile) -> dict[str, object]:
    """The document without the fields of its release: documents with equal content decide the same."""
    return {name: value for name, value in to_json(file).items() if name not in OF_ITS_OWN}


def releases_alike(store: Store, release: Release) -> list[Release]:
    """The release and those before it that decide as it does, newest first.

    A roll back brings an older one back: traffic since the oldest of them is new to its thresholds.
    """
    content = _decision_content(release)
    rows = store.releases.list()
    return [row for row in rows if row.version <= release.version and _decision_content(row) == content]


def _decision_content(row: Release) -> dict[str, object]:
    """`content` of a stored document. It is not checked again, because pages read the whole history."""
    return {name: value for name, value in json.loads(row.document).items() if name not in OF_ITS_OWN}


def read_release(row: Release) -> ThresholdsFile:
    return from_json(json.loads(row.document))


def live_release(store: Store) -> ThresholdsFile | None:
    """The release that is live: the newest."""
    rows = store.releases.list(limit=1)
    return read_release(rows[0]) if rows else None


def sample_names(data: Data) -> list[str]:
    """The samples that all points of a release were chosen on; none where they differ, or are of every label.

    A file names several samples taken as one in one text, as it is shown: it is read by the names of the samples that
    the file lists beside it. Old files list none, and are split.
    """
    if data.sample is None:
        return []
    if data.design != MERGED:
        return [data.sample]
    return _find_names(data.sample, sorted(data.samples, key=len)) or data.sample.split(" + ")


def _find_names(text: str, names: Sequence[str]) -> list[str]:
    """Find the `names`, each once, from which `merged_name` makes this text; empty if there are none."""
    for name in names:
        others = [candidate for candidate in names if candidate != name]
        start = merged_name([name, ""])
        rest = _find_names(text.removeprefix(start), others) if text.startswith(start) else []
        if text == name or rest:
            return [name, *rest]
    return []


def promised_precision(entry: DetectorEntry) -> float | None:
    """The precision that a detector was released to hold: what was guaranteed, else what its policy asked for."""
    policy = parse(entry.policy)
    if entry.guarantee:
        return entry.guarantee.target
    return policy.value if policy.kind == "precision" else None
