"""Pull from a table of one's own, on a real PostgreSQL and on SQLite: nothing lost, nothing twice, nothing written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from calibrate.cli import main
from calibrate.types import TraceFilter
from db import open_store
from db.exchange.foreign import ForeignQuery, place_of, without_password

ROOT = Path(__file__).parents[3]
START = datetime(2026, 11, 1, tzinfo=UTC)
QUERY = "select reply, asked, created_at, passages, id from chats where created_at > :since"
WAYS = ["sqlite", pytest.param("postgresql", marks=[pytest.mark.postgres, pytest.mark.both_databases])]


class Chats:
    """A table as a team may have it, which an app fills."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
        self.is_postgres = self.engine.dialect.name == "postgresql"
        time, passages = ("timestamptz", "jsonb") if self.is_postgres else ("text", "text")
        with self.engine.begin() as connection:
            connection.exec_driver_sql(
                f"CREATE TABLE chats (id integer PRIMARY KEY, created_at {time}, asked text, reply text, "
                f"passages {passages}, tokens_used integer)"
            )

    def log(self, first: int, last: int, *, at: datetime | None = None) -> None:
        """Answers number `first` to `last`; three of them have the same time, or all have `at`."""
        rows = [
            {
                "id": n,
                "at": (at or START + timedelta(seconds=10 * (n // 3))).isoformat(),
                "asked": f"question {n}",
                "reply": f"answer {n}",
                "passages": json.dumps([{"text": f"passage {n}", "title": "t"}]),
            }
            for n in range(first, last)
        ]
        time, passages = (
            ("cast(:at as timestamptz)", "cast(:passages as jsonb)") if self.is_postgres else (":at", ":passages")
        )
        with self.engine.begin() as connection:
            statement = f"INSERT INTO chats VALUES (:id, {time}, :asked, :reply, {passages}, 7)"
            connection.execute(sa.text(statement), rows)

    def pull(self, store: Path, *more: str, name: str = "app", query: str = QUERY) -> list[str]:
        words = ["pull", "sql", "--url", self.url, "--query", query, "--name", name, "--since", "all", "--store"]
        words += [f"sqlite:///{store}", "--column", "answer=reply", "--column", "question=asked"]
        return [*words, "--column", "sources=passages", "--cursor", "created_at", *more]


@pytest.fixture(params=WAYS)
def chats(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Chats]:
    if request.param == "sqlite":
        made = Chats(f"sqlite:///{tmp_path}/app.db")
    else:
        made = Chats(request.getfixturevalue("postgres_url"))
    yield made
    made.engine.dispose()


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    def run(words: list[str], code: int = 0) -> dict[str, Any]:
        capsys.readouterr()
        assert main([*words, "--json"]) == code, capsys.readouterr().err
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return json.loads(out)

    return run


def ids(store: Path) -> list[str]:
    with closing(open_store(f"sqlite:///{store}")) as opened:
        return sorted(trace_id for batch in opened.traces.ids(TraceFilter()) for trace_id in batch)


def test_a_pull_brings_what_came_since_and_no_row_twice(
    chats: Chats, tmp_path: Path, call: Callable[..., dict[str, Any]]
) -> None:
    store = tmp_path / "store.db"
    chats.log(0, 2_500)
    document = call(chats.pull(store))
    assert (document["imported"], document["duplicates"], document["rejected"]) == (2_500, 0, 0)
    with closing(open_store(f"sqlite:///{store}")) as opened:
        key = opened.traces.find("app-7")
        assert key is not None
        (trace,) = opened.traces.load([key])
    assert (trace.question, trace.answer, trace.timestamp) == ("question 7", "answer 7", START + timedelta(seconds=20))
    assert [(source.text, source.title) for source in trace.sources] == [("passage 7", "t")]
    # Three of the same time as the last one that was read, and one of a transaction that ended late.
    chats.log(2_500, 2_503, at=START + timedelta(seconds=8_330))
    chats.log(2_503, 2_504, at=START + timedelta(seconds=6_000))
    words = ["pull", "sql", "--name", "app", "--store", f"sqlite:///{store}", "--since", "all"]
    if chats.is_postgres:  # where the driver looks by itself for what is not in the address
        words += ["--url", chats.url]
    again = call(words)
    assert again["imported"] == 4
    assert again["duplicates"] < 1_200  # it began an hour behind, not at the beginning
    assert ids(store) == sorted(f"app-{n}" for n in range(2_504))
    assert call(words)["imported"] == 0


def test_the_first_rows_are_shown_as_traces_and_nothing_is_stored(
    chats: Chats, tmp_path: Path, call: Callable[..., dict[str, Any]]
) -> None:
    store = tmp_path / "store.db"
    chats.log(0, 50)
    document = call(chats.pull(store, "--preview"))
    assert document["columns"] == ["reply", "asked", "created_at", "passages", "id"]
    first = document["traces"][0]
    assert (first["trace_id"], first["answer"], first["sources"]) == ("app-0", "answer 0", 1)
    assert len(document["traces"]) == 5
    assert (ids(store), call(["pull", "--list", "--store", f"sqlite:///{store}"])["pulls"]) == ([], [])


def test_a_query_cannot_write(chats: Chats, tmp_path: Path, call: Callable[..., dict[str, Any]]) -> None:
    store = tmp_path / "store.db"
    chats.log(0, 3)
    tries = [
        "delete from chats",
        "select * from chats; delete from chats",
        "select * from chats where created_at > :since) as a; delete from chats; select * from (select 1",
        "with gone as (delete from chats returning *) select * from gone",
    ]
    if chats.is_postgres:
        with chats.engine.begin() as connection:
            connection.exec_driver_sql(
                "CREATE FUNCTION wipe() RETURNS text LANGUAGE plpgsql AS 'BEGIN DELETE FROM chats; RETURN 1; END'"
            )
        tries.append("select wipe() as reply, asked, created_at, passages from chats where created_at > :since")
    for query in tries:
        error = call(chats.pull(store, query=query), code=2)["error"]
        assert "a pull only reads" in error or "does not take the query" in error
    if chats.is_postgres:
        assert "the query writes, and a pull only reads" in error
    with chats.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM chats").scalar() == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--cursor", "made_at"], "no column 'made_at'; it has 'reply'"),
        (["--column", "model=text"], "no column 'text'; it has 'reply'"),
        (["--column", "reply=reply"], "a trace has no field 'reply'"),
        (["--query", "select answer from nowhere"], "does not take the query: no such table: nowhere"),
        (["--query", "select 1 as answer where 1 > :until"], "only :since is filled in"),
        (
            ["--query", """select '{"a":true}' as answer"""],
            r"Where :true is none, as in a text or in JSON, write \:true",
        ),
        (["--url", "mysql://x/y"], "cannot be pulled from"),
        (["--url", "sqlite:////nowhere/app.db"], "no SQLite file"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(
    tmp_path: Path, call: Callable[..., dict[str, Any]], words: list[str], message: str
) -> None:
    chats = Chats(f"sqlite:///{tmp_path}/app.db")
    chats.log(0, 3)
    assert message in call(chats.pull(tmp_path / "store.db", *words), code=2)["error"]
    chats.engine.dispose()


def test_a_colon_in_a_text_and_the_column_of_the_answer_can_be_said(
    chats: Chats, tmp_path: Path, call: Callable[..., dict[str, Any]]
) -> None:
    words = ["pull", "sql", "--url", chats.url, "--store", f"sqlite:///{tmp_path}/store.db", "--preview", "--query"]
    error = call([*words, r"""select '{"a"\:true}' as reply"""], code=2)["error"]
    assert "Say which of them is the answer: --column answer=reply" in error
    document = call([*words, r"""select '{"a"\:true}' as reply""", "--column", "answer=reply"])
    assert document["traces"][0]["answer"] == '{"a":true}'


def test_another_query_under_the_same_name_is_refused(tmp_path: Path, call: Callable[..., dict[str, Any]]) -> None:
    chats, store = Chats(f"sqlite:///{tmp_path}/app.db"), tmp_path / "store.db"
    chats.log(0, 3)
    call(chats.pull(store))
    other = QUERY.replace("select reply", "select asked as reply")
    assert "another query" in call(chats.pull(store, query=other), code=2)["error"]
    assert call(chats.pull(store, "--restart", query=other))["changed"] == 3
    chats.engine.dispose()


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("integer", [5, 6, 6, 7, 4_000]),
        ("real", [1.7e9, 1.7e9 + 0.5, 1.7e9 + 0.5, 1.7e9 + 3_000]),
        ("text", ["01a", "01b", "01b", "01c"]),
        ("text", ["2026-11-20T10:00:00-05:00", "2026-11-20T10:00:01-05:00", "2026-11-20T12:30:00-05:00"]),
    ],
)
def test_any_column_that_grows_is_a_cursor(
    tmp_path: Path, call: Callable[..., dict[str, Any]], column: str, values: list[Any]
) -> None:
    """Row by row, with a pull after each, and a second row of the same value after that."""
    url, store = f"sqlite:///{tmp_path}/app.db", f"sqlite:///{tmp_path}/store.db"
    words = ["pull", "sql", "--url", url, "--query", "select * from log where at > :since", "--cursor", "at"]
    words += ["--name", "log", "--store", store, "--since", "all"]
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE TABLE log (trace_id text, answer text, at {column})")
    for n, value in enumerate(values):
        with engine.begin() as connection:
            connection.exec_driver_sql("INSERT INTO log VALUES (?, 'x' || ?, ?)", (f"t{n}", n, value))
        assert call(words)["imported"] == 1
    with closing(open_store(store)) as opened:
        assert opened.pulls.list()[0].cursor is not None
    engine.dispose()


def test_a_row_of_the_future_hides_no_later_row(
    chats: Chats, tmp_path: Path, call: Callable[..., dict[str, Any]]
) -> None:
    store = tmp_path / "store.db"
    chats.log(0, 2)
    chats.log(2, 3, at=datetime(2099, 1, 1, tzinfo=UTC))
    assert [call(chats.pull(store))[key] for key in ("imported", "ahead")] == [3, 1]
    chats.log(3, 5)
    assert [call(chats.pull(store))[key] for key in ("imported", "ahead")] == [2, 1]
    assert ids(store) == [f"app-{n}" for n in range(5)]


TIME_TEXTS = [
    ("2026-11-10 10:00:00", "pending", "2026-11-10 12:00:00", False),
    ("2026-11-10", "garbage", "2026-11-11", False),
    ("2026-11-10T10:00:00Z", "2026-13-77T99:00:00Z", "2026-11-10T12:00:00Z", False),
    ("2026-11-10T10:00:00Z", "2026-11-10 11:00:00", "2026-11-10 12:30:00", True),
]


@pytest.mark.parametrize(("first", "second", "third", "mixed"), TIME_TEXTS)
def test_a_text_that_is_no_time_hides_no_later_row(
    tmp_path: Path, call: Callable[..., dict[str, Any]], first: str, second: str, third: str, mixed: bool
) -> None:
    chats, store = Chats(f"sqlite:///{tmp_path}/app.db"), tmp_path / "store.db"

    def log(n: int, at: str) -> None:
        with chats.engine.begin() as connection:
            connection.exec_driver_sql("INSERT INTO chats VALUES (?, ?, 'q', 'a', '[]', 1)", (n, at))

    log(1, first)
    log(2, second)
    document = call(chats.pull(store))
    assert (document["imported"], document["rejected"], document["mixed_times"]) == (1 + mixed, 1 - mixed, mixed)
    if not mixed:
        assert document["errors"] == [f"app-2: created_at: {second!r} is no time that can be compared"]
    log(3, third)
    assert call(chats.pull(store))["imported"] == 1
    assert "app-3" in ids(store)
    chats.engine.dispose()


@pytest.mark.postgres
@pytest.mark.parametrize(("column", "odd"), [("timestamptz", "infinity"), ("date", "infinity"), ("numeric", "NaN")])
def test_one_odd_value_is_refused_by_its_id_and_the_others_come(
    postgres_url: str, tmp_path: Path, call: Callable[..., dict[str, Any]], column: str, odd: str
) -> None:
    engine = sa.create_engine(postgres_url.replace("postgresql://", "postgresql+psycopg://"))
    good = ["1", "2", "3"] if column == "numeric" else ["2026-11-10", "2026-11-11", "2026-11-12"]
    words = ["pull", "sql", "--url", postgres_url, "--query", "select * from log", "--cursor", "at", "--name", "log"]
    words += ["--store", f"sqlite:///{tmp_path}/store.db", "--since", "all"]
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE TABLE log (trace_id text, answer text, at {column})")
        for n, value in enumerate([*good[:2], odd]):
            connection.exec_driver_sql(f"INSERT INTO log VALUES ('t{n}', 'a', '{value}')")
    document = call(words)
    assert (document["imported"], document["rejected"]) == (2, 1)
    assert document["errors"][0].startswith("t2: at: ")
    with engine.begin() as connection:
        connection.exec_driver_sql(f"INSERT INTO log VALUES ('t3', 'a', '{good[2]}')")
    assert call(words)["imported"] == 1
    engine.dispose()


def test_a_refused_row_without_an_id_is_named_by_its_cursor(
    tmp_path: Path, call: Callable[..., dict[str, Any]]
) -> None:
    chats = Chats(f"sqlite:///{tmp_path}/app.db")
    with chats.engine.begin() as connection:
        connection.exec_driver_sql("INSERT INTO chats VALUES (1, '2026-11-10 10:00:00', 'q', NULL, '[]', 1)")
        connection.exec_driver_sql("INSERT INTO chats VALUES (2, '2026-11-10 10:00:01', 'q', 'a', '[', 1)")
    errors = call(chats.pull(tmp_path / "store.db", query=QUERY.replace(", id", "")))["errors"]
    assert [error.split(": ")[:2] for error in errors] == [
        ["2026-11-10 10:00:00", "answer"],
        ["2026-11-10 10:00:01", "sources"],
    ]
    errors = call(chats.pull(tmp_path / "other.db"))["errors"]
    assert [error.split(": ")[:2] for error in errors] == [["app-1", "answer"], ["app-2", "sources"]]
    chats.engine.dispose()


def test_another_database_is_another_pull(tmp_path: Path, call: Callable[..., dict[str, Any]]) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    (tmp_path / "b").mkdir()
    both = Chats(f"sqlite:///{tmp_path}/app.db"), Chats(f"sqlite:///{tmp_path}/b/app.db")
    query = "select id, reply as answer, created_at from chats"
    for chats in both:
        chats.log(0, 3)
        words = ["pull", "sql", "--url", chats.url, "--query", query, "--cursor", "created_at", "--store", store]
        assert call([*words, "--since", "all"])["imported"] == 3
        assert call([*words, "--since", "all"])["duplicates"] == 3
    one, other = (chats.url.removeprefix("sqlite:///") for chats in both)
    assert ids(tmp_path / "store.db") == sorted(f"sql {path}-{n}" for path in (one, other) for n in range(3))
    named = [*words, "--name", "shop", "--since", "all"]
    call(named)
    named[named.index("--url") + 1] = both[0].url
    error = call(named, code=2)["error"]
    assert f"the pull 'shop' is of {other}, not of {one}: give this one another --name" in error
    for chats in both:
        chats.engine.dispose()


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("postgresql://ann:hunter-2@db1/shop", "db1/shop"),
        ("postgresql+psycopg://db1:5432/shop?sslmode=require", "db1/shop"),
        ("postgresql://db1:5433/shop", "db1:5433/shop"),
        ("postgresql:///shop?host=/run/pg&port=6000&password=hunter-2", "/run/pg:6000/shop"),
        ("postgresql:///shop", "shop"),
    ],
)
def test_a_database_is_told_by_host_port_and_name(address: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGHOST", "PGPORT"):
        monkeypatch.delenv(name, raising=False)
    assert place_of(address) == place
    monkeypatch.setenv("PGHOST", "elsewhere")
    assert place_of("postgresql:///shop") == "elsewhere/shop"


def test_a_pull_that_was_named_by_its_database_alone_goes_on(
    tmp_path: Path, call: Callable[..., dict[str, Any]]
) -> None:
    chats = Chats(f"sqlite:///{tmp_path}/app.db")
    chats.log(0, 3)
    words = chats.pull(tmp_path / "store.db", name="sql app.db")
    call(words)
    words[words.index("--name") : words.index("--name") + 2] = []
    chats.log(3, 5)
    document = call(words)
    assert (document["name"], document["imported"], document["duplicates"]) == ("sql app.db", 2, 3)
    chats.engine.dispose()


@pytest.mark.parametrize(
    ("query", "held_back"),
    [
        (f"{QUERY} order by created_at limit 6", True),
        (QUERY.replace(" where created_at > :since", " order by created_at limit 6"), True),
        (f"{QUERY} limit 600", False),
        (f"{QUERY} and id in (select id from chats limit 6) -- limit 6", False),
        (f"{QUERY} and asked != 'limit 6'", False),
    ],
)
def test_a_limit_that_hides_later_rows_is_said(
    chats: Chats, tmp_path: Path, call: Callable[..., dict[str, Any]], query: str, held_back: bool
) -> None:
    store = tmp_path / "store.db"
    chats.log(0, 30)
    assert call(chats.pull(store, query=query))["held_back"] is False
    assert call(chats.pull(store, query=query))["held_back"] is held_back


@pytest.mark.parametrize("empty", [None, "pending"])
def test_rows_without_a_time_before_all_others_hide_no_time(
    chats: Chats, tmp_path: Path, call: Callable[..., dict[str, Any]], empty: str | None
) -> None:
    if chats.is_postgres:
        with chats.engine.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE chats ALTER created_at TYPE text")
    with chats.engine.begin() as connection:
        for n in range(25):
            values = {"n": n, "at": empty}
            connection.execute(sa.text("INSERT INTO chats VALUES (:n, :at, 'q', 'a', NULL, 1)"), values)
        for n in range(25, 30):
            values = {"n": n, "at": f"2026-11-10 10:00:{n}"}
            connection.execute(sa.text("INSERT INTO chats VALUES (:n, :at, 'q', 'a', NULL, 1)"), values)
    store = tmp_path / "store.db"
    document = call(chats.pull(store))
    assert (document["imported"], document["rejected"]) == (5, 25 if empty else 0)
    with closing(open_store(f"sqlite:///{store}")) as opened:
        first, last = opened.traces.summary().first, opened.traces.summary().last
        assert opened.pulls.list()[0].cursor["value"] == "2026-11-10 10:00:29"
    assert (first, last) == (
        datetime(2026, 11, 10, 10, 0, 25, tzinfo=UTC),
        datetime(2026, 11, 10, 10, 0, 29, tzinfo=UTC),
    )


@pytest.mark.postgres
def test_a_password_is_neither_stored_nor_shown(
    postgres_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    chats, store = Chats(postgres_url), tmp_path / "store.db"
    chats.log(0, 3)
    role = f"reader_{uuid.uuid4().hex[:8]}"
    with chats.engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE ROLE {role} LOGIN PASSWORD 'hunter-2'")
        connection.exec_driver_sql(f"GRANT SELECT ON chats TO {role}")
    secret = postgres_url.replace("//postgres:@", f"//{role}:hunter-2@")
    try:
        monkeypatch.setenv("TOUCHSTONE_PULL_URL", secret)
        words = chats.pull(store)
        del words[words.index("--url") : words.index("--url") + 2]
        assert main(words) == 0
        assert main([*words, "--query", "select nothing from chats where created_at > :since", "--restart"]) == 2
        assert main(["pull", "--list", "--store", f"sqlite:///{store}", "--json"]) == 0
        out = capsys.readouterr()
        with closing(open_store(f"sqlite:///{store}")) as opened:
            settings = opened.pulls.get("app").settings
            audit = repr(opened.audit.entries())
        assert role in settings["url"]
        assert "postgresql://" in out.err
        assert "psycopg" not in out.err
        assert "hunter-2" not in f"{out.out}{out.err}{settings}{audit}"
        assert (
            without_password("postgresql://u:p%40@h/d?sslkey=k&sslmode=require") == "postgresql://u@h/d?sslmode=require"
        )
    finally:
        with chats.engine.begin() as connection:
            connection.exec_driver_sql(f"DROP OWNED BY {role}")
            connection.exec_driver_sql(f"DROP ROLE {role}")
        chats.engine.dispose()


def test_a_step_that_takes_too_long_is_ended(chats: Chats) -> None:
    slow = {
        True: "select pg_sleep(5)::text as answer",
        False: "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) as answer from n",
    }
    query = ForeignQuery(chats.url, slow[chats.is_postgres], seconds=0.5)
    with pytest.raises(Exception, match=r"took longer than 0\.5 s"):
        list(query.rows(None, size=10))
    query.close()


@pytest.mark.timeout(400)
def test_many_rows_take_flat_memory_and_a_kill_loses_none(chats: Chats, tmp_path: Path) -> None:
    """The end takes little more memory than the first third, and a kill between two pages loses and doubles nothing.

    TOUCHSTONE_TEST_ROWS=100000 tries more rows.
    """
    store = tmp_path / "store.db"
    rows = int(os.environ.get("TOUCHSTONE_TEST_ROWS", "20000"))
    for first in range(0, rows, 10_000):
        chats.log(first, first + 10_000)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    program = (
        "import sys, os, signal, resource\n"
        "from calibrate.cli import main\n"
        "from db.exchange.pulls import Pulls\n"
        "before, pages, peaks = Pulls.advance, 0, []\n"
        "def advance(self, name, cursor, **more):\n"
        "    global pages\n"
        "    pages += 1\n"
        "    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
        "    if pages == int(sys.argv[1]):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    before(self, name, cursor, **more)\n"
        "Pulls.advance = advance\n"
        "code = main(sys.argv[2:])\n"
        "print(peaks[len(peaks) // 3], peaks[-1], file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    words = chats.pull(store, "--json")
    killed = subprocess.run([sys.executable, "-c", program, "5", *words], cwd=tmp_path, env=environment)
    assert killed.returncode == -signal.SIGKILL
    done = subprocess.run(
        [sys.executable, "-c", program, "0", *words], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["imported"] == rows - 5_000
    assert document["duplicates"] < 2_200  # the page under way, and the hour before
    third, last = map(int, done.stderr.split()[-2:])
    assert last - third < 30_000  # kB, while the rows are tens of MB
    assert len(ids(store)) == rows


def test_settings_of_a_query_that_fails_are_not_stored(tmp_path: Path) -> None:
    chats = Chats(f"sqlite:///{tmp_path / 'app.db'}")
    store = f"sqlite:///{tmp_path / 'store.db'}"
    with closing(open_store(store)):
        pass
    words = ["pull", "sql", "--name", "shop", "--url", chats.url, "--store", store]
    assert main([*words, "--query", QUERY, "--cursor", "nope"]) == 2
    with closing(open_store(store)) as opened:
        assert opened.pulls.get("shop") is None
