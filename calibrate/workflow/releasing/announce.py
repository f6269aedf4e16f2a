"""After a release: a commit in the team's repository and a message to its webhook, where it has them.

The release is made by then, so nothing here raises: what failed is said, in sentences.
"""

from __future__ import annotations

import threading
from typing import Any
from urllib.parse import urlsplit

from calibrate import webhook
from calibrate.errors import TouchstoneError
from calibrate.settings import ReleaseSettings
from calibrate.workflow.releasing import git_export
from db.releases import Release

PATIENCE = 5.0  # seconds for the whole of a message


def announce(row: Release, settings: ReleaseSettings) -> list[str]:
    """Commits and tells. What did not work, in sentences; never the webhook's path, which is a secret."""
    said = []
    if settings.git:
        try:
            git_export.export(row, settings.git)
        except TouchstoneError as error:
            said.append(f"v{row.version} is released, but not committed: {error}")
    if settings.webhook and (why := _tell(settings.webhook, message(row))):
        said.append(f"v{row.version} is released, but {_host(settings.webhook)} was not told: {why}")
    return said


def message(row: Release) -> dict[str, Any]:
    """What the webhook is sent: Slack shows `text`, others may read the rest."""
    note = f": {row.note}" if row.note else "."
    text = f"Touchstone: thresholds v{row.version} released by {row.released_by}{note}"
    return {"text": webhook.escape_slack(text), "version": row.version, "sha256": row.sha256}


def _tell(url: str, document: dict[str, Any]) -> str | None:
    """Post the document within PATIENCE. Returns the reason where that failed.

    In a thread: a server that sends a byte now and then would hold the caller much longer.
    """
    problems: list[str | None] = ["it did not answer in time"]

    def post() -> None:
        problems[0] = webhook.post(url, document, timeout=PATIENCE)

    thread = threading.Thread(target=post, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return problems[0]


def _host(url: str) -> str:
    return f"the webhook at {urlsplit(url).hostname}"
