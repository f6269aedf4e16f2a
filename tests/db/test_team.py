"""What a team keeps beside traces: the newest counts, nothing is overwritten, drawn alternatives reach the traces."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from calibrate.ingest import Record
from calibrate.types import Baseline, Evidence, Score, Trace, TraceFilter, Usage
from db import Store

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
LATER = NOW + timedelta(days=1)


def add(store: Store, *traces: Trace) -> list[str]:
    """The content hashes."""
    store.traces.add([Record(line, trace) for line, trace in enumerate(traces, 1)], labels_as=None, now=NOW)
    return [trace.content_hash() for trace in traces]


def test_the_newest_version_of_a_file_counts(store: Store) -> None:
    assert store.files.current() == {}
    store.files.save("prompts/a.txt", "first", by="ann", now=NOW)
    store.files.save("prompts/b.txt", "other", by="ann", now=NOW)
    store.files.save("prompts/a.txt", "second", by="bea", now=LATER)
    assert store.files.current() == {"prompts/a.txt": "second", "prompts/b.txt": "other"}
    assert [(one.text, one.saved_by, one.saved_at) for one in store.files.history("prompts/a.txt")] == [
        ("second", "bea", LATER),
        ("first", "ann", NOW),
    ]
    store.files.save("prompts/a.txt", None, by="bea", now=LATER)  # ours again
    assert store.files.current() == {"prompts/b.txt": "other"}


def test_the_newest_baseline_of_a_model_counts(store: Store) -> None:
    old = Baseline("entropy/mean", "m1", 1.0, 0.2, 40, NOW)
    new = Baseline("entropy/mean", "m1", 1.1, 0.3, 80, LATER)
    other = Baseline("entropy/mean", "m2", 0.7, 0.1, 40, NOW)
    store.baselines.save([old, other])
    store.baselines.save([new])
    store.baselines.save([])
    assert store.baselines.current() == {("entropy/mean", "m1"): new, ("entropy/mean", "m2"): other}


def test_a_reply_is_kept_once(store: Store) -> None:
    assert store.replies.get("k" * 64) is None
    store.replies.put("k" * 64, "judge-1", {"text": "YES", "tokens": [["Y", -0.1]]})
    store.replies.put("k" * 64, "judge-1", {"text": "another"})
    assert store.replies.get("k" * 64) == {"text": "YES", "tokens": [["Y", -0.1]]}


def test_drawn_alternatives_reach_traces_that_have_none(store: Store) -> None:
    bare, full = add(store, Trace("bare", "An answer."), Trace("full", "Another.", alternatives=("its", "own")))
    for content in (bare, full):
        store.drawn.save(content, ["one", "two"], {"model": "m"}, detectors=[], now=NOW)
    pks = [pk for chunk in store.traces.keys(TraceFilter()) for pk, _ in chunk]
    assert [trace.alternatives for trace in store.traces.load(pks)] == [("one", "two"), ("its", "own")]
    assert store.drawn.having([bare, "unknown"]) == {bare}


def test_what_was_said_without_alternatives_is_forgotten(store: Store) -> None:
    """An abstention for want of alternatives must not outlive their arrival; other detectors' scores stay."""
    (content,) = add(store, Trace("t", "An answer."))
    needs = store.scores.config("selfcheck", "1", {}, "", now=NOW)
    other = store.scores.config("overlap", "1", {}, "", now=NOW)
    for config in (needs, other):
        store.scores.save(config.id, [(content, Score("t", None, "why", "abstained"))], now=NOW)
    store.drawn.save(content, ["one", "two"], {"model": "m"}, detectors=["selfcheck"], now=LATER)
    assert store.scores.statuses(needs.id, [content]) == {}
    assert store.scores.statuses(other.id, [content]) == {content: "abstained"}


def test_a_scores_usage_comes_back(store: Store) -> None:
    (content,) = add(store, Trace("t", "An answer."))
    config = store.scores.config("judge", "1", {}, "", now=NOW)
    usage = Usage(requests=2, cached=1, prompt_tokens=900, completion_tokens=40, cost=None)
    store.scores.save(config.id, [(content, Score("t", 1.0, usage=usage))], now=NOW)
    ((_, found),) = store.scores.of_trace(1)
    assert found.usage == usage


def test_evidence_comes_back_by_trace_for_the_configuration_asked(store: Store) -> None:
    first, second = add(store, Trace("t", "An answer."), Trace("u", "Another."))
    configs = [store.scores.config("overlap", version, {}, "", now=NOW) for version in ("1", "2")]
    pieces = (Evidence("An", 0.2, 0, 2, "1", (3, 9)), Evidence("answer", None))
    store.scores.save(configs[0].id, [(first, Score("t", 1.0, evidence=pieces)), (second, Score("u", 0.0))], now=NOW)
    store.scores.save(configs[1].id, [(first, Score("t", 2.0))], now=NOW)
    pks = {trace.id: pk for pk, trace in zip((1, 2), store.traces.load([1, 2]), strict=True)}
    assert store.scores.evidence(configs[0].id, [1, 2]) == {pks["t"]: pieces, pks["u"]: ()}
    assert store.scores.evidence(configs[1].id, [1, 2]) == {pks["t"]: ()}
