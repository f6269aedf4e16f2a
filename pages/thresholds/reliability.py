"""What a score means in percent: the reliability diagram, the probability map, and the way into a release."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from calibrate import registry
from calibrate.errors import BadInput
from calibrate.report.sentences.tuning import probability as sentences
from calibrate.stats.choosing.choose import NotEnoughLabels
from calibrate.stats.fitting.probability_maps import MapCurve
from calibrate.stats.fitting.reliability import Reliability
from calibrate.workflow.tuning import probability as step
from db import Store
from pages import shell
from pages.components import charts
from pages.components.text import plain

HEIGHT = 340


def show(store: Store, name: str, sample: str | None) -> None:
    """The detector's probability map on these labels, judged on traces it was not fitted on."""
    detector = registry.get(name)
    st.header(f"What a score of {plain(detector.title)} says in percent", anchor=False)
    try:
        mapped = _fitted(store, name, sample)
    except NotEnoughLabels as error:
        st.markdown("**No probability can be read from its scores yet.**")
        st.text(str(error))
        st.page_link(shell.page("label"), label="Label traces", icon=":material/check_box:")
        return
    except BadInput as error:  # the labels describe no traffic, or the detector has no scores
        st.caption(plain(f"No probability can be read from these labels: {error}.", 500))
        return
    fitted = mapped.fitted
    st.markdown(plain(sentences.sentence(mapped)))
    if not fitted.curve.monotone:
        st.warning(sentences.TURNS, icon=":material/trending_down:")
    left, right = st.columns(2, gap="medium")
    with left:
        st.plotly_chart(diagram(fitted.reliability), key=f"reliability_{name}", config=charts.CONFIG)
    with right:
        st.plotly_chart(curve(fitted.curve, unit=detector.unit), key=f"map_{name}", config=charts.CONFIG)
    _offer(store, mapped)


def diagram(reliability: Reliability) -> go.Figure:
    """Share hallucinated against predicted probability, one point per bin with its 95% interval."""
    shares = [bin.hallucinated for bin in reliability.bins]
    values = np.array([bin.value for bin in shares], dtype=float)
    low, high = (np.array([getattr(bin, end) for bin in shares], dtype=float) for end in ("low", "high"))
    line = {
        "type": "scatter",
        "x": [0, 1],
        "y": [0, 1],
        "mode": "lines",
        "line": {"color": charts.GREY, "width": 1, "dash": "dot"},
        "hoverinfo": "skip",
        "name": "as predicted",
    }
    points = {
        "type": "scatter",
        "x": [bin.predicted for bin in reliability.bins],
        "y": values,
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": high - values,
            "arrayminus": values - low,
            "color": charts.GREY,
            "thickness": 1.5,
            "width": 0,
        },
        "mode": "markers",
        "marker": {"size": 9, "color": charts.VERMILLION},
        "customdata": np.stack([low, high, [bin.n for bin in reliability.bins]], axis=-1),
        "hovertemplate": (
            "predicted %{x:.0%}<br>hallucinated %{y:.0%} (%{customdata[0]:.0%} to %{customdata[1]:.0%})<br>"
            "%{customdata[2]:,} labels<extra></extra>"
        ),
        "name": "labels it was not fitted on, 95%",
    }
    layout = {
        **charts.template(height=HEIGHT),
        "xaxis": charts.share_axis("Predicted probability"),
        "yaxis": charts.share_axis("Share hallucinated"),
    }
    return go.Figure({"data": [line, points], "layout": layout})


def curve(mapping: MapCurve, *, unit: str) -> go.Figure:
    """The map: P(hallucinated) at every score."""
    data = {
        "type": "scatter",
        "x": mapping.scores,
        "y": mapping.probabilities,
        "mode": "lines",
        "line": {"color": charts.VERMILLION, "width": 2},
        "hovertemplate": "score %{x:.4~g}: %{y:.0%}<extra></extra>",
        "name": "P(hallucinated)",
        "showlegend": False,
    }
    layout = {
        **charts.template(height=HEIGHT),
        "xaxis": charts.axis(f"Score: {unit}", showgrid=False),
        "yaxis": charts.share_axis("P(hallucinated)"),
    }
    return go.Figure({"data": [data], "layout": layout})


@shell.cached_read("Fitting the probability map …", *shell.EVIDENCE)
def _fitted(store: Store, name: str, sample: str | None) -> step.Mapped:
    return step.fit(store, name, sample=sample)


def _save(store: Store, mapped: step.Mapped) -> None:
    """Keep the map. A second press keeps the same one again."""
    with shell.errors_kept("map_problem"):
        step.save(store, mapped, by=shell.user(), now=shell.now())


def _offer(store: Store, mapped: step.Mapped) -> None:
    """The button that keeps the map with the saved operating point; without a point, the way to one."""
    shell.show_kept_error("map_problem")
    saved = store.points.latest().get(mapped.config.name)
    with st.container(horizontal=True, vertical_alignment="center"):
        if saved is None or saved.config_id != mapped.config.id:
            st.caption(
                "A map goes into a release with the detector's operating point; none is saved for this one. Save it "
                "first."
            )
        elif step.kept_map(saved) == mapped.fitted.map:
            st.markdown(":material/check: Kept with the operating point", width="content")
            st.page_link(shell.page("release"), label="Release it", icon=":material/verified:")
        else:
            label, icon = "Keep with the operating point", ":material/bookmark_add:"
            st.button(label, icon=icon, on_click=_save, args=(store, mapped))
            st.caption("The next release then carries it, and runtimes can say how likely a flagged answer is wrong.")
