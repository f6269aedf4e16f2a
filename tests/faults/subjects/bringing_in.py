"""Works that bring traces and labels in: an import, a labeller at the desk, a store of an older version."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, make_url, text

from calibrate.types import Label, Member, Record, Source, Trace, TraceFilter
from calibrate.workflow.traces.import_labelled import import_traces
from db import Store, open_store
from db.engine import HEAD, MIGRATIONS
from db.upkeep.schemas import known_schemas
from tests.db.make import NOW
from tests.faults.killing import Say
from tests.faults.subjects.base import STORE, Found, Rows, Work, ask, content, url_of
from tests.faults.subjects.labelling import VERDICTS, Labeller

WORDS = ("warranty", "battery", "delivery", "return", "invoice", "cover", "month", "device", "shop", "refund", "order")


def make_trace(number: int) -> Trace:
    """Trace `t<number>`: three sources, and an answer of which every other word is in them."""
    rng = random.Random(number)
    sources = tuple(Source(str(place), " ".join(rng.choices(WORDS, k=30))) for place in range(1, 4))
    answer = " ".join(rng.choice((rng.choice(WORDS), f"w{rng.randrange(10**6)}")) for _ in range(20))
    return Trace(
        f"t{number}",
        answer=answer,
        question=f"question {number}?",
        sources=sources,
        timestamp=NOW - timedelta(minutes=number),
        model="a" if number % 3 else "b",
    )


def fill(store: Store, count: int, *, labelled: int = 0) -> None:
    """So many traces, the first of them labelled."""
    records = []
    for number in range(count):
        labels = (Label(f"t{number}", "mara", VERDICTS[number % 2]),) if number < labelled else ()
        records.append(Record(number + 1, make_trace(number), labels))
    store.traces.add(records, labels_as="mara", now=NOW)


class Import(Work):
    """A file of traces with labels, which become a random sample."""

    name = "import"
    size = 4_000

    def prepare(self, folder: Path) -> None:
        open_store(url_of(folder)).close()
        with (folder / "traces.jsonl").open("w") as file:
            for number in range(self.size):
                trace = make_trace(number)
                row: dict[str, Any] = {
                    "trace_id": trace.id,
                    "question": trace.question,
                    "answer": trace.answer,
                    "sources": {source.number: source.text for source in trace.sources},
                    "timestamp": trace.timestamp.isoformat() if trace.timestamp else None,
                }
                if number % 40 == 0:
                    row["label"] = VERDICTS[number // 40 % 2]
                file.write(json.dumps(row) + "\n")

    def work(self, folder: Path, say: Say) -> None:
        with closing(open_store(url_of(folder))) as store:
            import_traces(
                store,
                folder / "traces.jsonl",
                design="random",
                on_progress=lambda report: say(str(report.imported + report.duplicates)),
                now=NOW,
            )
        say("sample")

    def check(self, folder: Path, said: Sequence[str]) -> Found:
        path = folder / STORE
        ((traces,),) = ask(path, "SELECT count(*) FROM traces")
        acknowledged = max((int(line) for line in said if line != "sample"), default=0)
        half = ask(path, "SELECT count(*) FROM traces WHERE id NOT IN (SELECT trace_pk FROM sources)")[0][0]
        found = Found(lost=max(0, acknowledged - traces))
        if half:
            found.problems.append(f"{half} traces came without their sources")
        if "sample" in said and not ask(path, "SELECT 1 FROM samples"):
            found.lost += 1
        return found

    def result(self, folder: Path) -> Rows:
        # The audit log names every attempt: an import that was killed and the one that went on.
        return content(folder / STORE, ignoring=frozenset({"samples.seed", "sample_members.position", "audit"}))


class Labelling(Work):
    """A labeller at the desk of the Label page, through a sample of 60."""

    name = "label"
    size = 60

    def prepare(self, folder: Path) -> None:
        with closing(open_store(url_of(folder))) as store:
            fill(store, 2_000)
            keep_sample(store, self.size, 2_000)

    def work(self, folder: Path, say: Say) -> None:
        with closing(open_store(url_of(folder))) as store:
            label_all(store, "ann", say)

    def check(self, folder: Path, said: Sequence[str]) -> Found:
        query = "SELECT trace_pk || ' ' || verdict FROM labels WHERE labeller = 'ann' ORDER BY id"
        return compare_labels([str(row[0]) for row in ask(folder / STORE, query)], said)


def keep_sample(store: Store, size: int, pool: int) -> None:
    """The sample `week`, of so many traces."""
    drawn = random.Random(1).sample(range(1, pool + 1), size)
    store.samples.add(
        "week",
        design="random",
        by=None,
        seed=1,
        pool=pool,
        undated=0,
        where=TraceFilter(),
        strata={"all": (pool, size)},
        members=[Member(pk, size / pool, "all") for pk in drawn],
        now=NOW,
    )


def label_all(store: Store, labeller: str, say: Say) -> None:
    """A labeller at work until the sample is done; says a label once it is saved."""
    at_work = Labeller(store, labeller)
    while (pk := at_work.next()) is not None:
        say(f"{pk} {at_work.answer(pk)}")


def compare_labels(kept: Sequence[str], said: Sequence[str], *, unsure: int = 1) -> Found:
    """Every label that was acknowledged is kept once; of those under way or refused, `unsure` of them, any may be."""
    found = Found(lost=len(set(said) - set(kept)), doubled=len(kept) - len(set(kept)))
    if len(set(kept) - set(said)) > unsure:
        found.problems.append(f"{len(set(kept) - set(said))} labels are kept that nobody acknowledged, not {unsure}")
    return found


class Migration(Work):
    """Stores of older versions, opened one after the other: of every `step`-th."""

    name = "migrate"
    share = 0.8
    size = 3_000
    step = 1

    def prepare(self, folder: Path) -> None:
        for version in known_schemas()[-2 :: -self.step]:
            _make_old(folder / f"{version}.db", version, self.size)

    def work(self, folder: Path, say: Say) -> None:
        for path in self.stores(folder):
            open_store(f"sqlite:///{path}", create=False).close()
            say(path.stem)

    def check(self, folder: Path, said: Sequence[str]) -> Found:
        found = Found()
        for path in self.stores(folder):
            ((version,),) = ask(path, "SELECT version_num FROM alembic_version")
            if path.stem in said and version != HEAD:
                found.lost += 1
            if version not in (path.stem, HEAD):
                found.problems.append(f"a store of {path.stem} is left at {version}, between the versions")
            ((traces,),) = ask(path, "SELECT count(*) FROM traces")
            found.lost += self.size - traces
        return found

    def result(self, folder: Path) -> Rows:
        rows: Rows = Rows()
        for path in self.stores(folder):
            rows.update((path.stem, *row) for row in content(path))
            rows.update((path.stem, "schema", *row) for row in ask(path, "SELECT name, sql FROM sqlite_schema"))
        return rows

    def stores(self, folder: Path) -> list[Path]:
        return sorted(folder.glob("[0-9]*.db"))


def _make_old(path: Path, version: str, rows: int) -> None:
    """A store as an older version left it: traces, and a label with its gold on every tenth."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    engine = create_engine(make_url(f"sqlite:///{path}"))
    at = NOW.replace(tzinfo=None)
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, version)
        keys = [{"id": n, "name": f"t{n}", "at": at} for n in range(1, rows + 1)]
        for columns, values, every in (
            ("traces (id, trace_id, content_hash, answer, imported_at)", ":id, :name, '', 'yes', :at", 1),
            ("labels (trace_pk, labeller, verdict, created_at)", ":id, 'ann', 'clean', :at", 10),
            ("gold (trace_pk, verdict, labellers, decided_at)", ":id, 'clean', 1, :at", 10),
        ):
            connection.execute(text(f"INSERT INTO {columns} VALUES ({values})"), keys[::every])
    engine.dispose()
