"""What is said of an attempt to certify follows from its figures."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from calibrate.report.sentences.tuning.certification import no_plan, status
from calibrate.stats.certification.certificates import NotCertifiable, Plan, Shortfall, ShortfallReason, Step
from calibrate.types import Guarantee, Interval, Sample, TraceFilter
from calibrate.workflow.certification.attempts import Attempt, CertificationStatus, Outcome, Terms

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
PLAN = Plan(0.7295, (0.81, 0.62), (0.01, 0.03), ((0.8, 0.7, 0.9), (0.75, 0.6, 0.85)), 40, 0.82, 0.05, 0.02, 1, "above")
PLANNED = CertificationStatus(
    Attempt(1, "nli", 1, None, PLAN, Terms((), TraceFilter(), 60, 1), None, "ann", NOW), None, 0
)
FAILED = (Step(0.81, 30, 15, 0.9, 0.4, "failed"), Step(0.62, 40, 30, 0.4, 0.6, "not tested"))


def ended(outcome: Outcome) -> CertificationStatus:
    return replace(PLANNED, attempt=replace(PLANNED.attempt, outcome=outcome))


def drawn(size: int) -> CertificationStatus:
    sample = Sample(2, "fresh", "fresh-flagged", None, size, 1, 90, 0, TraceFilter(), {}, NOW)
    return replace(PLANNED, fresh=sample, labelled=7)


def test_a_plan_says_what_it_takes_and_whether_that_is_likely() -> None:
    promise = "Attempt 1: label 40 test traces of those flagged at ≥ 0.62; chance to certify a precision of 72.95%: "
    spent = "Attempt 1 at 72.95% on this traffic may err in 2%, all of them together in 5%: 1% is left for others."
    assert status(PLANNED) == f"{promise}about 82%. {spent}"
    slim = status(replace(PLANNED, attempt=replace(PLANNED.attempt, plan=replace(PLAN, chance=0.3))))
    assert (
        slim
        == f"{promise}about 30%. That is little: label more of the sample first, or allow more test labels. {spent}"
    )


def test_a_shortage_is_named_only_where_there_is_one() -> None:
    assert status(drawn(40)).endswith("about 82%. 7 of 40 are labelled.")
    assert status(drawn(39)).endswith("about 82%. Only 39 were there to draw. 7 of 39 are labelled.")


def test_a_certificate_names_its_labels_and_what_was_left_out() -> None:
    sure = Guarantee("certified", 0.7295, 0.95, 0.74, 38, 33, "fresh")
    certified = ended(Outcome(0.62, sure, None, None, 0, 0, FAILED))
    assert status(certified) == (
        "Certified: of what is flagged at ≥ 0.62, at least 72.95% is hallucinated (33 of 38 test labels were), "
        "tested so that at most 5% of such certificates are wrong, for the traffic drawn from. "
        "Attempt 1 at 72.95% on this traffic may err in 2%, all of them together in 5%: 1% is left for others."
    )
    noted = ended(Outcome(0.62, sure, None, None, 2, 1, FAILED))
    assert (
        "drawn from. Of the labels, 2 unsure or disputed counted as not hallucinated; 1 that share sources with "
        "another were left out of the test by sources."
    ) in status(noted)


@pytest.mark.parametrize(
    ("why", "needed", "text"),
    [
        (Shortfall(ShortfallReason.FAILED), None, "to be sure of a precision of 72.95%"),
        (Shortfall(ShortfallReason.MORE_LABELS), 120, "; about 120 more flagged labels would do, with a chance of 80%"),
        (
            Shortfall(ShortfallReason.OUT_OF_REACH, best=Interval(0.42, 0.3, 0.55)),
            None,
            "; not reachable with this detector: its best cut has a precision of about 42% (30–55%); lower the target "
            "or take another",
        ),
        (
            Shortfall(ShortfallReason.TOO_MANY, fresh=900),
            None,
            "; 2,000 more flagged labels would not do: label another sample of the whole traffic to know the scores "
            "better, lower the target, or take another detector",
        ),
        (
            Shortfall(ShortfallReason.NO_TRAFFIC, fresh=0, labels=180),
            None,
            "; about 180 more flagged labels would do, and the 0 traces left to draw from do not give so many: import "
            "and score new traffic, then certify again",
        ),
    ],
)
def test_a_failure_says_what_another_attempt_would_take(why: Shortfall, needed: int | None, text: str) -> None:
    failed = status(ended(Outcome(None, None, why, needed, 0, 0, FAILED)))
    assert failed.startswith("Not certified: of the 30 labels flagged at 0.81, 15 are hallucinated: too few")
    assert f"{text}. Attempt 1 at" in failed
    shared = replace(FAILED[0], sources=12, first_hallucinated=5)
    assert "15 are hallucinated (5 of 12 with one label a source): too few" in status(
        ended(Outcome(None, None, why, needed, 0, 0, (shared,)))
    )
    nothing = no_plan(NotCertifiable(why, needed, None, 0.7295, 0.05, ()))
    assert nothing.startswith("the labels so far give no cut worth testing")


def test_an_attempt_of_an_older_store_keeps_its_sentence() -> None:
    old = Outcome(None, None, "too few labels then", None, 0, 0, FAILED)
    assert status(ended(old)).startswith("Not certified: too few labels then. Attempt 1")
