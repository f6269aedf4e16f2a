"""What a team keeps beside traces: the newest counts, nothing is overwritten, drawn alternatives reach the traces."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from calibrate.ingest import Record
from calibrate.types import Baseline, Score, Trace, TraceFilter
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


def test_a_reply_that_was_asked_for_again_replaces_the_first(store: Store) -> None:
    """It is asked for again only where the first could not be read."""
    assert store.replies.get("k" * 64) is None
    store.replies.put("k" * 64, "judge-1", {"text": "I am not sure that I"})
    store.replies.put("l" * 64, "judge-1", {"text": "NO"})
    store.replies.put("k" * 64, "judge-1", {"text": "YES", "tokens": [["Y", -0.1]]})
    assert store.replies.get("l" * 64) == {"text": "NO"}
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
