"""What traces say of models and prompts: their traffic, their labels, and whether a newer one is better."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest
from scipy.stats import binomtest

from calibrate.cli import main
from calibrate.report.sentences.watching import models as sentences
from calibrate.types import Interval, Label, Record, Trace, TraceFilter
from calibrate.workflow.evidence.basis import Caution, Chosen
from calibrate.workflow.releasing import release
from calibrate.workflow.traces.stated_samples import keep_stated
from calibrate.workflow.upgrade import models_seen as step
from db import Store
from db.releases import ReleaseRequest
from tests.stats.wilson import mended
from tests.workflow.making import NOW, draw, fill, keep_sample, save

MONDAY = datetime(2026, 11, 2, 8, tzinfo=UTC)


def logged(store: Store, prompt: str | None, *, start: int, clean: int, bad: int, unlabelled: int = 0) -> None:
    """Traces of one prompt version, one an hour from `start` days after MONDAY."""
    labels = ["clean"] * clean + ["hallucinated"] * bad + [None] * unlabelled
    records = []
    for place, verdict in enumerate(labels):
        trace = Trace(
            f"{prompt}-{start}-{place}",
            answer=f"answer {prompt} {start} {place}",
            timestamp=MONDAY + timedelta(days=start, hours=place),
            model="m",
            attributes={"prompt_version": prompt},
        )
        label = () if verdict is None else (Label(trace.id, "", verdict),)  # type: ignore[arg-type]
        records.append(Record(place + 1, trace, label))
    store.traces.add(records, labels_as="gold", now=NOW)


def test_every_value_with_its_traffic_and_its_labels(store: Store) -> None:
    logged(store, "lax", start=0, clean=30, bad=18, unlabelled=12)
    logged(store, "strict", start=7, clean=28, bad=2, unlabelled=10)
    logged(store, None, start=1, clean=0, bad=0, unlabelled=20)
    every = [line.id for line in store.traces.page(TraceFilter(), limit=200).lines]
    keep_stated(store, "labels", every, design="random", now=NOW)
    found = step.registry(store, by="prompt_version")
    assert [(one.name, one.traces, one.labels, one.hallucinated) for one in found.values] == [
        ("strict", 40, 30, 2), ("(none)", 20, 0, 0), ("lax", 60, 48, 18),
    ]  # fmt: skip
    strict, nothing, lax = found.values
    assert (strict.first, strict.last) == (MONDAY + timedelta(days=7), MONDAY + timedelta(days=8, hours=15))
    assert lax.share == 0.5
    assert nothing.prevalence == Interval(None)
    for one in (strict, lax):
        assert one.prevalence.value == pytest.approx(one.hallucinated / one.labels)
        assert (one.prevalence.low, one.prevalence.high) == pytest.approx(
            mended(one.hallucinated, one.labels), rel=0.03
        )
    assert found.per == "day"
    assert found.traffic["strict"] == {date(2026, 11, 9): 16, date(2026, 11, 10): 24}
    assert isinstance(found.step, step.Step)
    assert (found.step.older, found.step.newer) == (lax, strict)
    assert found.step.is_significant
    said = sentences.step(found.step)
    assert re.match(r"strict hallucinated 6.7% \(.*%\) of 30 labels; lax hallucinated 38% \(.*%\) of 48 labels", said)
    assert "31 points fewer (95% interval " in said
    assert "Their times differ (9 to 10 Nov 2026 against 2 to 4 Nov 2026)" in said


def test_a_long_time_is_told_in_weeks_and_few_labels_tell_nothing(store: Store) -> None:
    logged(store, "v1", start=0, clean=3, bad=1)
    logged(store, "v2", start=70, clean=4, bad=0)
    found = step.registry(store, by="prompt_version")
    assert found.per == "week"
    assert found.traffic == {"v2": {date(2027, 1, 11): 4}, "v1": {date(2026, 11, 2): 4}}
    assert isinstance(found.step, step.Step)
    assert not found.step.is_significant
    said = sentences.step(found.step)
    assert "no significant difference on these labels. Their times differ (1" in said


def test_what_no_labels_can_tell_is_not_compared(store: Store) -> None:
    logged(store, "lax", start=0, clean=6, bad=6)
    logged(store, "strict", start=0, clean=10, bad=2)
    found = step.registry(store, by="prompt_version")
    assert isinstance(found.step, step.NoStep)
    assert sentences.no_step(found.step).startswith("neither is the newer one")
    logged(store, "later", start=3, clean=10, bad=0)
    assert isinstance(step.registry(store, by="prompt_version").step, step.Step)
    logged(store, "last", start=4, clean=0, bad=0, unlabelled=1)
    found = step.registry(store, by="prompt_version")
    assert (found.step, found.caution) == (step.NoStep("caution"), Caution(Chosen.UNSTATED))
    assert {value.labels for value in found.values} == {12, 10, 0}
    assert {value.prevalence for value in found.values} == {Interval(None)}
    assert sentences.no_step(found.step).startswith("these labels were not chosen to describe the traffic")


def test_the_models_of_the_release_are_known_and_later_ones_are_not(store: Store) -> None:
    labels, scores = draw()
    fill(store, labels, scores)
    save(store, "elbow")
    release.release(store, ReleaseRequest(by="ann"), now=NOW)
    trace = Trace("new", "an answer", model="c", timestamp=NOW)
    store.traces.add([Record(1, trace, ())], labels_as=None, now=NOW)
    found = step.registry(store)
    assert {one.name: one.released for one in found.values} == {"a": True, "b": True, "c": False}
    assert (found.version, found.values[0].name) == (1, "c")
    assert step.offered(store) == ["model"]


def test_the_labels_of_a_sample_are_weighted_by_its_design(store: Store) -> None:
    """One stratum holds 40 traces, the other 400: a label of each stands for 2 and for 20 of them."""
    labels = [place % 4 == 0 for place in range(40)]
    fill(store, labels, [0.5] * 40)
    strata = ["rare"] * 20 + ["rest"] * 20
    keep_sample(store, strata, {"rare": 40, "rest": 400})
    found = {one.name: one for one in step.registry(store, sample="w47").values}
    for name, one in found.items():
        here = np.array([("a" if place % 3 else "b") == name for place in range(40)])
        weights = np.array([2.0 if stratum == "rare" else 20.0 for stratum in strata])
        bad = np.array(labels)
        assert one.prevalence.value == pytest.approx(weights[here & bad].sum() / weights[here].sum())
        assert one.prevalence.low < one.prevalence.value < one.prevalence.high  # type: ignore[operator]
        # No sharper than if all its labels weighed alike.
        theirs = binomtest(int((here & bad).sum()), int(here.sum())).proportion_ci(method="wilson")
        assert one.prevalence.high - one.prevalence.low > 0.8 * (theirs.high - theirs.low)  # type: ignore[operator]
    assert step.registry(store, sample="w47").caution is None


@pytest.mark.parametrize(
    ("newer", "older", "expected"),
    [  # Newcombe, Statistics in Medicine 17 (1998), table II, method 10: contrasts (a), (b), (c)
        ((56, 70), (48, 80), (0.2000, 0.0524, 0.3339)),
        ((9, 10), (3, 10), (0.6000, 0.1705, 0.8090)),
        ((6, 7), (2, 7), (0.5714, 0.0582, 0.8062)),
    ],
)
def test_the_difference_is_newcombes(
    newer: tuple[int, int], older: tuple[int, int], expected: tuple[float, float, float]
) -> None:
    def share(hits: int, n: int) -> Interval:
        bounds = binomtest(hits, n).proportion_ci(method="wilson")
        return Interval(hits / n, bounds.low, bounds.high)

    found = step.difference(share(*newer), share(*older))
    assert (found.value, found.low, found.high) == pytest.approx(expected, abs=6e-5)
    assert step.difference(share(*newer), Interval(None)) == Interval(None)


@pytest.mark.both_databases
def test_the_verb_says_the_same(store: Store, store_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    logged(store, "lax", start=0, clean=30, bad=18)
    logged(store, "strict\n|v2", start=7, clean=28, bad=2)
    assert main(["seen", "--by", "prompt_version", "--store", store_url]) == 0
    out = capsys.readouterr().out
    assert "31 points fewer" in out
    assert "\n|v2" not in out
    assert main(["seen", "--by", "no such", "--store", store_url]) == 2
    assert "no trace carries 'no such'; there are: model, prompt_version" in capsys.readouterr().err
