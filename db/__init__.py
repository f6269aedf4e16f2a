"""The store: traces, labels, samples, scores, runs, releases, in SQLite or PostgreSQL."""

from __future__ import annotations

from pathlib import Path

from calibrate.urls import redact
from db import revision
from db.attempts import Certifications, Rechecks
from db.audit import Audit
from db.coverage import Coverage
from db.decisions import Decisions, Outbox
from db.engine import connect, file_of, reading
from db.exchange.annotations import Annotations
from db.exchange.external import External
from db.exchange.logged import Logged
from db.exchange.origins import Origins
from db.exchange.pulls import Pulls
from db.labelling.answers import Answers
from db.labelling.assignments import Assignments
from db.labelling.flags import Flags
from db.labelling.guides import Guides
from db.labelling.prompt_examples import PromptExamples
from db.labelling.repeats import Repeats
from db.labelling.times import Times
from db.labels import Labels
from db.listing.lines import Lines
from db.points import Ensembles, Points
from db.pools import Pools
from db.receiving.late import Late
from db.receiving.received import Received
from db.releases import Proposals, Releases
from db.revision import Group, Revision
from db.runs import Runs
from db.samples import Samples
from db.scores import Scores
from db.team import Baselines, Drawn, Files, Replies
from db.traces import Traces
from db.upkeep.purges import Purges


class Store:
    """An open store. Each part reads and writes one kind of thing."""

    def __init__(self, url: str, *, create: bool = True) -> None:
        self.url = url
        self.engine = connect(url, create=create)
        self.traces = Traces(self.engine)
        self.lines = Lines(self.engine)
        self.received = Received(self.engine)
        self.late = Late(self.engine)
        self.labels = Labels(self.engine)
        self.answers = Answers(self.engine)
        self.guides = Guides(self.engine)
        self.assignments = Assignments(self.engine)
        self.flags = Flags(self.engine)
        self.times = Times(self.engine)
        self.repeats = Repeats(self.engine)
        self.prompt_examples = PromptExamples(self.engine)
        self.samples = Samples(self.engine)
        self.scores = Scores(self.engine)
        self.external = External(self.engine)
        self.coverage = Coverage(self.engine)
        self.pools = Pools(self.engine)
        self.logged = Logged(self.engine)
        self.runs = Runs(self.engine)
        self.points = Points(self.engine)
        self.certifications = Certifications(self.engine)
        self.ensembles = Ensembles(self.engine)
        self.releases = Releases(self.engine)
        self.proposals = Proposals(self.engine)
        self.decisions = Decisions(self.engine)
        self.outbox = Outbox(self.engine)
        self.rechecks = Rechecks(self.engine)
        self.files = Files(self.engine)
        self.baselines = Baselines(self.engine)
        self.replies = Replies(self.engine)
        self.drawn = Drawn(self.engine)
        self.audit = Audit(self.engine)
        self.purges = Purges(self.engine)
        self.pulls = Pulls(self.engine)
        self.origins = Origins(self.engine)
        self.annotations = Annotations(self.engine)

    @property
    def name(self) -> str:
        """The URL without its password."""
        return redact(self.url)

    @property
    def file(self) -> Path | None:
        """The file of an SQLite store; None for one in memory or on a server."""
        file = file_of(self.engine)
        return None if file is None else file.path

    @property
    def exposed(self) -> int | None:
        """The permissions of the store's file where every user of the machine can read it."""
        file = file_of(self.engine)
        return None if file is None or not file.mode & 0o004 else file.mode

    @property
    def read_only(self) -> bool:
        file = file_of(self.engine)
        return file is not None and file.read_only

    def revision(self, *groups: Group) -> Revision:
        """A key that changes with every write to these groups of tables, by any process. No groups means all."""
        with reading(self.engine) as connection:
            return revision.read(connection, groups)

    def close(self) -> None:
        self.engine.dispose()


def open_store(url: str, *, create: bool = True) -> Store:
    """Open a store, and create or migrate it as needed. Raises BadInput or StoreError."""
    return Store(url, create=create)


__all__ = ["Group", "Revision", "Store", "open_store"]
