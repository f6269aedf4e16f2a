"""On real labelled traces: every detector's areas equal scikit-learn's on the same scores, through the store."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from calibrate import registry
from calibrate.ingest import import_file
from calibrate.types import TraceFilter
from calibrate.workflow.detection import detect
from calibrate.workflow.evidence import loading
from calibrate.workflow.sampling.sample import draw
from db import open_store
from tests.shared_data import DATA

SIZE = 40  # traces that detectors on a model score here; docs/reference/results.md has all


@pytest.mark.shared
@pytest.mark.model
@pytest.mark.parametrize("name", ["ragtruth_qa", "attributionbench"])
def test_areas_equal_scikit_learns(name: str, sqlite_url: str) -> None:
    path = DATA / f"{name}.jsonl.gz"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    store = open_store(sqlite_url)
    import_file(store.traces, path, labels_as="gold")
    drawn = draw(store, "w", size=SIZE, design="random", by=None, where=TraceFilter(), seed=1, now=detect.utc_now())
    judged = set()
    for detector in registry.names():
        made = registry.make(detector)
        if made.unavailable():
            continue
        sample = drawn.name if made.revision() else None
        detect.queue(store, [detector], detect.scope_of(sample=sample, labelled=sample is None))
        finished = detect.work(store)
        assert finished is not None
        assert finished.status == "done"
        data = loading.load_evidence(store, detector, sample=sample)
        scored = ~np.isnan(data.scores)
        labels = data.labels[scored]
        assert data.sweep.coverage == pytest.approx(scored.mean(), abs=1e-12)
        if data.sweep.missing is not None:
            assert len(set(labels)) < 2
            continue
        risk = data.scores[scored] * (1 if data.flag_when == "above" else -1)
        assert data.sweep.auroc == pytest.approx(roc_auc_score(labels, risk), abs=1e-9)
        assert data.sweep.average_precision == pytest.approx(average_precision_score(labels, risk), abs=1e-9)
        judged.add(detector)
        print(
            f"{name} {detector}: n {len(labels)}, AUROC {data.sweep.auroc:.4f}, AP {data.sweep.average_precision:.4f}"
        )
    assert {"token_overlap", "rouge_l", "semantic_similarity"} <= judged
