"""Every released version: when, by whom, why, what it changed, its exact bytes, and the way back to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import streamlit as st

from calibrate.report.numbers import ago, day
from calibrate.report.sentences.releasing.release import known_bad_in
from calibrate.thresholds import diff
from calibrate.thresholds.model import ThresholdsFile
from calibrate.workflow.releasing import history
from calibrate.workflow.releasing.approval import APPROVED_BY
from db import Store
from db.releases import Release
from pages import shell
from pages.components.release_diff import lines_of
from pages.components.text import plain, visible

A_PAGE = 10


def show_history(store: Store, now: datetime, back: Callable[[Store, int, int], None]) -> None:
    """Newest first, some at a time. `back(store, version, live)` rolls back to a version."""
    total = store.releases.count()
    if not total:
        return
    st.header("Released so far", anchor=False)
    shown = st.session_state.get("release_shown", A_PAGE)
    versions = store.releases.list(limit=shown + 1)
    for place, version in enumerate(versions[:shown]):
        before = versions[place + 1] if place + 1 < len(versions) else None
        with st.container(border=True, key=f"release-version-{version.version}"):
            _version(store, version, before, now, live=versions[0], back=back)
    if total > shown:
        more = min(A_PAGE, total - shown)
        st.button(
            f"Show {more} older of {total - shown}",
            on_click=lambda: st.session_state.update(release_shown=shown + A_PAGE),
        )


def download(version: Release, *, key: str) -> None:
    """The exact bytes of a version."""
    st.download_button(
        f"Download v{version.version}",
        version.document.encode(),
        file_name=f"thresholds-v{version.version}.json",
        mime="application/json",
        icon=":material/download:",
        on_click="ignore",
        key=f"download_{key}_{version.version}",
    )


def snippet(file: ThresholdsFile, path: str) -> str:
    """The Python that decides by a release."""
    names = [name for name, entry in file.detectors.items() if entry.tier != "off"]
    scores = ", ".join(f"{name!r}: {value}" for name, value in zip(names, ("0.41", "None"), strict=False))
    lines = ["from calibrate.runtime import decide, load", ""]
    lines += [f"thresholds = load({path!r})  # refuses a changed or unknown file"]
    # Of everything that tells segments apart one of its segments, as an example.
    segments = {
        entry.segments.by: min(entry.segments.thresholds) for entry in file.detectors.values() if entry.segments
    }
    if segments:
        lines += ["decision = decide(", "    thresholds,", f"    {{{scores}}},  # None: could not score"]
        lines += [f"    segments={segments!r},  # of this answer; without it the common threshold decides", ")"]
    else:
        lines += [f"decision = decide(thresholds, {{{scores}}})  # None: could not score"]
    return "\n".join([*lines, "decision.verdict, decision.tier, decision.reasons"])


def show_reader(version: Release, path: str | None) -> None:
    """How a production process reads the live release: its file by path, or over HTTP. `path` is where it was written;
    without one it is the file that the page hands out."""
    file = history.read_release(version)
    st.header("How a runtime reads it", anchor=False)
    python, http = st.tabs(["Python", "HTTP"])
    with python:
        st.code(
            snippet(file, path or f"thresholds-v{version.version}.json"),
            language=None,  # the colours of code are too pale to read
        )
        if file.segmented_by:
            st.caption("A `Guard` reads the segments from the trace itself: `Guard(thresholds).check(trace)`.")
        if path is None:
            st.caption(
                f"Download v{version.version} first; `release --again {version.version} --out FILE` writes it too."
            )
    with http:
        st.code(
            "python -m calibrate serve --port 8502 &\n"
            "curl http://127.0.0.1:8502/thresholds/active.json           # always the live release\n"
            f"curl http://127.0.0.1:8502/thresholds/{version.version}.json",
            language=None,
        )
        st.caption("`load` takes the URL too, and looks again with `reload_every=30`.")


def _version(
    store: Store,
    version: Release,
    before: Release | None,
    now: datetime,
    *,
    live: Release,
    back: Callable[[Store, int, int], None],
) -> None:
    number = version.version
    facts = _facts(store, number, before.version if before else None, live.version)
    approved = f", approved by {plain(facts.approved_by, 60)}" if facts.approved_by else ""
    with st.container(horizontal=True, vertical_alignment="center"):
        badge = " :gray-badge[live]" if number == live.version else ""
        st.markdown(
            f"**v{number}**{badge} &ensp; {day(version.released_at)} ({ago(version.released_at, now)}) "
            f"by {plain(version.released_by, 60)}{approved}",
            width="stretch",
        )
        if not facts.equals_live:
            may = shell.has_role("calibrator")
            st.button(
                f"Roll back to v{number}",
                icon=":material/undo:",
                key=f"release_back_{number}",
                disabled=not may,
                help=(
                    f"Releases v{live.version + 1}, which decides as v{number} did, and offers its points again."
                    if may
                    else "Your roles do not allow it: a calibrator rolls back."
                ),
                on_click=back,
                args=(store, number, live.version),
            )
        download(version, key="history")
    if version.note:
        st.text(visible(version.note, 500))
    with st.expander("What changed" if before else "What it holds"):
        st.markdown("\n".join(f"- {line}" for line in facts.changes))
        st.caption(f"sha256 {version.sha256}")


@dataclass(frozen=True, slots=True)
class Facts:
    """What the document of a version says. One that decides as the live one does (`equals_live`) needs no way back."""

    approved_by: str | None
    equals_live: bool
    changes: tuple[str, ...]


@shell.cached_read(None, "releases", entries=500)
def _facts(store: Store, number: int, before: int | None, live: int) -> Facts:
    file = _file(store, number)
    lines = lines_of(diff(_file(store, before) if before else None, file)) or ["nothing but the note"]
    lines += [plain(words, 600) for words in known_bad_in(file)]
    return Facts(
        file.extra.get(APPROVED_BY),
        history.content(file) == history.content(_file(store, live)),
        tuple(lines),
    )


def _file(store: Store, number: int) -> ThresholdsFile:
    release = store.releases.get(number)
    assert release is not None  # releases are never deleted
    return history.read_release(release)
