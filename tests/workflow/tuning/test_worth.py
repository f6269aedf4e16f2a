"""What a detector is worth: by the store's own labels where they say it, else by the packaged results."""

from __future__ import annotations

import numpy as np

from calibrate import registry
from calibrate.report.sentences.detection import worth as sentences
from calibrate.types import Interval
from calibrate.workflow.tuning.worth import Measured, Worth, measure_worth, packaged, ranked
from db import Store
from tests.workflow.making import ABOVE, DETECTOR, fill, give_scores


def test_without_labels_the_packaged_results_speak(store: Store) -> None:
    assert measure_worth(store) == packaged()
    assert {*packaged()} <= {*registry.names()}
    fill(store, [True, False] * 6, [0.1, 0.9] * 6)  # too few to say
    assert measure_worth(store) == packaged()


def test_own_labels_come_before_the_packaged_results(store: Store) -> None:
    rng = np.random.default_rng(2)
    labels = rng.random(160) < 0.4
    fill(store, [bool(each) for each in labels], [float(each) for each in rng.normal(0.0 - labels, 0.5)])
    traces = store.traces.load([store.traces.find(f"t{place}") or 0 for place in range(160)])
    give_scores(store, traces, [float(each) for each in rng.normal(0.0 - labels, 0.3)], name=ABOVE)  # on the wrong side
    measured = measure_worth(store)
    assert measured[DETECTOR].worth == Worth.RUN
    assert measured[DETECTOR].n == 160
    assert "over answer" in sentences.because(measured[DETECTOR])
    assert measured[ABOVE].worth == Worth.NOTHING
    assert measured["rouge_l"] == packaged()["rouge_l"]
    assert list(ranked([ABOVE, "nli", DETECTOR], measured)) == [Worth.RUN, Worth.UNMEASURED, Worth.NOTHING]


def test_under_a_heading_the_best_come_first() -> None:
    def own(value: float) -> Measured:
        return Measured(Worth.RUN, over=Interval(value, value - 0.1, value + 0.1))

    measured = {
        "a": Measured(Worth.RUN, lead=1), "b": own(0.1), "c": Measured(Worth.RUN, lead=3), "d": own(0.2),
        "e": Measured(Worth.NOTHING, lead=-2), "f": Measured(Worth.NOTHING),
    }  # fmt: skip
    assert ranked("abcdef", measured) == {Worth.RUN: ["d", "b", "c", "a"], Worth.NOTHING: ["f", "e"]}


def test_a_detector_that_only_tells_models_apart_adds_nothing(store: Store) -> None:
    """The model's own rate is a baseline: what scores a model ranks as well as that, and not better."""
    rng = np.random.default_rng(3)
    model_b = np.arange(200) % 3 == 0  # as `fill` names the models
    labels = rng.random(200) < np.where(model_b, 0.7, 0.1)
    fill(store, [bool(each) for each in labels], [float(each) for each in rng.normal(-1.0 * model_b, 0.2)])
    assert measure_worth(store)[DETECTOR].worth != Worth.RUN


def test_every_worth_has_its_words() -> None:
    for worth in Worth:
        assert sentences.heading(worth).lower() == sentences.WORDS[worth]
        assert sentences.because(Measured(worth))


def test_packaged_results_name_what_they_compared_with() -> None:
    """They compare with token overlap or with chance, and never tested length."""
    compared, alone, mixed = (Measured(Worth.RUN, gains=2, sets=3, by_chance=by) for by in (0, 3, 1))
    assert sentences.because(compared) == "a gain over token overlap on 2 of 3 public data sets"
    assert sentences.because(alone) == "better than chance on 2 of 3 public data sets"
    assert "over token overlap, or over chance where that cannot score, on 2 of 3" in sentences.because(mixed)
    assert "length" not in sentences.MEANS[Worth.NOTHING]
