"""Works on the store as a whole: backups of it, a backup put back, an archive written and read."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path

from calibrate.cli.common import now
from calibrate.errors import BadInput
from calibrate.workflow.upkeep.moving import export_all, import_all
from calibrate.workflow.upkeep.purge import choose, purge
from db import open_store
from db.upkeep.backup import back_up, restore
from tests.db.make import NOW
from tests.faults.killing import Say
from tests.faults.subjects.base import STORE, Found, Rows, Work, ask, check_sound, content, url_of
from tests.faults.subjects.bringing_in import fill


class Backup(Work):
    """Four backups, one after the other. A backup is there whole or not at all."""

    name = "backup"
    share = 0.6
    size = 2_000

    def prepare(self, folder: Path) -> None:
        with closing(open_store(url_of(folder))) as store:
            fill(store, self.size, labelled=self.size // 10)

    def work(self, folder: Path, say: Say) -> None:
        for number in range(4):
            backup = folder / f"backup-{number}.db"
            if not backup.exists():
                back_up(url_of(folder), backup)
            say(str(number))

    def check(self, folder: Path, said: Sequence[str]) -> Found:
        found = Found(lost=sum(not (folder / f"backup-{number}.db").exists() for number in said))
        store = content(folder / STORE)
        for backup in folder.glob("backup-*.db"):
            found += check_sound(backup)
            found.lost += content(backup) != store
        return found

    def result(self, folder: Path) -> Rows:
        rows = content(folder / STORE)
        for backup in folder.glob("backup-*.db"):
            rows.update((backup.name, *row) for row in content(backup))
        return rows


class Restore(Work):
    """A backup that takes the store's place. At every moment there is a whole store; the old one stays beside it."""

    name = "restore"
    share = 0.6
    size = 1_000

    def prepare(self, folder: Path) -> None:
        with closing(open_store(url_of(folder))) as store:
            fill(store, self.size)
        back_up(url_of(folder), folder / "backup.db")
        with closing(open_store(url_of(folder))) as store:
            fill(store, 2 * self.size, labelled=self.size // 10)
        shutil.copy(folder / STORE, folder / "old.db")

    def work(self, folder: Path, say: Say) -> None:
        if content(folder / STORE) != content(folder / "backup.db"):
            restore(url_of(folder), folder / "backup.db", replace=True, now=now())
        say("restored")
        if not (folder / "after.db").exists():
            back_up(url_of(folder), folder / "after.db")

    def check(self, folder: Path, said: Sequence[str]) -> Found:
        found = Found()
        store, old, new = (content(folder / name) for name in (STORE, "old.db", "backup.db"))
        if store not in (old, new):
            found.problems.append("the store is neither the old one nor the backup")
        found.lost += "restored" in said and store != new
        if store == new:
            kept = list(folder.glob(f"{STORE}.before-*[0-9]Z"))
            found.lost += not any(content(path) == old for path in kept)
        return found


class ArchiveOut(Work):
    """`export --all`, three times. An archive is there whole or not at all."""

    name = "export --all"
    share = 0.6
    size = 1_000

    def prepare(self, folder: Path) -> None:
        with closing(open_store(url_of(folder))) as store:
            fill(store, self.size, labelled=self.size // 10)

    def work(self, folder: Path, say: Say) -> None:
        with closing(open_store(url_of(folder))) as store:
            for number in range(3):
                if not (folder / f"{number}.zip").exists():
                    export_all(store, folder / f"{number}.zip", now=now())
                say(str(number))

    def check(self, folder: Path, said: Sequence[str]) -> Found:
        found = Found(lost=sum(not (folder / f"{number}.zip").exists() for number in said))
        for archive in folder.glob("*.zip"):
            try:
                import_all(f"sqlite:///{folder}/of-{archive.stem}.db", archive)
            except BadInput as error:
                found.problems.append(f"an archive is not whole: {error}")
        return found

    def result(self, folder: Path) -> Rows:
        rows = content(folder / STORE)
        for archive in sorted(folder.glob("*.zip")):
            path = folder / f"again-{archive.stem}.db"
            import_all(f"sqlite:///{path}", archive)
            rows.update((archive.name, *row) for row in content(path))
        return rows


class ArchiveIn(Work):
    """`import --all` of an archive into a store that is not there yet: all of it or nothing."""

    name = "import --all"
    size = 3_000

    def prepare(self, folder: Path) -> None:
        with closing(open_store(f"sqlite:///{folder}/source.db")) as store:
            fill(store, self.size, labelled=self.size // 10)
            export_all(store, folder / "archive.zip", now=now())

    def work(self, folder: Path, say: Say) -> None:
        if _is_empty(folder):
            import_all(url_of(folder), folder / "archive.zip")
        say("imported")

    def check(self, folder: Path, said: Sequence[str]) -> Found:
        if _is_empty(folder):
            return Found(lost=len(said))
        missing = content(folder / "source.db") - content(folder / STORE)
        return Found(problems=[f"{missing.total()} rows of the archive are missing"] if missing else [])

    def stores(self, folder: Path) -> list[Path]:
        return [path for path in super().stores(folder) if path.exists() and path.stat().st_size]


class Purge(Work):
    """Texts of ever younger traces, removed in three steps. After a step that is done, no byte of them is left, and
    every trace and verdict is."""

    name = "purge"
    share = 0.6
    size = 1_000

    def prepare(self, folder: Path) -> None:
        with closing(open_store(url_of(folder))) as store:
            fill(store, self.size, labelled=self.size)

    def work(self, folder: Path, say: Say) -> None:
        os.environ["TOUCHSTONE_CACHE"] = str(folder / "cache")  # a purge empties it
        with closing(open_store(url_of(folder))) as store:
            for number in (750, 500, 250):  # `t750` is older than `t250`
                chosen = choose(store, before=NOW - timedelta(minutes=number))
                if purge(store, chosen, by="mara", now=now()).compacted is not False:
                    say(str(number))

    def check(self, folder: Path, said: Sequence[str]) -> Found:
        left = b"".join(path.read_bytes() for path in folder.glob(f"{STORE}*"))
        purged = range(min(map(int, said), default=self.size) + 1, self.size)
        found = Found(problems=[f"question {n} is still there" for n in purged if b"question %d?" % n in left][:3])
        for table in ("traces", "labels"):
            found.lost += self.size - ask(folder / STORE, f"SELECT count(*) FROM {table}")[0][0]
        return found

    def result(self, folder: Path) -> Rows:
        # Each attempt has a row of its own among the purges, and an entry in the audit log.
        return content(folder / STORE, ignoring=frozenset({"purges", "audit"}))


def _is_empty(folder: Path) -> bool:
    if not (folder / STORE).exists():
        return True
    with closing(open_store(url_of(folder))) as store:
        return store.decisions.newest_trace() == 0
