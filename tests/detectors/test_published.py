"""Published figures, reproduced on the half of the data that ../shared/data holds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from calibrate import registry
from calibrate.types import Trace
from tests.shared_data import load, records, to_trace

Figure = Callable[[np.ndarray, np.ndarray], float]


def interval(truth: np.ndarray, scores: np.ndarray, groups: Sequence[str], figure: Figure) -> tuple[float, float]:
    """95% interval of the figure when whole groups are drawn anew (percentile bootstrap, 1,000 draws, fixed seed)."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, group in enumerate(groups):
        places[group].append(place)
    clusters = [np.array(held) for held in places.values()]
    rng = np.random.default_rng(20231206)
    drawn = (np.concatenate([clusters[i] for i in rng.integers(0, len(clusters), len(clusters))]) for _ in range(1000))
    low, high = np.percentile([figure(truth[rows], scores[rows]) for rows in drawn], [2.5, 97.5])
    return float(low), float(high)


def unigram(traces: Sequence[Trace], **params: str) -> np.ndarray:
    return np.array([score.value for score in registry.make("selfcheck_unigram", params).score(traces)], dtype=float)


@pytest.mark.shared
def test_selfcheck_unigram_on_wikibio_sentences() -> None:
    """Manakul et al. 2023, unigram (max) on all 238 passages: AUC-PR 85.63 of non-factual sentences, 58.47 of factual
    ones. This half, every sentence a trace with its passage's 20 samples: 87.8 (84.1 to 91.0) and 56.9 (47.3 to 65.2);
    the paper's model counts the rest of the passage too. A random score gives the prevalence, 72.96 of all and 73.5
    here."""
    sentences = load("wikibio_sentences").scorable()
    wrong = np.array([label == "hallucinated" for label in sentences.labels])
    passages = [trace.id.rpartition("-s")[0] for trace in sentences.traces]
    assert (len(wrong), len(set(passages)), int(wrong.sum())) == (958, 119, 704)
    scores = unigram(sentences.traces)
    low, high = interval(wrong, scores, passages, average_precision_score)
    assert low < 0.8563 < high
    assert average_precision_score(wrong, scores) == pytest.approx(0.878, abs=0.005)
    low, high = interval(~wrong, -scores, passages, average_precision_score)
    assert low < 0.5847 < high
    random = np.random.default_rng(1).random(len(wrong))
    low, high = interval(wrong, random, passages, average_precision_score)
    assert low < 0.7296 < high
    assert interval(wrong, scores, passages, average_precision_score)[0] > wrong.mean() + 0.05


@pytest.mark.shared
def test_selfcheck_unigram_on_wikibio_passages() -> None:
    """The same paper's passage ranking: Pearson 64.71 between the mean over sentences of the maxima and the annotators'
    mean score; 65.5 on this half."""
    rows = list(records("wikibio_passages"))
    truth = np.array([row["extra"]["mean_score"] for row in rows])
    scores = unigram([to_trace(row) for row in rows], statistic="mean_of_max")

    def pearson(one: np.ndarray, other: np.ndarray) -> float:
        return float(np.corrcoef(one, other)[0, 1])

    low, high = interval(truth, scores, [row["trace_id"] for row in rows], pearson)
    assert low < 0.6471 < high
    assert pearson(truth, scores) == pytest.approx(0.655, abs=0.01)


@pytest.mark.shared
@pytest.mark.parametrize(
    ("data", "published"),
    [("attributionbench", 0.79), ("ragtruth_qa", 0.76), ("faithdial_audit", 0.88), ("expertqa", 0.59)],
)
def test_word_overlap_is_the_baseline_it_should_be(data: str, published: float) -> None:
    """AUROC of 1 − word overlap, the figure that any other lexical detector is compared with."""
    labelled = load(data).scorable()
    found = zip(registry.make("word_overlap").score(labelled.traces), labelled.labels, strict=True)
    pairs = [(label == "hallucinated", -score.value) for score, label in found if score.value is not None]
    assert roc_auc_score(*zip(*pairs, strict=True)) == pytest.approx(published, abs=0.0125)
