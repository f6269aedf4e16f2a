"""Two settings of one detector on the same labels: figures, the difference, and both curves."""

from __future__ import annotations

import streamlit as st

from calibrate.report.numbers import count, decimals, difference
from calibrate.report.sentences.tuning import compare as sentences
from calibrate.stats.intervals.ranking_differences import Comparison
from calibrate.workflow.detection import configurations
from calibrate.workflow.tuning import compare as step
from db import Store
from db.scores import Config
from pages import shell
from pages.components import charts
from pages.components.text import plain, visible

HOW = "Change the parameters above and run: every setting keeps its scores, and any two can be compared here."


def show(store: Store, name: str, sample: str | None) -> None:
    with st.expander("Compare two settings on the same labels", icon=":material/compare_arrows:"):
        configs = list(reversed(store.scores.configs(name)))
        if len(configs) < 2:
            done = "It was run with one setting so far. " if configs else "It was not run yet. "
            st.caption(done + HOW)
            return
        words = dict(zip((config.id for config in configs), configurations.distinguish_configs(configs), strict=True))
        by_id = {config.id: config for config in configs}
        first, second = (by_id[key] for key in _choose(name, words))
        if first.id == second.id:
            st.caption("Choose two different settings.")
            return
        compared = _compare(store, first, second, sample)
        _show_result(compared.result, sample)
        if compared.result.missing is None:
            names = (f"A: {visible(words[first.id], 60)}", f"B: {visible(words[second.id], 60)}")
            figure = charts.curves(list(zip(names, compared.curves, strict=True)))
            st.plotly_chart(figure, key=f"compare_{name}", config=charts.CONFIG)
        st.caption(HOW)


def _choose(name: str, words: dict[int, str]) -> tuple[int, int]:
    """The two settings; by default the last one as B and the one before as A."""
    keys = list(words)
    left, right = st.columns(2)
    chosen = [
        place.selectbox(
            letter, keys, index=index, format_func=lambda key: visible(words[key], 120), key=f"compare_{letter}_{name}"
        )
        for place, letter, index in ((left, "A", 1), (right, "B", 0))
    ]
    return chosen[0], chosen[1]


def _show_result(result: Comparison, sample: str | None) -> None:
    where = f"the sample {plain(sample, 60)}" if sample else "all labelled traces"
    labels = f"{count(result.n, 'label')} of {where} that both scored"
    if result.first is None or result.second is None:
        st.markdown(f"**Nothing to compare yet.** {plain(sentences.nothing_paired(result) or '')}.")
        return
    st.markdown(f"**{sentences.settings(result.auroc)}:** {labels}, {count(result.positives)} hallucinated.")
    places = st.columns(2)
    for place, title, figure, before, after in (
        (places[0], "AUROC, A → B", result.auroc, result.first.auroc, result.second.auroc),
        (
            places[1],
            "Average precision, A → B",
            result.average_precision,
            result.first.average_precision,
            result.second.average_precision,
        ),
    ):
        apart = difference(figure.value, figure.low, figure.high)
        place.metric(title, f"{decimals(before)} → {decimals(after)}", apart, delta_color="off", delta_arrow="off")


@shell.cached_read("Comparing …", *shell.EVIDENCE, entries=20)
def _compare(store: Store, first: Config, second: Config, sample: str | None) -> step.Compared:
    """Two thousand resamples take a moment."""
    return step.compare(store, first, second, sample=sample)
