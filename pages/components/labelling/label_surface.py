"""The labelling surface on a page: one key a verdict, the next trace at once, whatever the network does.

The browser fetches traces and sends answers itself (pages/components/labelling/routes.py); the page only says whose
work on which sample it is.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import streamlit as st

from calibrate.types import Sample
from db import Store
from pages import shell
from pages.components.labelling import routes, turns
from pages.shell import requests

# Streamlit takes a script as text, which can import nothing relative to itself: it fetches the modules by address.
_MOUNT = """
const mounted = new WeakMap()
export default function ({ data, parentElement, setTriggerValue }) {
  const place = parentElement.querySelector(".touchstone-labelling")
  const key = JSON.stringify(data)
  const before = mounted.get(place)
  if (before?.key === key) return before.leave
  before?.leave()
  let leave = null
  let left = false
  const entry = { key, leave: () => { left = true; leave?.(); mounted.delete(place) } }
  mounted.set(place, entry)
  import(new URL(data.script, document.baseURI)).then(({ mount }) => {
    if (!left) leave = mount(place, { ...data, go: (page) => setTriggerValue("go", page) })
  })
  return entry.leave
}
"""
_surface = st.components.v2.component(
    "touchstone_label_surface",
    html='<div class="touchstone-labelling"></div>',
    css=routes.scripts()["surface.css"].decode(),
    js=_MOUNT,
    isolate_styles=False,
)


@dataclass(frozen=True, slots=True)
class Disputes:
    """What several people labelled differently, in a sample or anywhere; with `chosen`, these traces instead, whose
    labels somebody should look at again."""

    sample: Sample | None
    chosen: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Rechecked:
    """The flagged traces that a recheck has drawn."""

    sample: Sample


@dataclass(frozen=True, slots=True)
class Chosen:
    """A few traces by their keys, outside any sample: their labels stand for no traffic.

    `since` is the key of the person's newest label on them, 0 for none: labels up to it may be changed.
    """

    keys: tuple[int, ...]
    since: int = 0


Request = Sample | Disputes | Rechecked | Chosen


def show(store: Store, work: Request, *, gap_first: bool = False) -> str | None:
    """Show the surface for this work; gives the key of a page that the person wants to go to, "over" where the work
    has ended."""
    person = shell.person()
    kind, title, request = _request(work)
    result = _surface(
        key=f"label-surface-{kind}",
        data={
            "script": requests.address(f"labelling/surface/{routes.digest()}/main.js"),
            "base": requests.address(routes.folder(kind)),
            "scope": _scope(store, kind, request),
            "kind": kind,
            "asked": {**request, "gap_first": gap_first},
            "title": title[:60],
            "labeller": person.name,
            "typed": str(st.session_state.get("user") or "") if shell.may_type_a_name() else "",
            "guide": turns.guide(store),
            "may_detect": shell.may_open("detect"),
        },
        on_go_change=lambda: None,
    )
    page = result.go
    return page if isinstance(page, str) else None


def _scope(store: Store, kind: str, request: dict[str, Any]) -> str:
    """What the browser keeps answers under until they are sent. Every choice of disputes is of one scope, as the next
    visit chooses others."""
    lasting = sorted((name, value) for name, value in request.items() if kind != "disputes" or name != "chosen")
    return hashlib.sha256(f"{store.name} {kind} {lasting}".encode()).hexdigest()[:16]


def _request(work: Request) -> tuple[str, str, dict[str, Any]]:
    """The kind of work (works.py), its title, and what the browser asks with."""
    match work:
        case Disputes(sample, chosen):
            title = "Second look" if chosen else "Disputes"
            return "disputes", title, {"sample": sample.name if sample else None, "chosen": list(chosen)}
        case Rechecked(sample):
            return "recheck", sample.name, {"sample": sample.name}
        case Chosen(keys, since):
            return "traces", "Label now", {"chosen": list(keys), "since": since}
        case Sample():
            return "sample", work.name, {"sample": work.name}
