"""Certification on the Tune page: four steps, how far the attempt is, and the one button for the next step."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from calibrate.errors import BadInput
from calibrate.report.numbers import count, estimate, exact_share
from calibrate.report.sentences.tuning import certification as sentences
from calibrate.report.sentences.tuning import figures as wording
from calibrate.stats.certification.certificates import NotCertifiable, Offer
from calibrate.workflow.certification import attempts, certify, planning
from calibrate.workflow.certification.attempts import CertificationStatus
from calibrate.workflow.evidence import evidence
from db import Store
from pages import shell
from pages.components.text import plain
from pages.components.verdict_box import save_anyway, verdict_box

REASON = "certify_reason"
STEPS = ("Plan", "Draw", "Label", "Certify")
ABOUT = (
    "A threshold chosen on labels looks better on them than on new traffic. A certificate is an exact test on labels "
    "drawn for it: the plan fixes what will be tested before any of them is drawn, and the test is made once. Leave at "
    "any step; it is kept."
)
DONE = {"planned": 1, "drawn": 2, "labelled": 3, "certified": 4, "not certifiable": 4}


def under_way(store: Store, data: evidence.Evidence) -> bool:
    """Whether an attempt of this configuration waits for its next step."""
    status = attempts.latest_status(store, data.config.name, config_id=data.config.id)
    return status is not None and status.outcome is None


@st.fragment
def show(store: Store, data: evidence.Evidence, *, target: float | None = None) -> None:
    """The newest attempt of this configuration, or the form that plans one on these labels for this target."""
    if st.session_state.pop("certify_stale", False):
        st.rerun()  # what is certified and saved is shown elsewhere on the page as well
    with st.container(border=True, key="certify"), shell.guarded():
        status = attempts.latest_status(store, data.config.name, config_id=data.config.id)
        shown = status if status and _about_these(status, data) else None
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown("**Certify on labels drawn for it**", help=ABOUT, width="content")
            st.markdown(_line(shown), width="content")
        if shown:
            st.markdown(plain(sentences.status(shown)))
            _SHOWN[shown.stage](store, data, shown)
        elif status:
            st.caption(f"On {_labels(status)}: {plain(sentences.status(status))}")
        if shown is None:
            _offer_plan(store, data, status, target)
        if message := st.session_state.pop("certify_told", None):
            st.info(plain(message), icon=":material/block:")
        shell.show_kept_error("certify_problem")


def _about_these(status: CertificationStatus, data: evidence.Evidence) -> bool:
    """An attempt under way is shown whichever labels are chosen; a finished one only with its own labels."""
    over = status.stage in ("certified", "not certifiable")
    fresh = data.sample is not None and status.fresh is not None and data.sample.name == status.fresh.name
    return not over or fresh or status.terms.samples == attempts.first_names(data.sample)


def _line(status: CertificationStatus | None) -> str:
    """Plan ✓ · Draw ✓ · **Label 31 / 84** · Certify."""
    done = DONE[status.stage] if status else 0
    words = list(STEPS)
    if status and status.fresh:
        words[2] = f"Label {count(status.labelled)} / {count(status.fresh.size)}"
    marked = [
        f":primary[:material/check:] {word}" if i < done else f"**{word}**" if i == done else f":gray[{word}]"
        for i, word in enumerate(words)
    ]
    if status and (status.stage == "not certifiable" or status.overturned):
        marked[3] = f":gray[:material/block:] {STEPS[3]}"
    return " &ensp;·&ensp; ".join(marked)


def _planned(store: Store, data: evidence.Evidence, status: CertificationStatus) -> None:
    available, needed = certify.available(store, status.attempt), status.plan.labels
    too_few = available < needed
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            f"Draw {count(needed, 'test trace')}",
            type="primary",
            icon=":material/casino:",
            on_click=_with_error_shown(lambda: certify.draw(store, status.attempt, now=shell.now())),
            disabled=too_few,
        )
        if too_few and available >= certify.least(status.plan):
            st.button(
                f"Draw the {count(available)} there are",
                on_click=_with_error_shown(lambda: certify.draw(store, status.attempt, fewer=True, now=shell.now())),
            )
        if too_few:
            st.page_link(shell.page("detect"), label="Score newer traces", icon=":material/play_circle:")
    if too_few:
        are = "is" if available == 1 else "are"
        st.caption(
            f"{count(available, 'trace')} flagged at {plain(_deepest(status))} {are} there, apart from those "
            "whose labels made the plan. Score what came in since, or wait for traffic. With fewer the test holds as "
            "well, and is less likely to pass."
        )
    with st.expander("Plan anew: nothing is spent before the draw"):
        _plan_form(store, attempts.first_labels(store, status.attempt), status)


def _drawn(store: Store, data: evidence.Evidence, status: CertificationStatus) -> None:
    assert status.fresh is not None
    left = status.fresh.size - status.labelled
    if st.button(f"Label {count(left, 'test trace')}", type="primary", icon=":material/check_box:"):
        st.session_state["sample_at_hand"] = status.fresh.name
        st.switch_page(shell.page("label"), query_params={"sample": status.fresh.name})
    st.caption("The test waits for all of them. Say unsure where you cannot tell: it counts as not hallucinated.")


def _labelled(store: Store, data: evidence.Evidence, status: CertificationStatus) -> None:
    st.button(
        "Certify",
        type="primary",
        icon=":material/verified:",
        on_click=_finish(store, status),
    )


def _certified(store: Store, data: evidence.Evidence, status: CertificationStatus) -> None:
    point, state = certify.point_of(store, status.attempt), certify.state_of(store, status.attempt)
    recall = point.recall
    st.caption(
        f"{wording.flags(point)} By {_labels(status)} and the test, {count(point.n, 'label')}, it finds "
        f"{estimate(recall.value, recall.low, recall.high)} of all hallucinations."
    )
    saved = store.points.latest().get(status.attempt.detector)
    saved_sample = saved.point.guarantee.sample if saved and saved.point.guarantee else None
    with st.container(horizontal=True, vertical_alignment="center"):
        if status.fresh and saved_sample == status.fresh.name:
            st.markdown(":material/check: It is the saved operating point.", width="content")
            st.page_link(shell.page("release"), label="Release it", icon=":material/verified:")
        elif not state.known_bad:
            st.button(
                "Save the certified point",
                type="primary",
                icon=":material/bookmark_add:",
                on_click=_save(store, status),
            )
    if state.known_bad:
        with verdict_box(state, key="certified"):
            save_anyway(_save(store, status), (), key=REASON, label="Save anyway")
    if status.overturned:
        _plan_another(store, status)
    _walk(status)


def _not_certified(store: Store, data: evidence.Evidence, status: CertificationStatus) -> None:
    if status.outcome and status.outcome.needed:
        _plan_another(store, status)
    else:
        st.caption("A new sample of more traffic, a lower target or tier signal are what is left.")
    _walk(status)


def _plan_another(store: Store, status: CertificationStatus) -> None:
    st.caption(f"Attempt {status.plan.attempt + 1} plans on all labels so far and is tested on new ones.")
    _plan_form(store, attempts.first_labels(store, status.attempt), status)


_SHOWN: dict[str, Callable[[Store, evidence.Evidence, CertificationStatus], None]] = {
    "planned": _planned,
    "drawn": _drawn,
    "labelled": _labelled,
    "certified": _certified,
    "not certifiable": _not_certified,
}


def _offer_plan(
    store: Store, data: evidence.Evidence, status: CertificationStatus | None, target: float | None
) -> None:
    if data.caution is not None:
        st.caption("These labels do not describe the traffic. Choose a sample of all traffic to plan on.")
        return
    st.caption("Plan which thresholds to test and how many traces to label for it that takes. A plan costs nothing.")
    _plan_form(store, data, status, target)


def _plan_form(
    store: Store, data: evidence.Evidence, status: CertificationStatus | None, suggested: float | None = None
) -> None:
    needed = status.outcome.needed if status and status.outcome else None
    target = min(99, max(1, round(100 * (suggested or (status.plan.target if status else planning.TARGET)))))
    usual = needed or (status.terms.budget if status and not status.outcome else planning.usual_budget(len(data.rows)))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.number_input("Precision to certify, %", 1, 99, target, step=5, key=f"certify_target_{target}", width=190)
        st.number_input(
            "Test labels, at most", 20, 5000, max(20, usual), step=10, key=f"certify_labels_{usual}", width=190
        )
        st.button(
            "Plan",
            type="primary" if status and status.outcome else "secondary",  # a first plan is not what the page leads to
            icon=":material/route:",
            # Of this standing only: the second half of a double click must not press the next form's button.
            key=f"certify_plan_{status.attempt.id if status else 0}",
            on_click=_plan(store, data, status, f"certify_target_{target}", f"certify_labels_{usual}"),
        )
    wanted = int(st.session_state[f"certify_target_{target}"]) / 100
    offers = _offers(store, data.config.id, attempts.first_names(data.sample), data.digest(), wanted, data)
    if status and status.stage == "planned" and offers and wanted == status.plan.target:
        offers = planning.beside(offers, status.plan, certify.available(store, status.attempt))
    _show_offers(offers)


@shell.cached_read("Playing plans through …", entries=20)
def _offers(
    store: Store, config: int, samples: tuple[str, ...], digest: str, target: float, _data: evidence.Evidence
) -> tuple[Offer, ...]:
    """What test labels are likely to buy; none where the labels allow no plan, which its button then says."""
    try:
        return planning.offers(store, _data, target=target)
    except BadInput:
        return ()


def _show_offers(offers: tuple[Offer, ...]) -> None:
    if not offers:
        return
    rows = [
        {
            "Test labels": offer.labels,
            "Chance": _in_points(offer.chance),
            "Chance, a tenth unsure": _in_points(offer.chance_unsure),
            "Recall then": _in_points(offer.recall),
        }
        for offer in offers
    ]
    percent = {
        "Chance": "Of a certificate, predicted from the labels so far. Below 20% nothing is planned",
        "Chance, a tenth unsure": "The same where a tenth of the answers are unsure: they count as not hallucinated",
        "Recall then": "Of the certified cut, among traces that the detector can score",
    }
    columns = {name: st.column_config.NumberColumn(format="percent", help=text) for name, text in percent.items()}
    st.caption("What test labels are likely to buy:")
    st.dataframe(rows, hide_index=True, column_config=columns, width="content", key="certify_offers")


def _in_points(predicted: float) -> float:
    """Whole percentage points: a prediction is not known more closely."""
    return round(predicted, 2)


def _plan(
    store: Store, data: evidence.Evidence, shown: CertificationStatus | None, target: str, labels: str
) -> Callable[[], None]:
    """Make the plan that the form asks for, once: a second press finds a newer plan than the one shown with it."""

    def act() -> None:
        newest = attempts.latest_status(store, data.config.name, config_id=data.config.id)
        if newest and (shown is None or newest.attempt.id != shown.attempt.id):
            return
        plan = planning.plan(
            store,
            data,
            target=int(st.session_state[target]) / 100,
            budget=int(st.session_state[labels]),
            by=shell.user(),
            now=shell.now(),
        )
        if isinstance(plan, NotCertifiable):
            st.session_state["certify_told"] = f"No plan is likely to certify that: {sentences.no_plan(plan)}."

    return _with_error_shown(act)


def _finish(store: Store, status: CertificationStatus) -> Callable[[], None]:
    def act() -> None:
        certify.finish(store, status.attempt, now=shell.now())
        st.session_state["certify_stale"] = True

    return _with_error_shown(act)


def _save(store: Store, status: CertificationStatus) -> Callable[[], None]:
    def act() -> None:
        reason = str(st.session_state.get(REASON) or "")
        certify.save(store, status.attempt, reason=reason, by=shell.user(), now=shell.now())
        st.session_state["certify_stale"] = True

    return _with_error_shown(act)


def _with_error_shown(act: Callable[[], object]) -> Callable[[], None]:
    """A callback whose error is shown in the panel."""

    def call() -> None:
        with shell.errors_kept("certify_problem"):
            act()

    return call


def _deepest(status: CertificationStatus) -> str:
    return sentences.limit(status.plan, status.plan.deepest)


def _labels(status: CertificationStatus) -> str:
    return plain(" + ".join(status.terms.samples), 60) if status.terms.samples else "all labels"


def _walk(status: CertificationStatus) -> None:
    """Every cut that was to be tested, strict to loose."""
    if not status.outcome or not status.outcome.walk:
        return
    rows = [
        {
            "Flags at": sentences.limit(status.plan, cut.cut),
            "Test labels": cut.labels,
            "Hallucinated": cut.hallucinated,
            "Precision at least": cut.bound,
            "Outcome": cut.outcome,
        }
        for cut in status.outcome.walk
    ]
    bound = st.column_config.NumberColumn(
        format="percent",
        help=f"One-sided exact lower bound; a cut passes where it reaches {exact_share(status.plan.target)}",
    )
    with st.expander(f"The {count(len(rows), 'cut')} of the plan, strict to loose: the test ends at the first to fail"):
        st.dataframe(rows, hide_index=True, column_config={"Precision at least": bound})
