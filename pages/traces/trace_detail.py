"""The open trace: its card with the evidence of a detector, every score, and all its labels."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from calibrate.report.names import title_of
from calibrate.report.numbers import decimals, stamp
from calibrate.thresholds.model import ThresholdsFile
from calibrate.types import Label, Score, Trace
from calibrate.workflow.releasing import history
from db import Store
from db.scores import Config
from pages import shell
from pages.components.labelling import trace_card
from pages.components.text import plain, visible
from pages.traces import trace_actions

HEIGHT = "max(18rem, calc(100dvh - 25rem))"
HEAT = "token probabilities"
BLIND = "Scores, gold and what others said are left out here: you label, and labels should lean towards nothing."


def show(store: Store, trace_id: str, detector: str | None = None) -> None:
    """The trace with this id, or a sentence if there is none. `detector`: whose evidence is marked first."""
    pk = store.traces.find(trace_id)
    stored = store.traces.get(pk) if pk is not None else None
    if pk is None or stored is None:
        st.warning(f"There is no trace {plain(trace_id, 100)} in this store.", icon=":material/search_off:")
        return
    if trace_actions.is_labelling(trace_id) and not stored.trace.purged_at:
        trace_actions.label_now(store, pk)
        return
    blind = shell.person().is_blind
    labels = store.labels.of_trace(pk)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="trace-head"):
        st.header(plain(trace_id, 80), anchor=False, width="stretch")
        if not blind:
            st.markdown(_gold(stored.gold), width="content")
        if not stored.trace.purged_at:
            trace_actions.show(store, pk, trace_id)
    trace_actions.show_outcome()
    if blind:
        _show_blind(stored.trace, [label for label in labels if label.labeller == shell.user()])
        return
    scores = _newest(store.scores.of_trace(pk))
    answer, scored, labelled = st.tabs(
        ["Answer and sources", f"Scores {len(scores) or ''}".strip(), f"Labels {len(labels) or ''}".strip()]
    )
    with answer:
        chosen = _chosen(scores, detector, heat=bool(trace_card.heats(stored.trace)), key=f"evidence-{pk}")
        evidence = scores[chosen][1].evidence if chosen in scores else ()
        spans = [span for label in labels for span in label.spans]
        heat = chosen == HEAT
        _decision(store, pk)
        trace_card.show(stored.trace, evidence=evidence, spans=spans, heat=heat, height=HEIGHT, key="browse-card")
    with scored:
        _scores(stored.trace, scores, history.live_release(store))
    with labelled:
        _labels(labels)


def _show_blind(trace: Trace, own: Sequence[Label]) -> None:
    """The trace as the labelling surface shows it, and what the labeller said themselves."""
    st.caption(BLIND)
    spans = [span for label in own for span in label.spans]
    trace_card.show(trace, spans=spans, blind=True, height=HEIGHT, key="browse-card")
    if own:
        _labels(own)


def _newest(scores: Sequence[tuple[Config, Score]]) -> dict[str, tuple[Config, Score]]:
    """Each detector's newest configuration."""
    return {config.name: (config, score) for config, score in scores}


def _decision(store: Store, pk: int) -> None:
    """The decision of the newest release that looked at it, if any."""
    decided = store.decisions.newest([pk]).get(pk)
    if decided is None:
        return
    live = store.releases.list(limit=1)[0].version
    by = f"v{decided.version}" + (f" (v{live} is live now)" if decided.version != live else "")
    if not decided.flags:
        st.caption(f":material/flag: {by} decided **{decided.verdict}**: no flag")
        for reason in decided.reasons:
            st.text(visible(reason, 300))
        return
    with st.container(border=True, gap="xsmall", key="trace-decision"):
        st.markdown(f":material/flag: {by} decided **{decided.verdict}** · tier **{decided.tier}**")
        for reason in decided.reasons:
            st.text(visible(reason, 300))


def _gold(gold: str | None) -> str:
    return f"Gold: **{gold}**" if gold else ":gray[No gold verdict]"


def _chosen(scores: dict[str, tuple[Config, Score]], first: str | None, *, heat: bool, key: str) -> str | None:
    """Which detector's evidence the card marks; HEAT for the probability of each token."""
    names = [name for name, (_, score) in scores.items() if score.evidence]
    names += [HEAT] if heat else []
    if not names:
        return None
    return st.segmented_control(
        "Evidence of",
        names,
        default=first if first in names else names[0],
        format_func=lambda n: n if n == HEAT else f"{_title(n)} :gray[{_value(scores[n][1])}]",
        key=key,
        label_visibility="collapsed",
    )


def _title(name: str) -> str:
    """What people call a detector; of one that is not here any more, its name."""
    return plain(title_of(name))


def _value(score: Score) -> str:
    return score.status if score.value is None else f"{decimals(score.value)}"


def _scores(trace: Trace, scores: dict[str, tuple[Config, Score]], live: ThresholdsFile | None) -> None:
    if not scores:
        st.caption("No detector has scored this trace. Run them on the Detect page.")
        return
    rows = [
        {
            "Detector": _title(config.name),
            "Score": score.value,
            "Flags at": _limit(live, config, trace),
            "Why not": visible(score.reason, 200),
        }
        for config, score in scores.values()
    ]
    if not any(row["Flags at"] for row in rows):
        rows = [{name: cell for name, cell in row.items() if name != "Flags at"} for row in rows]
    st.dataframe(
        rows,
        hide_index=True,
        placeholder="–",
        column_config={
            "Detector": st.column_config.TextColumn(width=170),
            "Score": st.column_config.NumberColumn(format="%.4f", width=80),
            "Flags at": st.column_config.TextColumn(width=80, help="The live release's threshold"),
            "Why not": st.column_config.TextColumn(width=170),
        },
    )


def _limit(live: ThresholdsFile | None, config: Config, trace: Trace) -> str | None:
    """Where the live release flags, if it is for the same version and parameters."""
    entry = live.detectors.get(config.name) if live else None
    if entry is None or (entry.version, dict(entry.params)) != (config.version, dict(config.params)):
        return None
    return entry.limit_for(trace)


def _labels(labels: Sequence[Label]) -> None:
    if not labels:
        st.caption("Nobody has labelled this trace.")
        return
    rows = [
        {
            "When (UTC)": stamp(label.created_at) if label.created_at else "–",
            "Who": visible(label.labeller, 60) + (" (decided)" if label.adjudicates else ""),
            "Verdict": label.verdict,
            "Kinds": visible(", ".join(trace_card.kind_in_words(kind) for kind in label.kinds), 200),
            "Note": visible(label.note, 500),
            "Time": label.seconds,
            "Sample": visible(label.sample, 60),
        }
        for label in reversed(labels)
    ]
    st.dataframe(
        rows,
        hide_index=True,
        placeholder="",
        column_config={
            "When (UTC)": st.column_config.TextColumn(width=125),
            "Who": st.column_config.TextColumn(width=80),
            "Verdict": st.column_config.TextColumn(width=95),
            "Kinds": st.column_config.TextColumn(width=110),
            "Note": st.column_config.TextColumn(width=130),
            "Time": st.column_config.NumberColumn(format="%.0f s", width=60),
            "Sample": st.column_config.TextColumn(width=80),
        },
    )
