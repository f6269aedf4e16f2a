"""The labelling surface on a page: one key a verdict, the next trace at once, whatever the network does.

The browser fetches traces and sends answers itself (pages/components/labelling/routes.py); the page only says whose
work on which sample it is.
"""

from __future__ import annotations

import hashlib

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


def show(store: Store, sample: Sample, *, gap_first: bool = False) -> str | None:
    """Show the surface; gives the key of a page that the person wants to go to."""
    person = shell.person()
    result = _surface(
        key="label-surface",
        data={
            "script": requests.address(f"labelling/surface/{routes.digest()}/main.js"),
            "base": requests.address("labelling/"),
            "scope": hashlib.sha256(f"{store.name} {sample.id}".encode()).hexdigest()[:16],
            "sample": sample.name,
            "title": sample.name[:60],
            "labeller": person.name,
            "typed": str(st.session_state.get("user") or "") if shell.may_type_a_name() else "",
            "gap_first": gap_first,
            "guide": turns.guide(store),
            "may_detect": shell.may_open("detect"),
        },
        on_go_change=lambda: None,
    )
    page = result.go
    return page if isinstance(page, str) else None
