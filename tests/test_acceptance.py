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

ALL, FEW = 250, 30  # traces, and how many of them detectors on a model score; docs/reference/results.md has more


@pytest.mark.shared
@pytest.mark.model
def test_areas_equal_scikit_learns(sqlite_url: str) -> None:
    path = DATA / "ragtruth_qa.jsonl.gz"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    store = open_store(sqlite_url)
    import_file(store.traces, path, labels_as="gold")
    samples = {
        size: draw(
            store, f"s{size}", size=size, design="random", by=None, where=TraceFilter(), seed=1, now=detect.utc_now()
        ).name
        for size in (ALL, FEW)
    }
    judged = set()
    for detector in registry.names():
        made = registry.make(detector)
        if made.unavailable():
            continue
        sample = samples[FEW if made.revision() else ALL]
        detect.queue(store, [detector], detect.scope_of(sample=sample, labelled=False))
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
    assert {"token_overlap", "rouge_l", "semantic_similarity"} <= judged
