"""After a release: a commit in the team's repository and a message to its webhook, where it has them.

The release is made by then, so nothing here raises: what failed is returned.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from calibrate import webhook
from calibrate.errors import TouchstoneError
from calibrate.sanitize import visible
from calibrate.settings import ReleaseSettings
from calibrate.workflow.releasing import git_export
from db import Store
from db.releases import Release

PATIENCE = 5.0  # seconds for the whole of a message


@dataclass(frozen=True)
class Unannounced:
    """What failed after release `version`: the commit, or (with a `host`) the message to the webhook there.

    Never the webhook's path, which is a secret. `reason` is None where the webhook did not answer in time.
    """

    version: int
    host: str | None
    reason: str | None


def announce(row: Release, settings: ReleaseSettings, store: Store | None = None) -> list[Unannounced]:
    """Commit the release, with those of its `store` that git lacks, and call the webhook. Returns what failed."""
    failures = commit(row, settings, store)
    if settings.webhook:
        answered, reason = _post_message(settings.webhook, message(row))
        if reason or not answered:
            failures.append(Unannounced(row.version, urlsplit(settings.webhook).hostname or "", reason))
    return failures


def commit(row: Release, settings: ReleaseSettings, store: Store | None = None) -> list[Unannounced]:
    """Commit what git lacks of the store's releases, where the team has a repository. Returns what failed."""
    if settings.git:
        try:
            git_export.export([*(store.releases.list() if store else ()), row], settings.git)
        except TouchstoneError as error:
            return [Unannounced(row.version, None, str(error))]
    return []


def message(row: Release) -> dict[str, Any]:
    """Build the webhook's message: Slack shows `text`, others may read the rest."""
    note = f": {row.note}" if row.note else "."
    text = f"Touchstone: thresholds v{row.version} released by {row.released_by}{note}"
    return {"text": webhook.escape_slack(visible(text)), "version": row.version, "sha256": row.sha256}


def _post_message(url: str, document: dict[str, Any]) -> tuple[bool, str | None]:
    """Post the document within PATIENCE. Returns whether it was answered, and the reason where that failed.

    In a thread: a server that sends a byte now and then would hold the caller much longer.
    """
    results: list[str | None] = []

    def post() -> None:
        results.append(webhook.post(url, document, timeout=PATIENCE))

    thread = threading.Thread(target=post, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return (True, results[0]) if results else (False, None)
