"""What the team keeps in a store for detectors to use, and the heads of `learned` among its files."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from calibrate.detectors.learned import NAME
from calibrate.types import LearnedHead
from calibrate.workflow.traces.external_scores import external_of
from calibrate.workspace import Budget, Workspace
from db import Store

HEAD = "learned.json"
"""The team's file with the head of `learned` and the labels that fitted it; every version stays."""
DIGITS = 16  # hexadecimal, of a content's hash: enough to tell a million labels apart


def workspace_of(store: Store, *, budget: float | None = None) -> Workspace:
    """The team's files, baselines, cached replies, external detectors and head. `budget`: US dollars that may be
    spent."""
    files = store.files.current()
    return Workspace(
        files=files,
        baselines=store.baselines.current(),
        replies=store.replies,
        budget=Budget(budget) if budget is not None else None,
        external=external_of(store),
        head=_read_head(files.get(HEAD))[0],
    )


def save_head(store: Store, head: LearnedHead, contents: Iterable[str], *, by: str, now: datetime) -> None:
    """Use this head from now on. `contents` are the hashes of the traces whose labels fitted it."""
    document = {"head": head.to_json(), "labels": sorted({shorten(content) for content in contents})}
    store.files.save(HEAD, json.dumps(document, sort_keys=True), by=by, now=now)


def labels_behind(store: Store, name: str, revision: str) -> frozenset[str]:
    """The contents, shortened, whose labels fitted this revision of a detector; none of one that no label fitted."""
    if name != NAME:
        return frozenset()
    digest = revision.partition("+")[0]
    for version in store.files.history(HEAD):
        head, contents = _read_head(version.text)
        if head is not None and head.digest == digest:
            return contents
    return frozenset()


def shorten(content_hash: str) -> str:
    """The part of a content's hash by which a head knows it."""
    return content_hash[:DIGITS]


def _read_head(text: str | None) -> tuple[LearnedHead | None, frozenset[str]]:
    try:
        document: dict[str, Any] = json.loads(text or "{}")
        return LearnedHead.from_json(document.get("head", {})), frozenset(document.get("labels", ()))
    except (ValueError, AttributeError, TypeError):
        return None, frozenset()
