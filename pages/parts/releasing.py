"""What the Release page is made of: the points on offer, what a release would change, the history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import streamlit as st

from calibrate.stats import wording
from calibrate.steps import release as step
from calibrate.steps import tune
from calibrate.thresholds import Change, diff
from calibrate.types import Interval, Tier
from db import Store
from db.releases import Release, SavedPoint
from pages.parts import workbench
from pages.parts.text import plain, visible
from pages.parts.words import ago, day

TIERS: dict[Tier, str] = {"signal": "signal", "page": "page", "off": "off"}
ABOUT_TIERS = "page: wakes somebody. signal: is recorded and counted. off: stays in the file, is not asked."
WIDTHS = (2.6, 1.7, 1.5, 1.5, 1.1, 2, 1.2)
MOST_VERSIONS = 10


@dataclass(frozen=True)
class Chosen:
    """What is ticked, by detector with its tier."""

    tiers: Mapping[str, Tier]
    note: str
    out: Path | None


def choose_points(store: Store, saved: Mapping[str, SavedPoint], live: Mapping[str, Tier]) -> dict[str, Tier]:
    """A line for every saved point, ticked or not; the ticked ones with their tiers."""
    _line_of(["Detector", "Flags at", "Precision", "Recall", "Flags a day", "Measured on", "Tier"], head=True)
    chosen: dict[str, Tier] = {}
    for name, point in saved.items():
        tier = _row(store, point, live.get(name, "signal"))
        if tier is not None:
            chosen[name] = tier
    return chosen


def changes_of(store: Store, chosen: Chosen, newest: Release | None, now: datetime) -> list[Change]:
    """What a release of the chosen points would change against the live one."""
    version = newest.version + 1 if newest else 1
    file = step.candidate(
        store,
        detectors=list(chosen.tiers),
        tiers=chosen.tiers,
        note=chosen.note,
        by=workbench.user(),
        now=now,
        version=version,
        replaces=newest.version if newest else None,
    )
    return diff(step.read(newest) if newest else None, file)


def show_changes(changes: Sequence[Change], against: str) -> None:
    """One sentence a change; detectors together."""
    if not changes:
        st.caption(f"Nothing changes against {against}.")
        return
    first = against == "nothing"
    st.markdown("**What it will hold**" if first else f"**What changes against {against}**")
    st.markdown("\n".join(f"- {plain(said(change))}" for change in changes))


def said(change: Change) -> str:
    """The change as a sentence a reader of the page understands; field names of the file in words."""
    words = {
        "data.sample": "The sample", "data.design": "The sample's design", "data.n": "The number of labels",
        "data.positives": "The number of hallucinated labels", "data.models": "The models among the labels",
        "data.label_set_digest": "The label set", "baselines": "The baselines",
    }  # fmt: skip
    text = str(change)
    if change.field in words:
        return text.replace(change.field, words[change.field], 1)
    return text.replace("flag_rate", "flag rate").replace(" fpr ", " false-positive rate ")


def show_history(store: Store, now: datetime) -> None:
    """Every version, newest first: when, who, why, what it changed, and its exact bytes."""
    versions = store.releases.list()
    if not versions:
        return
    st.subheader("Released so far", anchor=False)
    shown = versions if st.session_state.get("release_all") else versions[:MOST_VERSIONS]
    for place, version in enumerate(shown):
        before = versions[place + 1] if place + 1 < len(versions) else None
        _version(version, before, now, live=place == 0)
    if len(shown) < len(versions):
        st.button(f"Show all {len(versions)}", on_click=lambda: st.session_state.update(release_all=True))


def download(version: Release, *, key: str, kind: str = "secondary") -> None:
    st.download_button(
        f"Download v{version.version}",
        version.document.encode(),
        file_name="thresholds.json" if key == "new" else f"thresholds-v{version.version}.json",
        mime="application/json",
        icon=":material/download:",
        on_click="ignore",
        key=f"download_{key}_{version.version}",
        type=kind,  # type: ignore[arg-type]
    )


def show_reader(names: Sequence[str]) -> None:
    """How a production process uses the file, with this release's own detectors."""
    scores = ", ".join(f'"{name}": {"0.41" if place == 0 else "None"}' for place, name in enumerate(names[:2]))
    with st.expander("How a runtime reads it"):
        st.code(
            "from calibrate.runtime import decide, load\n\n"
            'thresholds = load("thresholds.json")        # refuses a changed or unknown file\n'
            f"decision = decide(thresholds, {{{scores}}})  # None: could not score\n"
            "decision.verdict, decision.tier, decision.reasons",
            language="python",
        )
        st.caption("It imports no pandas, torch, Streamlit or database, and decides in microseconds.")


def _row(store: Store, saved: SavedPoint, tier: Tier) -> Tier | None:
    point, about = saved.point, saved.data
    with st.container(key=f"release-row-{saved.detector}"):
        places = st.columns(WIDTHS, vertical_alignment="center")
        feasible = bool(point["feasible"])
        ticked = places[0].checkbox(
            f"**{plain(saved.detector)}**", value=feasible, disabled=not feasible, key=f"release_tick_{saved.id}"
        )
        places[1].markdown(f"{_limit(point)}  \n:gray[:small[{plain(_policy(str(point['policy'])))}]]")
        for place, name in zip(places[2:4], ("precision", "recall"), strict=True):
            place.markdown(_figure(Interval(**point[name])))
        places[4].markdown(_flags_a_day(store, point, about["sample"]))
        sample = plain(about["sample"] or "all labels", 40)
        places[5].markdown(
            f"{sample}, {about['n']:,} labels  \n:gray[:small[{plain(saved.chosen_by, 30)}, {day(saved.chosen_at)}]]"
        )
        if not feasible:
            places[6].markdown(":gray[:small[cannot be released]]")
            st.caption(f":material/block: {plain(point['why'])}. Choose another policy, or save the nearest by hand.")
            return None
        chosen: Any = places[6].selectbox(
            f"Tier of {saved.detector}",
            list(TIERS),
            index=list(TIERS).index(tier),
            key=f"release_tier_{saved.detector}",
            label_visibility="collapsed",
            disabled=not ticked,
        )
        return chosen if ticked else None


def _line_of(words: Sequence[str], *, head: bool) -> None:
    for place, word in zip(st.columns(WIDTHS), words, strict=True):
        place.caption(word, help=ABOUT_TIERS if word == "Tier" else None)


def _limit(point: Mapping[str, Any]) -> str:
    return f"**{'≥' if point['flag_when'] == 'above' else '≤'} {point['threshold']:.4g}**"


def _policy(text: str) -> str:
    """`precision>=0.7` as people say it."""
    if text.startswith("precision>="):
        return f"precision at least {float(text.removeprefix('precision>=')):.0%}"
    return "set by hand" if text.startswith("manual") else text


def _figure(figure: Interval) -> str:
    if figure.value is None:
        return "unknown"
    return f"**{wording.percent(figure.value)}**  \n:gray[:small[{wording.interval(figure)}]]"


def _flags_a_day(store: Store, point: Mapping[str, Any], sample: str | None) -> str:
    drawn = store.samples.get(sample) if sample else None
    per_day = tune.traffic_per_day(store, drawn)
    rate = point["flag_rate"]["value"]
    if per_day is None or rate is None:
        return "unknown"
    return f"**{rate * per_day:,.1f}**" if rate * per_day < 10 else f"**{rate * per_day:,.0f}**"


def _version(version: Release, before: Release | None, now: datetime, *, live: bool) -> None:
    with st.container(border=True, key=f"release-version-{version.version}"):
        left, right = st.columns([5, 1.4], vertical_alignment="center")
        with left:
            badge = " :gray-badge[live]" if live else ""
            st.markdown(
                f"**v{version.version}**{badge} &ensp; {day(version.released_at)} ({ago(version.released_at, now)}) "
                f"by {plain(version.released_by, 60)}"
            )
            if version.note:
                st.text(visible(version.note, 500))
        with right:
            download(version, key="history")
        with st.expander("What changed" if before else "What it holds"):
            for sentence in _sentences(version.sha256, before.sha256 if before else None, version, before):
                st.markdown(f"- {plain(sentence)}")
            st.caption(f"sha256 {version.sha256}")


@st.cache_data(max_entries=200, show_spinner=False)
def _sentences(sha256: str, before_sha256: str | None, _version: Release, _before: Release | None) -> list[str]:
    changes = diff(step.read(_before) if _before else None, step.read(_version))
    return [said(change) for change in changes] or ["Nothing but the note."]
