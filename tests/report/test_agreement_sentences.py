"""What is said of labellers' agreement follows from its figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calibrate.report.sentences.labelling.agreement import coefficient, impossible, sentence, sentences
from calibrate.stats.labels.agreement import Agreement
from calibrate.stats.labels.sensitivity import Errors, what_if
from calibrate.types import Interval

FIGURES = Agreement(
    labellers=("ann", "bob"),
    traces=100,
    unsure=3,
    differ=16,
    both_hallucinated=20,
    both_clean=64,
    hallucinated=0.3,
    raw=Interval(0.84, 0.76, 0.9),
    positive=Interval(0.73, 0.6, 0.83),
    negative=Interval(0.88, 0.8, 0.93),
    alpha=Interval(0.61, 0.44, 0.77),
    ac1=Interval(0.71, 0.58, 0.84),
)


def test_the_headline_has_its_n_and_the_rest_follows() -> None:
    assert sentences(FIGURES) == [
        "ann and bob agree on 84% of 100 traces (76–90%).",
        "Where one says hallucinated, another does 73% of the time (60–83%).",
        "Beyond chance, α is 0.61 (0.44–0.77): too little to rely on one person's labels; agree on the rules, then "
        "label again.",
    ]
    assert sentence(replace(FIGURES, labellers=("a", "b", "c"))).startswith("3 labellers agree")


@pytest.mark.parametrize(
    ("alpha", "text"),
    [
        (Interval(0.85, 0.7, 0.95), "labels of one person can be relied on"),
        (Interval(0.75, 0.67, 0.85), "enough for tentative conclusions"),
        (Interval(0.85, 0.5, 0.95), "promising, but too few traces"),
        (Interval(0.66, 0.5, 0.8), "too little to rely on"),
        (Interval(-0.02, -0.3, 0.31), "α is −0.02 (−0.30 to 0.31)"),
    ],
)
def test_alpha_is_judged_by_its_lower_bound(alpha: Interval, text: str) -> None:
    assert text in sentence(replace(FIGURES, alpha=alpha))


@pytest.mark.parametrize(
    ("traces", "hallucinated", "text"),
    [
        (1, 0.5, "it is one trace"),
        (50, 0.0, "every verdict is the same"),
        (50, 0.4, "these traces share their sources"),
    ],
)
def test_an_unknown_alpha_has_a_reason(traces: int, hallucinated: float, text: str) -> None:
    figures = replace(FIGURES, traces=traces, hallucinated=hallucinated, alpha=Interval(None))
    assert sentence(figures).endswith(f"Agreement beyond chance is unknown: {text}.")
    assert sentence(replace(figures, traces=0)) == "No trace has a definite verdict of two of ann and bob."


def test_a_coefficient_without_an_interval_says_so() -> None:
    assert coefficient(Interval(0.5)) == "0.50 (unknown)"
    assert coefficient(Interval(None)) == "unknown"


def test_error_rates_that_cannot_be_are_explained_once() -> None:
    errors = Errors(0, 0.05)
    reasons = impossible(what_if(prevalence=0.01, precision=0.5, flag_rate=0.01, errors=errors), errors)
    assert reasons == [
        "False calls of 5% alone would make more than 1%: fewer must be false.",
        "Nothing would be hallucinated, so there would be nothing to find.",
    ]
    useless = Errors(0.6, 0.4)
    (reason,) = impossible(what_if(prevalence=0.1, precision=0.5, flag_rate=0.1, errors=useless), useless)
    assert reason.startswith("A labeller who misses")
    misses = Errors(0.2, 0)
    reasons = impossible(what_if(prevalence=0.5, precision=0.9, flag_rate=0.5, errors=misses), misses)
    assert reasons == ["With 20% missed, no more than 80% could be called hallucinated."]
    (reason,) = impossible(what_if(prevalence=0.1, precision=0.9, flag_rate=0.5, errors=Errors(0, 0)), Errors(0, 0))
    assert reason.startswith("More would be flagged than there is")
    assert impossible(what_if(prevalence=0.1, precision=0.5, flag_rate=0.1, errors=Errors(0, 0)), Errors(0, 0)) == []
