"""The team's own prompts, templates, lists and prices: the text in use, its history, and saving another version."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from calibrate import registry
from calibrate.backends import files
from calibrate.backends.chat import price, prompts
from calibrate.backends.chat.guided import keys_of
from calibrate.backends.text import refusals
from calibrate.detectors.shared import templates
from calibrate.errors import BadInput
from calibrate.workflow.detection.detectors import prompt_of
from calibrate.workflow.detection.team_workspace import workspace_of
from calibrate.workspace import using
from db import Store
from db.team import TeamFile

LONGEST = 200_000  # characters


@dataclass(frozen=True)
class File:
    """A file with the text in use, the version under which scores are stored, and its history, newest first.

    `ours` is True for the text that comes with Touchstone. `used_by` names detectors; empty for what concerns all.
    """

    name: str
    text: str
    version: str
    ours: bool
    history: Sequence[TeamFile]
    used_by: Sequence[str]


def names() -> tuple[str, ...]:
    """Every file there is, sorted."""
    return files.names()


def shared() -> list[str]:
    """The files that are no single detector's."""
    prompts_of = {prompt_of(registry.make(name)) for name in registry.names()}
    return [name for name in files.names() if name not in prompts_of]


def get(store: Store, name: str) -> File:
    """Return a file. Raises BadInput for an unknown name, with the names that exist."""
    packaged = files.packaged(name)
    history = store.files.history(name)
    saved = history[0].text if history else None
    text = packaged if saved is None else saved
    return File(name, text, version_of(text), saved is None, history, _find_users(name))


def version_of(text: str) -> str:
    """Compute a text's version as `calibrate.backends.files.version` does for the text in use."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def save(store: Store, name: str, text: str, *, reason: str = "", by: str, now: datetime) -> bool:
    """Save the text as the team's version. Returns False if it is in use already. The shipped text resets the file.
    `reason` is kept with the version.

    Raises BadInput, with what is wrong, for a text that cannot be used.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    check(store, name, text)
    if text == get(store, name).text:
        return False
    if keys := keys_of(text):  # cases that stand in it leave calibration, whoever pasted them
        guide = store.guides.newest()
        version = guide.version if guide else 0
        quoted = dict.fromkeys(keys, True)
        store.prompt_examples.save(name, version_of(text), quoted, guide=version, by=by, now=now)
    own_text = None if text == files.packaged(name) else text
    store.files.save(name, own_text, reason=reason.strip() or None, by=by, now=now)
    return True


def reset(store: Store, name: str, *, by: str, now: datetime) -> bool:
    """Use the shipped text again. Returns False if it is in use already."""
    if get(store, name).ours:
        return False
    store.files.save(name, None, by=by, now=now)
    return True


def check(store: Store, name: str, text: str) -> None:
    """Check that a text fits the file.

    Raises BadInput for a prompt without a placeholder, a price that is not a number, or an unknown section.
    """
    files.packaged(name)
    if len(text) > LONGEST:
        raise BadInput(f"{name} would have {len(text):,} characters; at most {LONGEST:,} are kept")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadInput(f"{name}: character {error.start + 1} is a lone surrogate; take it out") from None
    if "\0" in text:
        raise BadInput(f"{name}: character {text.index(chr(0)) + 1} is NUL; take it out")
    if name == price.FILE:
        price.table(text)
        return
    if name.startswith("prompts/"):
        if why := prompts.problem(name, text):
            raise BadInput(why)
        return
    if name.startswith("templates/"):
        if why := templates.problem(name, text):
            raise BadInput(why)
        return
    place = workspace_of(store)
    with using(replace(place, files={**place.files, name: text})):
        refusals.find_refusal("?")  # reads the lists
        lines = [line for raw in text.splitlines() if (line := raw.partition("#")[0].strip())]
        if lines[:1] != ["[declines]"] or len(lines) < 2:
            raise BadInput(f"{name} has to begin with a line [declines] and a phrase below it, or nothing is a refusal")


def _find_users(name: str) -> list[str]:
    if name.startswith("templates/"):
        return ["judge_template"]
    if not name.startswith("prompts/"):
        return []
    return [detector for detector in registry.names() if prompt_of(registry.make(detector)) == name]
