"""The Recalibrate page's parts: why, old and new curves, the new points, and what a release would change."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from calibrate.report.names import title_of
from calibrate.report.numbers import count, decimals
from calibrate.report.sentences.labelling.labels import caution as caution_of
from calibrate.report.sentences.releasing import impact, recalibration
from calibrate.report.tables.recalibration import ON_PAGE, SAYS
from calibrate.workflow.upgrade import planning
from calibrate.workflow.upgrade import recalibrate as step
from db import Store
from pages import shell
from pages.components import tables
from pages.components.charts import CONFIG, curves
from pages.components.text import plain

EACH_ROW = 2


def load(store: Store, plan: planning.Plan, policy: str) -> step.Outcome:
    """What recalibrating would give."""
    configs = tuple(due.config.id if due.config else None for due in plan.due)
    return _outcome(store, configs, policy, shell.user(), plan)


@shell.cached_read(
    "Choosing every threshold anew …", *shell.EVIDENCE, "points", "releases", "rechecks", "team", entries=20
)
def _outcome(
    store: Store, configs: tuple[int | None, ...], policy: str, user: str, _plan: planning.Plan
) -> step.Outcome:
    return step.look(store, _plan, step.redo(store, _plan, policy=policy), by=user, now=shell.now())


def show_why(plan: planning.Plan) -> None:
    """Why to recalibrate, or that there is no reason."""
    labels = f"{count(plan.labels, 'label')} of {plain(plan.sample.name, 60)}" if plan.sample else (
        f"all {count(plan.labels, 'label')}"
    )  # fmt: skip
    if reasons := recalibration.reasons(plan):
        st.markdown("\n".join(f"- {plain(reason, 400)}." for reason in reasons))
    else:
        st.markdown(f"No detector changed since v{plan.release.version}, and none of these labels is new.")
    st.caption(f"Thresholds are chosen on {labels}.")
    if caution := caution_of(plan.caution):
        st.warning(f"{plain(caution, 500)}.", icon=":material/balance:")


def show_points(outcome: step.Outcome) -> None:
    """Every detector before and after."""
    columns = [column for column in ON_PAGE if column is not SAYS or any(map(SAYS.value, outcome.redone))]
    st.dataframe(
        tables.frame(columns, outcome.redone), hide_index=True, placeholder="–", column_config=tables.config(columns)
    )
    for redone in outcome.redone:
        if remark := recalibration.remark(redone):
            st.caption(
                f":material/gavel: **{plain(title_of(redone.due.name))}**: {plain(remark.replace('`', ''), 400)}."
            )


def show_curves(redone: Sequence[step.Redone]) -> None:
    """Old and new sweeps side by side, for detectors whose scores changed."""
    drawn = [
        changed
        for changed in redone
        if changed.due.changes and changed.after is not None and not changed.after.sweep.missing
    ]
    if not drawn:
        return
    st.markdown("**Old and new scores on the same labels**")
    for start in range(0, len(drawn), EACH_ROW):
        for place, changed in zip(st.columns(EACH_ROW), drawn[start : start + EACH_ROW], strict=False):
            with place, st.container(border=True, height="stretch"):
                _curve(changed)


def _curve(redone: step.Redone) -> None:
    assert redone.after is not None
    st.markdown(f"**{plain(title_of(redone.due.name))}**  \n:gray[:small[{plain(', '.join(redone.due.changes), 200)}]]")
    named = [("now", redone.after.sweep)]
    if redone.before is not None and not redone.before.sweep.missing:
        named.insert(0, ("as released", redone.before.sweep))
    st.plotly_chart(curves(named), config=CONFIG, key=f"recalibrate-{redone.due.name}")
    areas = [f"{name} {decimals(sweep.auroc, 2)}" for name, sweep in named if sweep.can_rank]
    missing = "" if len(named) > 1 else " The scores it was released with are not kept for these labels."
    area = f"AUROC {', '.join(areas)}, " if areas else ""
    st.caption(f"{area}{count(redone.after.sweep.n, 'label')}.{missing}")


def show_impact(outcome: step.Outcome) -> None:
    """What the release would change for those who act on its flags."""
    if outcome.impact:
        st.markdown(f"**{plain(impact.summary(outcome.impact), 600)}**")
        for check in outcome.impact.worse:
            st.warning(f"{plain(impact.worse(check), 400)}.", icon=":material/trending_down:")
    for name in outcome.left_out:
        st.caption(
            f":material/warning: The ensemble {plain(name, 60)} was made from scores that have changed, and is left "
            "out: make it again and save it on the Combine page."
        )
