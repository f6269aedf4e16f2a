"""After a release: a commit in the team's repository and a message to its webhook, where it has them.

The release is made by then, so nothing here raises: what failed is said, in sentences.
"""

from __future__ import annotations

import http.client
import json
import threading
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

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
    # Slack reads <…> as a link or a call to everybody, and & as an escape.
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {"text": escaped, "version": row.version, "sha256": row.sha256}


def _tell(url: str, document: dict[str, Any]) -> str | None:
    """Posts the document; why that failed, None where it did not. A server that answers a byte now and then keeps its
    connection, not us."""
    answer = ["it did not answer in time"]

    def post() -> None:
        answer[0] = _post(url, document)

    thread = threading.Thread(target=post, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return answer[0] or None


def _post(url: str, document: dict[str, Any]) -> str:
    headers = {"Content-Type": "application/json", "User-Agent": "touchstone"}
    request = urllib.request.Request(url, json.dumps(document).encode(), headers, method="POST")
    try:
        with urllib.request.build_opener(_Stay).open(request, timeout=PATIENCE) as reply:
            return "" if 200 <= reply.status < 300 else f"it answered {reply.status}"
    except urllib.error.HTTPError as error:
        return f"it answered {error.code}"
    except (OSError, ValueError, http.client.HTTPException) as error:  # their texts may quote the URL
        return f"it could not be reached ({type(getattr(error, 'reason', None) or error).__name__})"


class _Stay(urllib.request.HTTPRedirectHandler):
    """A webhook that moved is set anew; nothing is sent where nobody meant it to go."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _host(url: str) -> str:
    return f"the webhook at {urlsplit(url).hostname}"
