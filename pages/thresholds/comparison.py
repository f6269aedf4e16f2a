"""Side by side: several curves in one chart, and whether they differ by more than chance. Sentences come first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from calibrate.report.names import title_of
from calibrate.report.sentences.labelling.labels import caution as caution_of
from calibrate.report.sentences.tuning import compare as sentences
from calibrate.report.tables.compare import COLUMNS
from calibrate.types import Sample
from calibrate.workflow.detection import configurations
from calibrate.workflow.evidence import basis
from calibrate.workflow.tuning import compare as step
from db import Store
from db.scores import Config
from pages import shell
from pages.components import charts, evidence_choice, labels_line, tables
from pages.components.text import plain, visible

DETECTORS, SETTINGS, MODELS, WEEKS = "Detectors", "Settings", "Models", "Weeks"
PARAM = "compare"  # of the address
_KIND, _SEEN = "compare_kind", "compare_kind_address"  # in the session
AT_FIRST = 3  # curves shown before anybody chooses
MOST = 6  # more cannot be told apart


@dataclass(frozen=True)
class Selection:
    """What is compared: `keys` of one kind with their `names`; the others are held against the first.

    `detector` is None where detectors themselves are compared.
    """

    kind: str
    detector: str | None
    sample: str | None
    keys: tuple[Any, ...]
    names: tuple[str, ...]


def show(store: Store, runs: Mapping[str, Sequence[Config]], sample: Sample | None, first: Sequence[str]) -> None:
    """Detectors, settings of one, the models behind the answers, or weeks. `first` are the detector at hand and those
    laid over it."""
    kind = choose_kind()
    name = sample.name if sample and kind != WEEKS else None
    selection = choose_series(store, kind, runs, name, first)
    if selection is None:
        return
    compared = contrast(store, selection)
    show_labels(store, selection)
    show_sentences(compared, selection, basis.choose_basis(store, name))
    show_curves(compared, selection)
    show_table(compared)


def choose_kind() -> str:
    """What is compared, kept in the address where it is not detectors. An address that somebody follows counts more
    than what was chosen before."""
    kinds = {kind.lower(): kind for kind in (DETECTORS, SETTINGS, MODELS, WEEKS)}
    requested = st.query_params.get(PARAM)
    if _KIND not in st.session_state or requested != st.session_state.get(_SEEN):
        st.session_state[_KIND] = kinds.get(requested or "", DETECTORS)
    kind = str(st.segmented_control("Compare", list(kinds.values()), required=True, key=_KIND))
    if kind == DETECTORS:
        st.query_params.pop(PARAM, None)
    else:
        st.query_params[PARAM] = kind.lower()
    st.session_state[_SEEN] = st.query_params.get(PARAM)
    return kind


def choose_series(
    store: Store, kind: str, runs: Mapping[str, Sequence[Config]], sample: str | None, first: Sequence[str]
) -> Selection | None:
    """What to compare; None if there are not two of the kind, after saying what is missing. What is not detectors is of
    the first."""
    detector = None if kind == DETECTORS else first[0]
    options = _OPTIONS[kind](store, runs, detector or "", sample)
    if len(options) < 2:
        with st.container(border=True):
            st.markdown(f"**Nothing to compare yet.** {_TOO_FEW[kind]}")
        return None
    preset = list(first) if kind == DETECTORS and len(first) > 1 else list(options)[:AT_FIRST]
    chosen = st.multiselect(
        f"{kind}, the first is what the others are held against",
        list(options),
        default=[key for key in preset if key in options],
        format_func=lambda key: visible(options[key], 80),
        max_selections=MOST,
        key="_".join(("compare", kind, str(detector), str(sample), *(first if kind == DETECTORS else ()))),
    )
    if len(chosen) < 2:
        st.caption("Choose two or more.")
        return None
    return Selection(kind, detector, sample, tuple(chosen), tuple(options[key] for key in chosen))


@shell.cached_read("Comparing …", *shell.EVIDENCE, entries=30)
def contrast(store: Store, selection: Selection) -> step.Contrast:
    """The comparison; thousands of resamples take a moment."""
    if selection.detector is None:
        return step.of_detectors(store, selection.keys, selection.names, sample=selection.sample)
    if selection.kind == SETTINGS:
        configs = [store.scores.get_config(key) for key in selection.keys]
        return step.of_settings(store, configs, selection.names, sample=selection.sample)
    if selection.kind == MODELS:
        return step.of_models(store, selection.detector, selection.keys, sample=selection.sample)
    return step.of_samples(store, selection.detector, selection.keys)


def show_labels(store: Store, selection: Selection) -> None:
    """Which labels the curves stand on: those of one sample, or of one a week."""
    if selection.kind != WEEKS:
        return  # the page says it already
    for week in selection.keys:
        labels_line.show(store, store.samples.get(week), name=week)


def show_sentences(contrast: step.Contrast, selection: Selection, labels: basis.Basis) -> None:
    """Whether each differs from the first by more than chance, and on how many labels."""
    for pair in contrast.differences:
        headline, figures = sentences.difference(contrast, pair)
        st.markdown(f"**{plain(headline)}**: {plain(figures)}.")
    chosen = caution_of(labels.caution) if selection.kind != WEEKS else None
    for caution in [*([chosen] if chosen else []), *sentences.cautions(contrast)]:
        st.warning(f"{plain(visible(caution, 500))}.", icon=":material/balance:")
    if selection.kind in (MODELS, WEEKS):
        st.caption(
            "Other traces, other difficulty: a difference between models or weeks may come from what was asked as well "
            "as from the detector."
        )


def show_curves(contrast: step.Contrast, selection: Selection) -> None:
    named = zip(selection.names, contrast.series, strict=True)
    curves = [(visible(name, 60), series.sweep) for name, series in named if not series.sweep.missing]
    if curves:
        st.plotly_chart(charts.curves(curves), key="compare_curves", config=charts.CONFIG)


def show_table(contrast: step.Contrast) -> None:
    st.dataframe(
        tables.frame(COLUMNS, contrast.series), hide_index=True, placeholder="–", column_config=tables.config(COLUMNS)
    )


def _detectors(_: Store, runs: Mapping[str, Sequence[Config]], __: str, ___: str | None) -> dict[Any, str]:
    return {name: title_of(name) for name in runs}


def _settings(_: Store, runs: Mapping[str, Sequence[Config]], detector: str, __: str | None) -> dict[Any, str]:
    configs = list(reversed(runs[detector]))
    words = configurations.distinguish_configs(configs) if len(configs) > 1 else [""]
    return {config.id: word for config, word in zip(configs, words, strict=True)}


def _models(store: Store, runs: Mapping[str, Sequence[Config]], detector: str, sample: str | None) -> dict[Any, str]:
    data = evidence_choice.evidence_of(store, runs[detector][-1], sample)
    return {name: name for name in step.models_of(data)}


def _weeks(store: Store, _: Mapping[str, Sequence[Config]], __: str, ___: str | None) -> dict[Any, str]:
    return {sample.name: sample.name for sample in basis.samples_with_labels(store)}


_OPTIONS: dict[str, Callable[..., dict[Any, str]]] = {
    DETECTORS: _detectors,
    SETTINGS: _settings,
    MODELS: _models,
    WEEKS: _weeks,
}
_TOO_FEW = {
    DETECTORS: "One detector has scores. Run another on the Detect page.",
    SETTINGS: "This detector was run with one setting. Run it with other parameters on the Detect page.",
    MODELS: "All labelled traces are of one model.",
    WEEKS: "There are not two samples with labels yet.",
}
