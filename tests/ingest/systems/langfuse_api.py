"""Langfuse's public API, as far as `pull` and `--annotate` use it, written after the models of its client."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Any

from served import Answer, Asked

GROUPS = {
    "core": ("id", "traceId", "startTime", "endTime", "projectId", "parentObservationId", "type"),
    "basic": (
        "name",
        "level",
        "statusMessage",
        "version",
        "environment",
        "bookmarked",
        "public",
        "userId",
        "sessionId",
        "isRootObservation",
    ),
    "io": ("input", "output"),
    "metadata": ("metadata",),
    "model": ("model", "internalModelId", "modelParameters"),
    "trace_context": ("tags", "release", "traceName"),
}
SUBJECTS = {
    "details": ("comment", "configId", "metadata"),
    "subject": ("subject",),
    "annotation": ("authorUserId", "queueId"),
}
CORE_SCORE = (
    "id",
    "projectId",
    "name",
    "value",
    "dataType",
    "source",
    "timestamp",
    "environment",
    "createdAt",
    "updatedAt",
)


@dataclass
class LangfuseApi:
    """A project with its observations and scores. `written` are the scores that were sent, by their id."""

    keys: tuple[str, str] = ("pk-lf-test", "sk-lf-test")
    observations: list[dict[str, Any]] = field(default_factory=list)
    scores: list[dict[str, Any]] = field(default_factory=list)
    written: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add_export(self, document: dict[str, Any]) -> None:
        """Take in a trace as the user interface exports it."""
        trace = document["trace"]
        for row in document["observations"]:
            metadata = row["metadata"]
            self.observations.append(
                {
                    **row,
                    "metadata": json.loads(metadata) if isinstance(metadata, str) else metadata,
                    "userId": trace.get("userId"),
                    "sessionId": trace.get("sessionId"),
                    "tags": trace.get("tags") or [],
                    "release": trace.get("release"),
                    "traceName": trace.get("name"),
                    "isRootObservation": not row.get("parentObservationId"),
                }
            )
        for score in trace.get("scores") or []:
            on = score.get("observationId")
            subject = (
                {"kind": "observation", "id": on, "traceId": trace["id"]}
                if on
                else {"kind": "trace", "id": trace["id"]}
            )
            metadata = json.loads(score.get("metadata") or "{}")
            self.scores.append({**score, "subject": subject, "metadata": metadata})

    def __call__(self, asked: Asked) -> Answer:
        token = base64.b64encode(":".join(self.keys).encode()).decode()
        if asked.headers.get("Authorization") != f"Basic {token}":
            return 401, {
                "message": "Invalid credentials. Confirm that you've configured the correct host.",
                "error": "UnauthorizedError",
            }
        match asked.method, asked.path:
            case "GET", "/api/public/projects":
                return 200, {
                    "data": [{"id": "p1", "name": "museum", "organization": {"id": "o", "name": "o"}, "metadata": {}}]
                }
            case "GET", "/api/public/v2/observations":
                return self._observations(asked)
            case "GET", "/api/public/v3/scores":
                return self._scores(asked)
            case "POST", "/api/public/scores":
                return self._write(asked)
        return 404, {"message": f"no {asked.path}"}

    def _observations(self, asked: Asked) -> Answer:
        rows = [
            row
            for row in self.observations
            if _within(row["startTime"], asked.first("fromStartTime"), asked.first("toStartTime"))
            and asked.first("traceId") in (None, row["traceId"])
        ]
        rows.sort(key=lambda row: (row["startTime"], row["id"]), reverse=True)
        page, cursor = _page(rows, asked, most=1000)
        fields = [name for group in (asked.first("fields") or "core,basic").split(",") for name in GROUPS[group]]
        expanded = (asked.first("expandMetadata") or "").split(",")
        data = []
        for row in page:
            shown = {name: row.get(name) for name in fields}
            if "metadata" in shown:
                shown["metadata"] = {
                    key: _cut(value, key in expanded) for key, value in (shown["metadata"] or {}).items()
                }
            data.append(shown)
        return 200, {"data": data, "meta": {"limit": len(page), **({"cursor": cursor} if cursor else {})}}

    def _scores(self, asked: Asked) -> Answer:
        if int(asked.first("limit") or 50) > 100:
            return 400, {"message": "limit: at most 100"}
        rows = [
            row
            for row in self.scores
            if _within(row["timestamp"], asked.first("fromTimestamp"), asked.first("toTimestamp"))
        ]
        rows.sort(key=lambda row: (row["timestamp"], row["id"]), reverse=True)
        page, cursor = _page(rows, asked, most=100)
        names = [
            *CORE_SCORE,
            *(name for group in (asked.first("fields") or "").split(",") if group for name in SUBJECTS[group]),
        ]
        data = [{name: row.get(name) for name in names if row.get(name) is not None} for row in page]
        return 200, {"data": data, "meta": {"limit": len(page), **({"cursor": cursor} if cursor else {})}}

    def _write(self, asked: Asked) -> Answer:
        rejected = [score for score in asked.body if score["value"] == -1]
        self.written |= {score["id"]: score for score in asked.body if score not in rejected}
        if rejected:
            errors = [{"message": "value out of range"}] * len(rejected)
            return 207, {"accepted": len(asked.body) - len(rejected), "rejected": len(rejected), "errors": errors}
        return 202, {"message": "Accepted"}


def _within(moment: str, first: str | None, last: str | None) -> bool:
    return (first is None or _plain(first) <= _plain(moment)) and (last is None or _plain(moment) < _plain(last))


def _plain(moment: str) -> str:
    """ISO 8601 in UTC, so that texts compare as times."""
    head, _, fraction = moment.replace("+00:00", "Z").rstrip("Z").partition(".")
    return f"{head}.{fraction:0<6}"


def _page(rows: list[dict[str, Any]], asked: Asked, *, most: int) -> tuple[list[dict[str, Any]], str | None]:
    begin = int(base64.b64decode(asked.first("cursor") or "").decode() or 0)
    end = begin + min(most, int(asked.first("limit") or 50))
    return rows[begin:end], base64.b64encode(str(end).encode()).decode() if end < len(rows) else None


def _cut(value: Any, whole: bool) -> Any:
    text = value if isinstance(value, str) else json.dumps(value)
    return value if whole or len(text) <= 200 else text[:200]
