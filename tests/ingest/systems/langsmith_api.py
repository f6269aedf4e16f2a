"""LangSmith's API, as far as `pull` and `--annotate` use it, written after the requests of its client."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from served import Answer, Asked

PAGE = 3
_BOUNDS = re.compile(r'and\(gte\(start_time, "([^"]+)"\), lt\(start_time, "([^"]+)"\)\)')
_KINDS = 'or(eq(is_root, true), eq(run_type, "llm"), eq(run_type, "retriever"), eq(run_type, "tool"))'


@dataclass
class LangSmithApi:
    """A project with its runs and feedback. `written` is the feedback that was sent, by its id."""

    project: str
    key: str = "lsv2_test"
    runs: list[dict[str, Any]] = field(default_factory=list)
    feedback: list[dict[str, Any]] = field(default_factory=list)
    written: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __call__(self, asked: Asked) -> Answer:
        if asked.path == "/info":
            return 200, {"version": "0.13.0", "batch_ingest_config": {"use_multipart_endpoint": True}}
        if {name.lower(): value for name, value in asked.headers.items()}.get("x-api-key") != self.key:
            return 401, {"detail": "Invalid token"}
        match asked.method, asked.path:
            case "GET", "/sessions":
                named = asked.first("name") == "museum"
                session = {
                    "id": self.project,
                    "name": "museum",
                    "start_time": "2026-01-01T00:00:00",
                    "tenant_id": self.project,
                    "reference_dataset_id": None,
                }
                return 200, [session] if named else []
            case "POST", "/runs/query":
                return self._runs(asked.body)
            case "GET", "/feedback":
                return self._feedback(asked)
            case "POST", "/feedback":
                self.written[asked.body["id"]] = asked.body
                return 200, asked.body
        return 404, {"detail": f"no {asked.path}"}

    def _runs(self, body: dict[str, Any]) -> Answer:
        roots = {run["trace_id"]: run["start_time"] for run in self.runs if run["parent_run_id"] is None}
        rows = self.runs
        if body.get("id"):
            rows = [run for run in rows if run["id"] in body["id"]]
        else:
            assert body["session"] == [self.project], body
        if body.get("trace"):
            rows = [run for run in rows if run["trace_id"] == body["trace"]]
        if filtered := body.get("trace_filter"):
            bounds = _BOUNDS.fullmatch(filtered)
            assert bounds, filtered
            rows = [run for run in rows if bounds[1] <= _plain(roots[run["trace_id"]]) < bounds[2]]
        if body.get("filter"):
            assert body["filter"] == _KINDS
            rows = [
                run for run in rows if run["parent_run_id"] is None or run["run_type"] in ("llm", "retriever", "tool")
            ]
        if body.get("start_time"):
            rows = [run for run in rows if _plain(run["start_time"]) >= _plain(body["start_time"])]
        rows = sorted(rows, key=lambda run: (run["start_time"], run["id"]), reverse=True)
        begin = int(body.get("cursor") or 0)
        page = [{name: run.get(name) for name in body["select"]} for run in rows[begin : begin + PAGE]]
        following = str(begin + PAGE) if begin + PAGE < len(rows) else None
        return 200, {"runs": page, "cursors": {"next": following}}

    def _feedback(self, asked: Asked) -> Answer:
        assert asked.query["session"] == [self.project]
        first, last = asked.first("min_created_at"), asked.first("max_created_at")
        rows = [
            each for each in self.feedback if _plain(first or "") <= _plain(each["created_at"]) < _plain(last or "9")
        ]
        offset, limit = int(asked.first("offset") or 0), int(asked.first("limit") or 100)
        return 200, rows[offset : offset + limit]


def _plain(moment: str) -> str:
    head, _, fraction = moment.replace("+00:00", "").rstrip("Z").partition(".")
    return f"{head}.{fraction:0<6}Z"
