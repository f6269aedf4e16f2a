"""What the Release page is made of: the points on offer, what a release would change, the history."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import streamlit as st

from calibrate.errors import BadInput, TouchstoneError
from calibrate.stats import wording
from calibrate.stats.policy_text import parse
from calibrate.steps import release as step
from calibrate.steps import tune
from calibrate.steps.attempts import overturned
from calibrate.thresholds import Change, diff
from calibrate.thresholds.changes import guaranteed
from calibrate.types import Guarantee, Interval, Tier
from db import Store
from db.releases import Release, SavedPoint
from pages.parts import workbench
from pages.parts.text import label, plain, visible
from pages.parts.words import ago, count, day

TIERS: tuple[Tier, ...] = ("signal", "page", "off")
ABOUT_TIERS = "page: wakes somebody. signal: is recorded and counted. off: stays in the file, is not asked."
WIDTHS = (2.6, 1.7, 1.5, 1.5, 1.1, 2, 1.2)
MOST_VERSIONS = 10
STYLE = """<style>
[class*="st-key-release-row-"] {border-top: 1px solid rgba(138,143,152,.25); padding-top: .6rem}
</style>"""


@dataclass(frozen=True)
class Chosen:
    """What is ticked, by detector with its tier, and the saved ensembles that come in too."""

    tiers: Mapping[str, Tier]
    ensembles: tuple[str, ...]
    note: str
    out: Path | None


def choose_points(store: Store, saved: Mapping[str, SavedPoint], live: Mapping[str, Tier]) -> dict[str, Tier]:
    """A line for every saved point, ticked or not; the ticked ones with their tiers."""
    st.html(STYLE)
    _heads(["Detector", "Flags at", "Precision", "Recall", "Flags a day", "Measured on", "Tier"])
    chosen: dict[str, Tier] = {}
    for name, point in saved.items():
        tier = _row(store, point, live.get(name, "signal"))
        if tier is not None:
            chosen[name] = tier
    return chosen


def choose_ensembles(store: Store, live: Collection[str]) -> None:
    """The saved ensembles, those in the live release ticked. `chosen` reads what was taken."""
    names = list(store.ensembles.latest())
    if names:
        st.multiselect(
            "Ensembles",
            names,
            default=[name for name in names if name in live],
            format_func=lambda name: visible(name, 60),
            placeholder="none",
            key="release_ensembles",
            help="Their detectors must be ticked, as they were when the ensemble was saved.",
        )


def chosen(store: Store, seen: Collection[int]) -> Chosen:
    """What the widgets of the form say at this moment. `seen` are the saved points that the page shows.

    Raises BadInput when somebody has saved another point since: nobody has looked at it here.
    """
    saved, state = store.points.latest(), st.session_state
    if {point.id for point in saved.values()} != set(seen):
        raise BadInput("another operating point was saved in the meantime: look at it, then release")
    ticked = [name for name, point in saved.items() if state.get(f"release_tick_{point.id}")]
    tiers = {name: state.get(f"release_tier_{name}", TIERS[0]) for name in ticked}
    note, out = (str(state.get(key) or "").strip() for key in ("release_note", "release_out"))
    ensembles = tuple(state.get("release_ensembles") or ())
    return Chosen(tiers, ensembles, note, Path(out).expanduser() if out else None)


def changes_of(store: Store, chosen: Chosen, newest: Release | None, now: datetime) -> list[Change]:
    """What a release of the chosen points would change against the live one."""
    version = newest.version + 1 if newest else 1
    file = step.candidate(
        store,
        detectors=list(chosen.tiers),
        tiers=chosen.tiers,
        ensembles=chosen.ensembles,
        note=chosen.note,
        by=workbench.user(),
        now=now,
        version=version,
        replaces=newest.version if newest else None,
        before=step.read(newest) if newest else None,
    )
    return diff(step.read(newest) if newest else None, file)


def show_changes(changes: Sequence[Change], against: str | None) -> None:
    """What changes against the version named, or what the first release will hold."""
    if not changes:
        st.caption(f"Nothing changes against {against}.")
        return
    st.markdown(f"**What changes against {against}**" if against else "**What it will hold**")
    st.markdown("\n".join(f"- {line}" for line in lines_of(changes)))


def lines_of(changes: Sequence[Change]) -> list[str]:
    """The changes in Markdown: one line about the labels, one a detector, its measured figures small."""
    about: dict[str | None, list[Change]] = {}
    for change in changes:
        about.setdefault(change.detector, []).append(change)
    data = about.pop(None, [])
    lines = [line for name, some in about.items() for line in _detector_lines(str(name), some)]
    if data:
        lines.append("Labels: " + ", ".join(_moved(_DATA.get(c.field, c.field), _said(c)) for c in data))
    return lines


_DATA = {
    "data.sample": "sample", "data.design": "design", "data.samples": "samples", "data.n": "number",
    "data.positives": "hallucinated",
    "data.models": "models", "data.label_set_digest": "digest", "baselines": "baselines",
}  # fmt: skip
_FIGURES = {
    "precision": "precision", "recall": "recall", "fpr": "false-positive rate", "flag_rate": "flag rate",
    "coverage": "coverage",
}  # fmt: skip


def _detector_lines(name: str, changes: Sequence[Change]) -> Iterator[str]:
    if changes[0].field == "detector":
        new = changes[0].before is None
        word = "comes in" if new else "leaves"
        yield f"**{plain(name)}** {word}: {plain(str(changes[0].after if new else changes[0].before))}"
        return
    rules = [_moved(c.field.replace("params.", ""), _said(c)) for c in changes if c.field not in _FIGURES]
    figures = [_moved(_FIGURES[c.field], _said(c)) for c in changes if c.field in _FIGURES]
    small = f"  \n:gray[:small[{', '.join(figures)}]]" if figures else ""
    yield f"**{plain(name)}**: {', '.join(rules) or 'same threshold, measured anew'}{small}"


def _moved(what: str, values: tuple[str, str]) -> str:
    return f"{plain(what.replace('_', ' '))} {plain(values[0])} → {plain(values[1])}"


def _said(change: Change) -> tuple[str, str]:
    """The two values as people say them."""
    before, after = (_value(value, change.field) for value in (change.before, change.after))
    return before, after


def _value(value: Any, field: str) -> str:
    if isinstance(value, Interval):
        return "unknown" if value.value is None else wording.percent(value.value)
    if isinstance(value, Guarantee):
        return guaranteed(value)
    if field == "policy":
        return _policy(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None or value == "" else visible(str(value), 80)


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
    """One saved point; its tier when it is ticked. One that meets no policy cannot be ticked and says why."""
    point = saved.point
    feasible = bool(point["feasible"])
    with st.container(key=f"release-row-{saved.detector}"):
        tick, *places, last = st.columns(WIDTHS, vertical_alignment="center")
        ticked = tick.checkbox(
            label(saved.detector), value=feasible, disabled=not feasible, key=f"release_tick_{saved.id}"
        )
        for place, text in zip(places, _cells(store, saved), strict=True):
            place.markdown(text)
        if not feasible:
            last.markdown(":gray[:small[cannot be released]]")
            why = str(point["why"] or "no threshold meets the policy")
            st.caption(
                f":material/block: {plain(why[:1].upper() + why[1:])}. Save another choice for it on the Tune page."
            )
            return None
        chosen: Tier = last.selectbox(
            f"Tier of {saved.detector}",
            TIERS,
            index=TIERS.index(tier),
            key=f"release_tier_{saved.detector}",
            label_visibility="collapsed",
            disabled=not ticked,
        )
        sure = step.guarantee_of(saved)
        if ticked and sure and (said := overturned(store, saved.detector, sure)):
            st.warning(plain(said), icon=":material/gavel:")
        if ticked and (said := step.caution(saved.detector, chosen, sure.strength if sure else "measured")):
            st.caption(f":material/warning: {plain(said.replace('`', ''))}.")
        return chosen if ticked else None


def _cells(store: Store, saved: SavedPoint) -> Iterator[str]:
    """What is known of a point, a cell each: its limit, precision, recall, flags a day, labels."""
    point, about = saved.point, saved.data
    yield f"{_limit(point)}  \n{_small(_policy(str(point['policy'])))}"
    yield _precision(point, step.guarantee_of(saved))
    yield _figure(Interval(**point["recall"]))
    yield _flags_a_day(store, point, about["sample"])
    labels = count(about["n"], "label")
    sure = step.guarantee_of(saved)
    proof = f" and {plain(sure.sample, 40)}" if sure and sure.sample and sure.sample != about["sample"] else ""
    sample = f"{plain(about['sample'], 40)}{proof}, {labels}" if about["sample"] else f"all {labels}"
    yield f"{sample}  \n{_small(f'{visible(saved.chosen_by, 30)}, {day(saved.chosen_at)}')}"


def _small(text: str) -> str:
    return f":gray[:small[{plain(text)}]]"


def _heads(words: Sequence[str]) -> None:
    for place, word in zip(st.columns(WIDTHS), words, strict=True):
        place.caption(word, help=ABOUT_TIERS if word == "Tier" else None)


def _limit(point: Mapping[str, Any]) -> str:
    return f"**{'≥' if point['flag_when'] == 'above' else '≤'} {point['threshold']:.4g}**"


def _policy(text: str) -> str:
    """As people say it, where this version knows it."""
    try:
        return wording.policy_in_words(parse(text))
    except TouchstoneError:
        return visible(text, 80)


def _figure(figure: Interval, strength: str = "") -> str:
    if figure.value is None:
        return "unknown"
    return f"**{wording.percent(figure.value)}**  \n{_small(wording.interval(figure) + strength)}"


def _precision(point: Mapping[str, Any], sure: Guarantee | None) -> str:
    """The figure, and how sure it is: with a guarantee what it guarantees, and from how many labels."""
    figure = Interval(**point["precision"])
    if sure is None:
        return _figure(figure, ", measured")
    known = f"{sure.strength}, {count(sure.labels, 'label')}"
    return f"**at least {100 * sure.target:.10g}%**  \n{_small(known)}"


def _flags_a_day(store: Store, point: Mapping[str, Any], sample: str | None) -> str:
    drawn = store.samples.get(sample) if sample else None
    per_day = tune.traffic_per_day(store, drawn)
    rate = point["flag_rate"]["value"]
    if per_day is None or rate is None:
        return "unknown"
    return f"**{rate * per_day:,.1f}**" if rate * per_day < 10 else f"**{rate * per_day:,.0f}**"


def _version(version: Release, before: Release | None, now: datetime, *, live: bool) -> None:
    with st.container(border=True, key=f"release-version-{version.version}"):
        with st.container(horizontal=True, vertical_alignment="center"):
            badge = " :gray-badge[live]" if live else ""
            st.markdown(
                f"**v{version.version}**{badge} &ensp; {day(version.released_at)} ({ago(version.released_at, now)}) "
                f"by {plain(version.released_by, 60)}",
                width="stretch",
            )
            download(version, key="history")
        if version.note:
            st.text(visible(version.note, 500))
        with st.expander("What changed" if before else "What it holds"):
            lines = _lines(version.sha256, before.sha256 if before else None, version, before)
            st.markdown("\n".join(f"- {line}" for line in lines))
            st.caption(f"sha256 {version.sha256}")


@st.cache_data(max_entries=200, show_spinner=False)
def _lines(sha256: str, before_sha256: str | None, _version: Release, _before: Release | None) -> list[str]:
    changes = diff(step.read(_before) if _before else None, step.read(_version))
    return lines_of(changes) or ["nothing but the note"]
