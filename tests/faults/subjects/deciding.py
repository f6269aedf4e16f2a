"""Works that score and decide: a run of detectors, its worker, releases with their file and git, watching."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from calibrate.cli.common import now
from calibrate.engines import background
from calibrate.errors import TouchstoneError
from calibrate.runtime import load
from calibrate.settings import ReleaseSettings
from calibrate.types import Trace, TraceFilter
from calibrate.workflow.detection import detect
from calibrate.workflow.releasing import release as releasing
from calibrate.workflow.releasing.announce import announce, commit
from calibrate.workflow.watching import telling
from calibrate.workflow.watching.telling import Teller
from calibrate.workflow.watching.watch import Watcher
from db import open_store
from db.releases import ReleaseRequest
from tests.faults.killing import BEGUN, PROCESS, Say
from tests.faults.subjects.base import STORE, Found, Rows, Work, ask, content, url_of
from tests.faults.subjects.bringing_in import fill
from tests.faults.subjects.receiving import RECEIVED, address
from tests.workflow import making
from tests.workflow.watching.test_watch import add, publish

DETECTORS = ("token_overlap", "word_overlap", "citation_validity")


class Detect(Work):
    """`detect`: three detectors over 1,500 traces, in this process."""

    name = "detect"
    size = 1_500

    def prepare(self, folder: Path) -> None:
        with closing(open_store(url_of(folder))) as store:
            fill(store, self.size)
            detect.queue(store, DETECTORS, {"all": True})

    def work(self, folder: Path, say: Say) -> None:
        with closing(open_store(url_of(folder))) as store:
            detect.free_dead(store)
            if store.runs.recent(1)[0].status in ("failed", "stopped"):
                detect.queue(store, DETECTORS, {"all": True})  # what a person does who is told so
            run = detect.work(store, on_progress=lambda done, total: say(str(done)))
            if run is not None and run.status != "done":
                raise TouchstoneError(f"the run {run.status}: {run.error}")
            say("done")

    def check(self, folder: Path, said: Sequence[str]) -> Found:
        ((scores,),) = ask(folder / STORE, "SELECT count(*) FROM scores")
        found = Found(lost=max(0, max((int(line) for line in said if line.isdigit()), default=0) - scores))
        ((status,),) = ask(folder / STORE, "SELECT status FROM runs ORDER BY id DESC LIMIT 1")
        if "done" in said and status != "done":
            found.problems.append(f"a run that was done is {status}")
        return found

    def result(self, folder: Path) -> Rows:
        rows = content(folder / STORE, ignoring=frozenset({"runs"}))  # after a failure there is another run
        rows["run", *ask(folder / STORE, "SELECT status, total, done FROM runs ORDER BY id DESC LIMIT 1")[0]] += 1
        return rows


class Worker(Detect):
    """The worker process that the Detect page starts; what the page reads of its progress counts as acknowledged."""

    name = "detect, its worker"
    share = 0.25
    slow_start = True

    def work(self, folder: Path, say: Say) -> None:
        os.environ["TMPDIR"] = str(folder)
        with closing(open_store(url_of(folder))) as store:
            detect.free_dead(store)
            if store.runs.get(1).status == "queued":
                say(f"{PROCESS}{background.start_worker(store.url, 1)}")
            while (run := store.runs.get(1)).status == "queued":
                time.sleep(0.01)
            say(BEGUN)
            while (run := store.runs.get(1)).status == "running":
                say(str(run.done))
                time.sleep(0.02)
            say(run.status)


class Releasing(Work):
    """Eight releases, one after the other: to the store, to a file and to a git repository."""

    name = "release"
    size = 8

    def prepare(self, folder: Path) -> None:
        with closing(open_store(url_of(folder))) as store:
            making.fill(store, *making.draw())
            making.save(store, "precision>=0.7")
        git(folder, "init", "--quiet", "--initial-branch=main", "repository")

    def work(self, folder: Path, say: Say) -> None:
        settings = ReleaseSettings(git=str(folder / "repository"))
        out = folder / "thresholds.json"
        with closing(open_store(url_of(folder))) as store:
            while (made := len(store.releases.list())) < self.size:
                tiers = {making.DETECTOR: ("page", "signal")[made % 2]}
                row = releasing.release(store, ReleaseRequest(tiers=tiers, by="ann"), now=now(), out=out)
                say(f"made {row.version}")
                for failure in announce(row, settings, store):
                    raise TouchstoneError(f"version {failure.version} is not in git: {failure.reason}")
                say(f"committed {row.version}")
            # What `release --again` does: whoever saw no answer asks for the newest once more.
            row = releasing.again(store, self.size, out)
            for failure in commit(row, settings, store):
                raise TouchstoneError(f"version {failure.version} is not in git: {failure.reason}")

    def check(self, folder: Path, said: Sequence[str]) -> Found:
        made, committed = (
            max((int(line.split()[1]) for line in said if line.startswith(word)), default=0)
            for word in ("made", "committed")
        )
        versions = [version for (version,) in ask(folder / STORE, "SELECT version FROM releases ORDER BY version")]
        found = Found(lost=len(set(range(1, made + 1)) - set(versions)))
        if versions != list(range(1, len(versions) + 1)):
            found.problems.append(f"the versions are {versions}")
        out = folder / "thresholds.json"
        live = load(out).version if out.exists() else 0
        found.lost += max(0, made - live)
        if live > len(versions):
            found.problems.append(f"the file holds version {live}, the store has {len(versions)}")
        in_git = committed_versions(folder / "repository")
        found.lost += len(set(range(1, committed + 1)) - set(in_git))
        found.doubled += len(in_git) - len(set(in_git))
        return found

    def mend(self, folder: Path) -> None:
        for lock in (folder / "repository" / ".git").rglob("*.lock"):
            if lock.name != "touchstone.lock":
                lock.unlink()

    def result(self, folder: Path) -> Rows:
        rows = content(folder / STORE, ignoring=frozenset({"releases.document", "releases.sha256"}))
        rows.update(("git", version) for version in committed_versions(folder / "repository"))
        rows["file", load(folder / "thresholds.json").version] += 1
        return rows


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True).stdout.strip()


def committed_versions(repository: Path) -> list[int]:
    """The version that the file holds in every commit, oldest first."""
    if subprocess.run(
        ["git", "-C", str(repository), "rev-parse", "-q", "--verify", "HEAD"], capture_output=True
    ).returncode:
        return []
    commits = git(repository, "log", "--reverse", "--format=%H").split()
    return [json.loads(git(repository, "show", f"{each}:thresholds.json"))["version"] for each in commits]


class Watching(Work):
    """`watch` over 400 new traces, with alerts to a webhook that listens: decisions, outbox, messages.

    An alert is told at least once. It is doubled if it was marked as told before the kill and is told again after it.
    """

    name = "watch"
    size = 400

    def prepare(self, folder: Path) -> None:
        with closing(open_store(url_of(folder))) as store:
            publish(store, 0.5, tier="page")
            add(store, range(self.size))

    def work(self, folder: Path, say: Say) -> None:
        telling.GROUP_SECONDS, telling.PER_MINUTE, telling.MOST = 0.05, 10**6, 10
        with closing(open_store(url_of(folder))) as store:
            teller = Teller(store, f"{address()}{folder}", now=now)
            try:

                def offer(trace: Trace, _: object) -> None:
                    say(trace.id)
                    teller.wake()

                look = Watcher(store, where=TraceFilter, now=now, offer=offer).look()
                if look.undecided:
                    raise TouchstoneError(f"{look.undecided} left for the next look: {dict(look.problems)}")
            finally:
                teller.close(60)

    def check(self, folder: Path, said: Sequence[str]) -> Found:
        decided = ask(folder / STORE, "SELECT t.trace_id FROM decisions d JOIN traces t ON t.id = d.trace_pk")
        found = Found(lost=len(set(said) - {name for (name,) in decided}))
        flagged = "SELECT count(*) FROM decisions d WHERE tier != 'off' AND NOT EXISTS"
        same = "(SELECT 1 FROM outbox o WHERE o.trace_pk = d.trace_pk AND o.version = d.version)"
        found.lost += ask(folder / STORE, f"{flagged} {same}")[0][0]
        marked = [name for (name,) in ask(folder / STORE, f"{TOLD} WHERE told_at IS NOT NULL")]
        posted = told(folder)
        found.lost += len(set(marked) - set(posted))
        (folder / "marked.json").write_text(json.dumps([marked, len(posted)]))
        return found

    def result(self, folder: Path) -> Rows:
        rows = content(folder / STORE, ignoring=frozenset({"outbox.attempts", "outbox.last_error"}))
        posted = told(folder)
        rows.update(("told", name) for name in set(posted))
        if (before := folder / "marked.json").exists():
            marked, place = json.loads(before.read_text())
            again = Counter(posted[place:])
            rows.update(("told again", name) for name in marked for _ in range(again[name]))
        return rows


TOLD = "SELECT t.trace_id FROM outbox o JOIN traces t ON t.id = o.trace_pk"


def told(folder: Path) -> list[str]:
    """The traces that the webhook was told of, in order, from what it wrote down before it answered."""
    received = folder / RECEIVED
    if not received.exists():
        return []
    texts = [json.loads(line)["text"] for line in received.read_text().splitlines()]
    return [name for text in texts for name in re.findall(r"• \w+ \w+ (\S+):", text)]
