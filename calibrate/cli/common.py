"""What several verbs share: the store, the user and the clock, options that are read alike."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

import db
from calibrate import settings
from calibrate.errors import BadInput, Forbidden, TouchstoneError
from calibrate.report.sentences.traces.store import exposed
from calibrate.sanitize import is_plain
from calibrate.workflow.traces.external_scores import use_external
from db.audit import Actor, identify_by

TRUNCATED = "the file could not be read to its end: what came before the damage is in the store; import a whole copy"


def unwritten(path: str) -> Callable[[], str]:
    """What to say of a file whose writing is stopped: it takes its name only when it is whole."""
    before = "is as it was" if Path(path).exists() else "was not written"
    return lambda: f"{path} {before}; the same command writes all of it"


def check_labeller(name: str | None) -> None:
    """Refuse a labeller's name that acts on the terminal or page that shows it."""
    if name and not is_plain(name):
        raise BadInput(f"the labeller's name {name!r} holds a line end or a control character: leave it out")


def open_store(args: Namespace, *, create: bool = False) -> db.Store:
    """Open the store that --store or the environment names, in the name of `user`.

    A file that everybody can read is told of. The store's external detectors are put in place.
    """
    identify_by(_actor)
    store = db.open_store(args.store or settings.read().store, create=create)
    if store.file is not None and store.exposed is not None:
        print(f"touchstone: {exposed(store.file, store.exposed)}", file=sys.stderr)
    use_external(store)
    return store


def note_refusal(args: Namespace, error: Forbidden) -> None:
    """Put into the store's audit log that somebody was refused; what is said is the refusal, whatever becomes of it."""
    with suppress(TouchstoneError), closing(db.open_store(args.store or settings.read().store, create=False)) as store:
        store.audit.refused(str(error))


def user() -> str:
    """Name the person who labels, chooses and releases."""
    return settings.read().user


def _actor() -> Actor:
    given = settings.read()
    return Actor(given.user, "login" if given.is_login else "environment")


def now() -> datetime:
    return datetime.now(UTC)
