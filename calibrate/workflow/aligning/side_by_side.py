"""Judge and people side by side, where they differ most: what a guideline has to say more clearly shows there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrate import registry
from calibrate.detectors.shared.judging import BEFORE_PROMPT
from calibrate.stats.aligning.examples import hardness
from calibrate.types import Evidence
from calibrate.workflow.aligning.proposal import find_reason, kinds_of
from calibrate.workflow.detection import team_files
from calibrate.workflow.detection.configurations import resolve_config
from calibrate.workflow.detection.detectors import prompt_of
from calibrate.workflow.evidence.counted_labels import count_labels
from calibrate.workflow.labelling import guides
from db import Store

SHOWN = 20
REASONS = 3  # of a judge for one answer
WRONG = 0.5  # how far off a judge is from which it is on the other side


@dataclass(frozen=True)
class Difference:
    """One trace: the judge's `score` (0 to 1, 1 is hallucinated) and `reasons`, and people's verdict, kinds and note.

    `off` is how far they are apart. `quoted`: the trace stands in a saved prompt.
    """

    pk: int
    trace_id: str
    score: float
    reasons: tuple[Evidence, ...]
    gold: str
    kinds: tuple[str, ...]
    note: str | None
    labeller: str | None
    off: float
    quoted: bool


@dataclass(frozen=True)
class SideBySide:
    """The labels that both have, `wrong` of which the judge has on the other side, and those that differ most.

    `scored_with` is the version of the prompt that the scores are of, `in_use` that of the judge's prompt now; None for
    a detector without a prompt.
    """

    labels: int
    wrong: int
    differences: tuple[Difference, ...]
    scored_with: str | None
    in_use: str | None


def shared_remarks(differences: Sequence[Difference]) -> tuple[str, ...]:
    """What every one of several differences says beside the judge's reply, like that the endpoint gave no
    log-probabilities: enough to say once."""
    if len(differences) < 2:
        return ()
    first, *others = ([reason.text for reason in each.reasons[1:]] for each in differences)
    return tuple(text for text in first if all(text in other for other in others))


def side_by_side(store: Store, name: str, *, limit: int = SHOWN) -> SideBySide:
    """Compare a judge's scores with the gold verdicts of every label, those that count and others.

    Raises BadInput for a judge that was never run.
    """
    config = resolve_config(store, name)
    aside = store.prompt_examples.set_aside()
    rows = [row for row in count_labels(store, config, None).rows if row.value is not None]
    rows += [
        row
        for row in store.scores.labelled(config.id)
        if row.pk in aside and row.value is not None and row.gold in ("clean", "hallucinated")
    ]
    labels = np.array([row.gold == "hallucinated" for row in rows], dtype=bool)
    scores = np.array([row.value for row in rows], dtype=float)
    if registry.get(name).flag_when == "below":
        scores = 1 - scores
    off = hardness(labels, scores)
    worst = [int(i) for i in np.argsort(-off, kind="stable")[:limit] if off[i] > 0]
    keys = [rows[i].pk for i in worst]
    reasons, quoted = store.scores.evidence(config.id, keys), store.prompt_examples.of_traces(keys)
    names = {kind.key: kind.name for kind in guides.known_kinds(store)}
    differences = []
    for i in worst:
        row = rows[i]
        label = find_reason(store.labels.of_trace(row.pk), row.gold)
        differences.append(
            Difference(
                row.pk,
                row.trace_id,
                float(scores[i]),
                tuple(reasons.get(row.pk, ())[:REASONS]),
                str(row.gold),
                () if label is None else tuple(names.get(kind, kind) for kind in kinds_of(label)),
                None if label is None else label.note,
                None if label is None else label.labeller,
                float(off[i]),
                row.pk in quoted,
            )
        )
    file = prompt_of(registry.make(name))
    return SideBySide(
        len(rows),
        int((off > WRONG).sum()),
        tuple(differences),
        scored_with=None if file is None else config.revision.rpartition(BEFORE_PROMPT)[2],
        in_use=None if file is None else team_files.get(store, file).version,
    )
