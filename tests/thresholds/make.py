"""Releases to test with: one plain one, and any one that hypothesis can think of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from calibrate.probability import JudgedMap, ProbabilityMap
from calibrate.stats.ensembles import rules as ensemble
from calibrate.thresholds import (
    Cuts,
    Data,
    DetectorEntry,
    Drawn,
    EnsembleEntry,
    EnsembleMetrics,
    Metrics,
    Sampling,
    ThresholdsFile,
    Window,
)
from calibrate.types import FlagWhen, Guarantee, Interval, Segments, SegmentThreshold

NOW = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
DIGEST = "sha256:" + "0" * 64
MAP = JudgedMap(
    ProbabilityMap(0.6, 0.2, (-1.0, 1.5, -0.0), "below"), 300, 41, Interval(0.09, 0.07, 0.12), Interval(0.01, 0.0, 0.05)
)
CERTIFIED = Guarantee("certified", 0.7, 0.95, 0.733, 84, 69, "fresh")


def entry(threshold: float = 0.52, flag_when: str = "below", tier: str = "signal", **changes: Any) -> DetectorEntry:
    metrics = Metrics(
        precision=Interval(0.81, 0.65, 0.92),
        recall=Interval(0.44, 0.31, 0.58),
        fpr=Interval(0.03, 0.01, 0.06),
        flag_rate=Interval(0.08, 0.05, 0.12),
        n=300,
        positives=41,
    )
    known = {
        "version": "1", "params": {"variant": "default"}, "revision": "", "flag_when": flag_when,
        "threshold": threshold, "tier": tier, "policy": "precision>=0.7", "metrics": metrics, "coverage": 0.97,
        "feasible": True,
    }  # fmt: skip
    return DetectorEntry(**{**known, **changes})


def release(detectors: dict[str, DetectorEntry] | None = None, **changes: Any) -> ThresholdsFile:
    known: dict[str, Any] = {
        "version": 2, "released_at": NOW, "released_by": "mara", "note": "after the model upgrade", "replaces": 1,
        "detectors": {"citation_grounding": entry()} if detectors is None else detectors,
        "data": Data("2026-W46", "random", DIGEST, 300, 41, Window(None, NOW), ("gpt-4o",)),
    }  # fmt: skip
    return ThresholdsFile(**{**known, **changes})


texts = st.text(st.characters(codec="utf-8"), max_size=20)
finite = st.floats(allow_nan=False, allow_infinity=False)
shares = st.none() | st.floats(0, 1)
leaves = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | finite | texts
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3))
objects = st.dictionaries(texts, values, max_size=3)
extras = st.dictionaries(texts.map("x-{}".format), values, max_size=2)
times = st.datetimes(datetime(1000, 1, 1), datetime(9999, 1, 1), timezones=st.just(UTC))
names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.:@/+-]{0,20}", fullmatch=True)


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    low, high = sorted([draw(st.floats(0, 1)), draw(st.floats(0, 1))])
    return Interval(draw(shares), draw(st.sampled_from([low, None])), draw(st.sampled_from([high, None])))


@st.composite
def counts(draw: st.DrawFn) -> dict[str, Any]:
    n = draw(st.integers(0, 10**6))
    return {"n": n, "positives": draw(st.integers(0, n))}


@st.composite
def windows(draw: st.DrawFn) -> Window:
    since, until = sorted([draw(times), draw(times)])
    return Window(draw(st.sampled_from([since, None])), draw(st.sampled_from([until, None])))


@st.composite
def guarantees(draw: st.DrawFn) -> Guarantee:
    hallucinated, labels = sorted([draw(st.integers(0, 10**6)), draw(st.integers(0, 10**6))])
    target, bound = sorted([draw(st.floats(0.01, 0.99)), draw(st.floats(0.01, 1))])
    return Guarantee(
        strength=draw(st.sampled_from(["bounded", "certified"])),
        target=min(target, 0.99),
        confidence=draw(st.floats(0.01, 0.99)),
        bound=bound,
        labels=labels,
        hallucinated=hallucinated,
        sample=draw(st.none() | texts),
    )


@st.composite
def maps(draw: st.DrawFn, flag_when: FlagWhen) -> JudgedMap:
    positives, n = sorted([draw(st.integers(0, 10**6)), draw(st.integers(0, 10**6))])
    spread = draw(st.floats(0, exclude_min=True, allow_infinity=False))
    found = ProbabilityMap(draw(finite), spread, (draw(finite), draw(finite), draw(finite)), flag_when)
    return JudgedMap(found, n, positives, draw(intervals()), draw(intervals()))


@st.composite
def segments(draw: st.DrawFn) -> Segments:
    names = texts.filter(bool)
    by = draw(st.sampled_from(["operation", "model", "language"]) | names.map("attributes.{}".format))
    own = {
        name: SegmentThreshold(
            draw(finite), **draw(counts()), precision=draw(intervals()), recall=draw(intervals()),
            guarantee=draw(st.none() | guarantees()),
        )
        for name in draw(st.sets(names, min_size=1, max_size=3))
    }  # fmt: skip
    return Segments(by, own)


samplings = st.builds(Sampling, st.floats(0, 1, exclude_min=True), st.dictionaries(texts, texts, max_size=2))


@st.composite
def designs(draw: st.DrawFn) -> Drawn:
    size, pool = sorted([draw(st.integers(0, 10**6)), draw(st.integers(0, 10**6))])
    strata = draw(st.dictionaries(texts, st.tuples(st.integers(5, 9), st.integers(0, 5)), max_size=2))
    return Drawn(draw(texts.filter(bool)), draw(st.none() | texts), pool, size, strata)


@st.composite
def standings(draw: st.DrawFn, flag_when: FlagWhen) -> ensemble.Standing:
    knots = sorted(draw(st.sets(st.floats(-100, 100).map(lambda x: x + 0.0), max_size=5)))
    above, normals = (
        draw(st.lists(st.floats(low, high), min_size=len(knots), max_size=len(knots)))
        for low, high in ((0, 1), (-4, 4))
    )
    return ensemble.Standing(flag_when, tuple(knots), tuple(above), tuple(normals))


@st.composite
def rules(draw: st.DrawFn, ways: dict[str, FlagWhen]) -> ensemble.Rule:
    """Any rule over some of these detectors, with scores between about -100 and 100."""
    small, weights = st.floats(-5, 5), st.floats(0.1, 5)
    names = sorted(draw(st.sets(st.sampled_from(sorted(ways)), min_size=1)))
    form = draw(st.sampled_from(["vote", "fixed", "weighted", "logistic", "cascade"]))
    if form == "fixed":
        own = {name: (ways[name], draw(st.floats(-100, 100))) for name in names}
        return ensemble.Fixed(draw(st.integers(1, len(names))), own)
    if form == "logistic":
        inputs = {
            name: ensemble.Input(ways[name], draw(small), draw(weights), draw(small), draw(small)) for name in names
        }
        return ensemble.Logistic(draw(small), inputs)
    each = {name: draw(standings(ways[name])) for name in names}
    if form == "vote":
        return ensemble.Vote(draw(st.integers(1, len(names))), each)
    mean = ensemble.Weighted({name: draw(weights) * draw(st.sampled_from([1, -1])) for name in names}, each)
    if form == "weighted":
        return mean
    last = draw(st.sampled_from(sorted(ways)))
    return ensemble.Cascade(mean, draw(st.none() | small), last, draw(standings(ways[last])))


@st.composite
def ensembles(draw: st.DrawFn, ways: dict[str, FlagWhen]) -> EnsembleEntry:
    rule = draw(rules(ways))
    signal, page = sorted([draw(st.floats(-3, 3)), draw(st.floats(-3, 3))])
    figures: dict[str, Any] = {name: draw(intervals()) for name in ("precision", "recall", "flag_rate")}
    return EnsembleEntry(
        rule=ensemble.to_json(rule),
        members=rule.detectors,
        cuts=Cuts(draw(st.sampled_from([page, None])), draw(st.sampled_from([signal, None]))),
        metrics=EnsembleMetrics(**figures, **draw(counts())),
        budget=draw(st.floats(0, 1, exclude_min=True)),
        extra=draw(extras),
    )


@st.composite
def entries(draw: st.DrawFn) -> DetectorEntry:
    flag_when: FlagWhen = draw(st.sampled_from(["above", "below"]))
    figures: dict[str, Any] = {name: draw(intervals()) for name in ("precision", "recall", "fpr", "flag_rate")}
    return DetectorEntry(
        version=draw(texts.filter(bool)),
        params=draw(objects),
        revision=draw(texts),
        flag_when=flag_when,
        threshold=draw(finite),
        tier=draw(st.sampled_from(["page", "signal", "off"])),
        policy=draw(texts.filter(bool)),
        metrics=Metrics(**figures, **draw(counts())),
        coverage=draw(st.floats(0, 1)),
        feasible=draw(st.booleans()),
        guarantee=draw(st.none() | guarantees()),
        probability_map=draw(st.none() | maps(flag_when)),
        sampling=draw(st.none() | samplings),
        segments=draw(st.none() | segments()),
        extra=draw(extras),
    )


@st.composite
def releases(draw: st.DrawFn) -> ThresholdsFile:
    version = draw(st.integers(2, 10**6))
    baseline = st.dictionaries(texts, finite, max_size=2)
    detectors = draw(st.dictionaries(names, entries(), max_size=3))
    ways = {name: one.flag_when for name, one in detectors.items()}
    several = st.dictionaries(names.map("all {}".format), ensembles(ways), max_size=2) if ways else st.just({})
    return ThresholdsFile(
        version=version,
        released_at=draw(times),
        released_by=draw(texts.filter(bool)),
        note=draw(texts),
        replaces=draw(st.none() | st.integers(1, version - 1)),
        detectors=detectors,
        ensembles=draw(several),
        data=Data(
            sample=draw(st.none() | texts),
            design=draw(st.none() | texts),
            label_set_digest=DIGEST,
            **draw(counts()),
            window=draw(st.none() | windows()),
            models=tuple(draw(st.lists(texts, max_size=3))),
            samples=draw(st.dictionaries(texts, designs(), max_size=2)),
            extra=draw(extras),
        ),
        baselines=draw(st.dictionaries(texts, st.dictionaries(names, baseline, max_size=2), max_size=2)),
        extra=draw(extras),
    )
