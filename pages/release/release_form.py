"""The form of a release: the saved points and ensembles, and which of them it takes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

import streamlit as st

from calibrate import settings
from calibrate.errors import BadInput
from calibrate.report.names import title_of
from calibrate.report.numbers import about, count, day, exact_share, interval, limit, share
from calibrate.report.sentences.releasing import release as sentences
from calibrate.report.sentences.tuning import figures
from calibrate.report.sentences.tuning import segments as segment_words
from calibrate.report.sentences.tuning.figures import saved_policy_in_words
from calibrate.targets import check_inside
from calibrate.thresholds.model import ThresholdsFile
from calibrate.types import Guarantee, Interval, OperatingPoint, Segments, Tier
from calibrate.workflow.evidence import traffic
from calibrate.workflow.releasing.candidate import build_candidate
from calibrate.workflow.releasing.checklist import Checklist, checklists
from db import Store
from db.points import SavedPoint
from db.releases import ReleaseRequest
from pages import shell
from pages.components.text import label, plain, visible
from pages.release import checklist_view

TIERS: tuple[Tier, ...] = ("signal", "page", "off")
ABOUT_TIERS = "page: wakes somebody. signal: is recorded and counted. off: stays in the file, is not asked."
WIDTHS = (2.2, 1.6, 2.2, 1.2, 1.1, 2, 1.2)
HEADS = ("Detector", "Flags at", "Precision", "Recall", "Flags a day", "Measured on", "Tier")
ROW = '[class*="st-key-release-row-"]'
# On a phone cells stand below each other: each then says itself what it is, as no head stands above it.
NAMED = "\n".join(
    f'{ROW} [data-testid="stColumn"]:nth-child({place})::before {{content: "{head}"}}'
    for place, head in enumerate(HEADS[1:], 2)
)
STYLE = f"""<style>
{ROW} {{border-top: 1px solid rgba(138,143,152,.25); padding-top: .6rem}}
@media (max-width: 640px) {{
.st-key-release-heads {{display: none}}
{ROW} > [data-testid="stLayoutWrapper"]:first-child [data-testid="stHorizontalBlock"] {{
  display: grid; grid-template-columns: 1fr 1fr; align-items: start}}
{ROW} [data-testid="stColumn"] {{min-width: 0; width: auto}}
{ROW} [data-testid="stColumn"]:first-child {{grid-column: 1 / 3}}
{ROW} [data-testid="stColumn"]::before {{display: block; font-size: .875rem; margin: .4rem 0 -.6rem; opacity: .65}}
{NAMED}
}}
</style>"""


def choose_points(store: Store, saved: Mapping[str, SavedPoint], live: Mapping[str, Tier]) -> dict[str, Tier]:
    """A line per saved point; returns the ticked ones with their tiers."""
    st.html(STYLE + checklist_view.STYLE)
    _heads()
    chosen: dict[str, Tier] = {}
    rows = checked(store)
    for name, point in saved.items():
        tier = _row(store, point, live.get(name, "signal"), rows[name])
        if tier is not None:
            chosen[name] = tier
    return chosen


def checked(store: Store) -> dict[str, Checklist]:
    """Every saved threshold item by item."""
    return _checked(store, shell.now().date().isoformat(), shell.now())


@shell.cached_read("Looking at the saved thresholds …", *shell.EVIDENCE, "points", "rechecks", "team")
def _checked(store: Store, day: str, _now: datetime) -> dict[str, Checklist]:
    return {row.detector: row for row in checklists(store, now=_now)}


def choose_ensembles(store: Store, live: Collection[str]) -> None:
    """The saved ensembles; those in the live release are ticked. `chosen` reads the choice."""
    names = list(store.ensembles.latest())
    if names:
        st.session_state.setdefault("release_ensembles", [name for name in names if name in live])
        st.multiselect(
            "Ensembles",
            names,
            format_func=lambda name: visible(name, 60),
            placeholder="none",
            key="release_ensembles",
            help="Their detectors must be ticked, as they were when the ensemble was saved.",
        )


def chosen(store: Store, point_ids: Collection[int]) -> ReleaseRequest:
    """What the widgets of the form say now. `point_ids` are the saved points that the page shows.

    Raises BadInput if another point was saved since: nobody has looked at it here.
    """
    saved, state = store.points.latest(), st.session_state
    if {point.id for point in saved.values()} != set(point_ids):
        raise BadInput("another operating point was saved in the meantime: look at it, then release")
    ticked = [name for name, point in saved.items() if state.get(f"release_tick_{point.id}")]
    tiers = {name: state.get(f"release_tier_{name}", TIERS[0]) for name in ticked}
    note, reason = (str(state.get(key) or "").strip() for key in ("release_note", "release_reason"))
    return ReleaseRequest(
        detectors=list(tiers),
        ensembles=tuple(state.get("release_ensembles") or ()),
        tiers=tiers,
        note=note,
        reason=reason,
        by=shell.user(),
    )


def place() -> str | None:
    """Where to write the file too: a path in the folder of TOUCHSTONE_FILES_DIR. Raises BadInput for any other."""
    text, folder = str(st.session_state.get("release_out") or "").strip(), settings.files_folder()
    return str(check_inside(text, folder)) if text and folder else None


def choose_place() -> None:
    """Ask where to write the file too, if the operator named a folder for that."""
    if folder := settings.files_folder():
        with st.expander("Advanced", icon=":material/tune:"):
            st.text_input(f"Also write to a file in {plain(str(folder))}", placeholder="not written", key="release_out")


def candidate_of(
    store: Store, request: ReleaseRequest, previous: ThresholdsFile | None, now: datetime
) -> ThresholdsFile:
    """What the release would hold. The reason is left out: typing it changes no figure."""
    request, points = replace(request, reason=""), store.points.latest()
    return build_candidate(store, request, points=points, previous=previous, now=now)


def _row(store: Store, saved: SavedPoint, tier: Tier, row: Checklist) -> Tier | None:
    """One saved point with what is known of it; returns its tier if it is ticked. One that meets no policy cannot be
    ticked and says why."""
    point = saved.point
    feasible = point.feasible
    with st.container(key=f"release-row-{saved.detector}"):
        tick, *places, last = st.columns(WIDTHS, vertical_alignment="center")
        ticked = tick.checkbox(
            label(title_of(saved.detector)), value=feasible, disabled=not feasible, key=f"release_tick_{saved.id}"
        )
        for place, text in zip(places, _cells(store, saved), strict=True):
            place.markdown(text)
        if not feasible:
            last.markdown(":gray[:small[cannot be released]]")
            why = figures.capitalised(figures.why(point) or "no threshold meets the policy")
            st.caption(f":material/block: {plain(why)}.")
            checklist_view.show(row, shell.now())
            return None
        st.session_state.setdefault(f"release_tier_{saved.detector}", tier)  # so that a rollback can set it back
        chosen: Tier = last.selectbox(
            f"Tier of {label(title_of(saved.detector))}",
            TIERS,
            key=f"release_tier_{saved.detector}",
            label_visibility="collapsed",
            disabled=not ticked,
        )
        checklist_view.show(row, shell.now())
        if ticked and (caution := sentences.caution(saved.detector, chosen, saved.point.strength)):
            st.caption(f":material/warning: {plain(caution.replace('`', ''))}.")
        return chosen if ticked else None


def _cells(store: Store, saved: SavedPoint) -> Iterator[str]:
    """The cells of a point: its limit, precision, recall, flags a day, labels."""
    point, about = saved.point, saved.data
    apart = f", by {segment_words.name_by(about.segments.by)}" if about.segments else ""
    yield f"{_limits(point, about.segments)}  \n{_small(saved_policy_in_words(point.policy) + apart)}"
    yield _precision(point, saved.point.guarantee)
    yield _figure(point.recall)
    yield _flags_a_day(store, point, about.sample)
    labels = count(about.n, "label")
    guarantee = saved.point.guarantee
    proof = (
        f" and {plain(guarantee.sample, 40)}"
        if guarantee and guarantee.sample and guarantee.sample != about.sample
        else ""
    )
    sample = f"{plain(about.sample, 40)}{proof}, {labels}" if about.sample else f"all {labels}"
    yield f"{sample}  \n{_small(f'{visible(saved.chosen_by, 30)}, {day(saved.chosen_at)}')}"


def _limits(point: OperatingPoint, segments: Segments | None) -> str:
    """Where it flags: at one threshold, or in each segment at its own, whose figures stand beside."""
    if segments is None:
        return f"**{limit(point.threshold, point.flag_when)}**"
    own = [f"**{flags}** {plain(name)}" for flags, name in segment_words.own_limits(segments, point.flag_when)]
    return "  \n".join([*own, _small(segment_words.common_limit(segments, point.threshold, point.flag_when))])


def _small(text: str) -> str:
    return f":gray[:small[{plain(text)}]]"


def _heads() -> None:
    with st.container(key="release-heads"):
        for place, word in zip(st.columns(WIDTHS), HEADS, strict=True):
            place.caption(word, help=ABOUT_TIERS if word == "Tier" else None)


def _figure(figure: Interval, strength: str = "") -> str:
    if figure.value is None:
        return "unknown"
    return f"**{share(figure.value)}**  \n{_small(interval(figure.low, figure.high) + strength)}"


def _precision(point: OperatingPoint, guarantee: Guarantee | None) -> str:
    """The precision and how sure it is: what is guaranteed, and from how many flagged labels."""
    if guarantee is None:
        flagged = point.true_positives + point.false_positives
        return _figure(point.precision, f", {count(flagged)} flagged, measured")
    basis = f"{guarantee.strength}, {count(guarantee.labels, 'flagged label')}"
    return f"**at least {exact_share(guarantee.target)}**  \n{_small(basis)}"


def _flags_a_day(store: Store, point: OperatingPoint, sample: str | None) -> str:
    drawn = store.samples.get(sample) if sample else None
    per_day = traffic.traffic_per_day(store, drawn)
    rate = point.flag_rate.value
    if per_day is None or rate is None:
        return "unknown"
    return f"**{about(rate * per_day)}**"
