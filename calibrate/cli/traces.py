"""`traces`."""

from __future__ import annotations

from argparse import Namespace

from calibrate.cli import Answer
from calibrate.cli.common import now, store, table
from calibrate.errors import BadInput
from calibrate.sanitize import visible
from calibrate.stats.sampling import designs
from calibrate.types import TraceFilter

MOST_LINES = 100_000
LABEL_STATES = ("any", "unlabelled", "labelled", "clean", "hallucinated", "unsure", "disputed")


def run(args: Namespace) -> Answer:
    if args.label not in LABEL_STATES:
        raise BadInput(f"--label is one of {', '.join(LABEL_STATES)}, not {args.label!r}")
    if not 1 <= args.limit <= MOST_LINES:
        raise BadInput(f"--limit {args.limit} is not from 1 to {MOST_LINES:,}")
    found = store(args)
    since = designs.window_start(designs.parse_since(args.since), now())
    where = TraceFilter(since=since, undated=since is None, label=args.label, text=args.text)
    lines = found.traces.page(where, limit=args.limit).lines
    rows = [("time", "trace", "model", "gold", "answer")]
    rows += [
        (
            line.timestamp.strftime("%Y-%m-%d %H:%M") if line.timestamp else "–",
            visible(line.id),
            visible(line.model) or "–",
            line.gold or "–",
            visible(line.answer, 60).replace("\n", " "),
        )
        for line in lines
    ]
    document = {
        "total": found.traces.count(where),
        "traces": [
            {
                "trace_id": line.id,
                "timestamp": line.timestamp.isoformat() if line.timestamp else None,
                "model": line.model,
                "operation": line.operation,
                "gold": line.gold,
                "question": line.question,
                "answer": line.answer,
            }
            for line in lines
        ],
    }
    return Answer(document, f"{table(rows)}\n{len(lines)} of {document['total']:,}")
