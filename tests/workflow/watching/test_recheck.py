"""A recheck through the store: in the sample's order, whatever order labels come in, decided once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from scipy.special import betainc, betaln

from calibrate.cli import main
from calibrate.errors import BadInput
from calibrate.report.sentences.releasing import recalibration
from calibrate.report.sentences.watching import recheck as sentences
from calibrate.types import Label, Member, TraceFilter
from calibrate.workflow.upgrade import planning
from calibrate.workflow.watching import recheck
from db import Store, open_store
from db.attempts import Recheck
from tests.workflow.aftermath import RELEASED, THRESHOLD, add, released, scores_of
from tests.workflow.making import ABOVE, NOW

LATER = RELEASED + timedelta(hours=1)
TARGET = 0.7


@pytest.fixture
def lite(sqlite_url: str) -> Store:
    return open_store(sqlite_url)


def traffic(store: Store, *, n: int = 2000, group: int | None = None) -> None:
    released(store)
    add(store, "new", scores_of(n, seed=2), start=LATER, group=group)


def begin(store: Store, **given: object) -> Recheck:
    usual = {"target": TARGET, "seed": 5, "by": "ann", "now": NOW}
    return recheck.begin(store, ABOVE, **{**usual, **given})  # type: ignore[arg-type]


def label(store: Store, one: Recheck, verdicts: Sequence[str], *, start: int = 0) -> None:
    """Labels the members of the sample from a place on."""
    members = store.samples.members(one.sample_id)[start : start + len(verdicts)]
    traces = store.traces.load([member.trace_pk for member in members])
    said = [Label(trace.id, "ann", verdict) for trace, verdict in zip(traces, verdicts, strict=True)]  # type: ignore[arg-type]
    store.labels.add_many(said, now=NOW)


def wealth(k: int, n: int, target: float) -> float:
    """The log e-value against "at least the target", by the closed form alone."""
    a, b = 6 * target, 6 * (1 - target)

    def mass(a: float, b: float) -> float:
        return float(betaln(a, b) + np.log(betainc(a, b, target)))

    return mass(a + k, b + n - k) - mass(a, b) - k * np.log(target) - (n - k) * np.log(1 - target)


def mixed(n: int) -> list[str]:
    """Seven of ten hallucinated: as near the target as can be."""
    return ["clean" if place % 10 < 3 else "hallucinated" for place in range(n)]


def test_a_threshold_that_fell_is_found_and_the_decision_stays(store: Store, store_url: str) -> None:
    traffic(store)
    one = begin(store)
    assert begin(store, seed=9) == one  # under way: begun again, it goes on
    at = recheck.state(store, one, now=NOW)
    assert (at.decision, at.counted, at.left, at.sample.size) == ("go on", 0, 60, 60)
    config = store.scores.get_config(one.config_id)
    rows = store.scores.members(config.id, one.sample_id)
    assert all(
        row.value is not None and row.value >= THRESHOLD and row.timestamp and row.timestamp >= RELEASED for row in rows
    )
    verdicts = ["hallucinated" if place % 3 == 0 else "clean" for place in range(60)]
    n = next(n for n in range(1, 60) if wealth(-(-n // 3), n, TARGET) >= np.log(20))
    label(store, one, verdicts[: n - 1])
    at = recheck.state(store, one, now=NOW)
    assert (at.decision, at.counted) == ("go on", n - 1)
    assert at.standing.log_fell == pytest.approx(wealth(-(-(n - 1) // 3), n - 1, TARGET))
    label(store, one, verdicts[n - 1 : n], start=n - 1)
    other = open_store(store_url)  # another process, later
    at = recheck.state(other, one, now=NOW)
    other.close()
    assert (at.decision, at.counted, at.hallucinated) == ("fell below", n, -(-n // 3))
    kept = store.rechecks.get(one.id)
    assert kept.finished_at == NOW
    label(store, one, ["hallucinated"] * (60 - n), start=n)
    label(store, one, ["hallucinated"] * n)  # even when minds change
    again = recheck.state(store, kept, now=NOW + timedelta(days=1))
    assert (again.decision, again.counted, again.standing.log_fell) == ("fell below", n, at.standing.log_fell)
    assert store.rechecks.get(one.id) == kept
    assert "fell below 70%" in sentences.verdict(again)
    assert begin(store, seed=6).id != one.id  # a new test, of other traces


def test_a_threshold_that_holds_is_found(lite: Store) -> None:
    traffic(lite)
    one = begin(lite)
    label(lite, one, ["hallucinated"] * 60)
    at = recheck.state(lite, one, now=NOW)
    n = next(n for n in range(1, 60) if wealth(0, n, 1 - TARGET) >= np.log(20))
    assert (at.decision, at.counted) == ("holds", n)
    assert len(at.path.holds) == n
    assert at.standing.estimate.low is not None
    assert at.standing.estimate.low > 0.5
    assert "nothing to do" in sentences.next_step(at)


def test_labels_behind_a_skipped_trace_wait_for_it(lite: Store) -> None:
    traffic(lite)
    one = begin(lite)
    members = lite.samples.members(one.sample_id)
    label(lite, one, ["clean"] * 5)
    lite.labels.skip(members[5].trace_pk, sample_id=one.sample_id, labeller="ann", now=NOW)
    label(lite, one, ["clean"] * 30, start=6)
    at = recheck.state(lite, one, now=NOW)
    assert (at.decision, at.counted, at.waiting) == ("go on", 5, 30)
    assert "30 labels wait behind it" in sentences.next_step(at)
    label(lite, one, ["unsure"], start=5)
    at = recheck.state(lite, one, now=NOW)
    assert at.decision == "fell below"
    assert at.unsure == 1


def test_unsure_counts_against_either_decision(lite: Store) -> None:
    traffic(lite)
    one = begin(lite)
    label(lite, one, ["unsure"] * 60)
    at = recheck.state(lite, one, now=NOW)
    assert (at.decision, at.counted, at.hallucinated, at.clean, at.unsure) == ("go on", 60, 0, 0, 60)
    assert at.standing.estimate.value is None
    assert at.standing.log_fell == pytest.approx(wealth(60, 60, TARGET))
    assert at.standing.log_holds == pytest.approx(wealth(60, 60, 1 - TARGET))


def test_a_few_sources_cannot_show_that_it_holds(lite: Store) -> None:
    traffic(lite, group=1000)  # two sources
    one = begin(lite, labels=20)
    label(lite, one, ["hallucinated"] * 20)
    at = recheck.state(lite, one, now=NOW)
    assert (at.counted, at.repeats, at.standing.sources, at.decision) == (20, 18, 2, "go on")
    assert at.standing.log_rows == pytest.approx(wealth(0, 20, 1 - TARGET))
    assert at.standing.log_sources == pytest.approx(wealth(0, 2, 1 - TARGET))
    assert at.standing.log_rows > np.log(20)
    assert (
        "counted by trace it holds, but with every source counted once, 2 of 2 were hallucinated"
        in sentences.verdict(at)
    )


def test_what_busy_sources_do_to_the_traffic_is_found(lite: Store) -> None:
    """A third of the flagged is of one source and clean; the rest is nearly all hallucinated: 64% in all."""
    released(lite)
    scores = scores_of(2000, seed=2)
    add(lite, "page", scores[:700], start=LATER, group=700)
    add(lite, "rest", scores[700:], start=LATER + timedelta(minutes=700))
    one = begin(lite, labels=200)
    traces = lite.traces.load([member.trace_pk for member in lite.samples.members(one.sample_id)])
    busy = ["page" in trace.id for trace in traces]
    label(lite, one, ["clean" if page or place % 25 == 0 else "hallucinated" for place, page in enumerate(busy)])
    at = recheck.state(lite, one, now=NOW)
    assert at.decision == "fell below"
    assert at.repeats > 20
    assert at.standing.hallucinated_sources / at.standing.sources > 0.8
    assert "look at the sources that are flagged most" in sentences.verdict(at)
    kept = recheck.state(lite, lite.rechecks.get(one.id), now=NOW)
    assert (kept.decision, kept.repeats, kept.standing) == (at.decision, at.repeats, at.standing)


def weeks(store: Store, n: int, *, each: int = 400) -> None:
    """A release, and n weeks of traffic since; the last trace of each comes at its end."""
    released(store)
    for week in range(n):
        add(store, f"w{week}", scores_of(each, seed=week), start=RELEASED + timedelta(days=7 * week + 6, hours=12))


def truth_of(store: Store, one: Recheck, last: str) -> list[str]:
    """Nearly all that was flagged was hallucinated, but of the last week's one in four."""
    traces = store.traces.load([member.trace_pk for member in store.samples.members(one.sample_id)])
    return [
        "hallucinated" if (number % 4 == 0 if week == last else number % 20) else "clean"
        for week, number in ((week, int(number)) for week, number in (trace.id.split("-") for trace in traces))
    ]


def test_what_fell_this_week_is_not_hidden_by_the_weeks_before(lite: Store) -> None:
    weeks(lite, 6)
    at = NOW + timedelta(days=60)
    one = begin(lite, labels=100, now=at)
    rows = lite.scores.members(one.config_id, one.sample_id)
    newest = RELEASED + timedelta(days=41, hours=12, minutes=399)
    assert recheck.plan_of(one).where.since == (newest - timedelta(days=6)).replace(hour=0, minute=0)
    assert all(row.trace_id.startswith("w5") for row in rows)
    label(lite, one, truth_of(lite, one, "w5"))
    state = recheck.state(lite, one, now=at)
    assert state.decision == "fell below"
    period = sentences.period(state.plan)
    assert period == f"{newest.day - 6} to {newest:%-d %b %Y}"
    assert f"fell below 70% in the traffic of {period} (" in sentences.verdict(state)
    pooled = begin(lite, since=None, labels=100, now=at)
    label(lite, pooled, truth_of(lite, pooled, "w5"))
    assert recheck.state(lite, pooled, now=at).decision == "holds"  # of all the weeks that is true
    assert sentences.period(recheck.plan_of(pooled)) == f"{RELEASED:%-d %b} to {newest:%-d %b %Y}"


def test_a_period_is_fixed_and_a_longer_one_draws_from_all_of_it(lite: Store) -> None:
    weeks(lite, 3, each=150)
    at = NOW + timedelta(days=60)
    one = begin(lite, labels=200, now=at)
    state = recheck.state(lite, one, now=at)
    assert state.plan.since_release is not None
    assert state.sample.size == state.pool < state.plan.since_release
    assert f"only {state.pool} flagged trace" in (sentences.few(state) or "")
    assert f"{state.plan.since_release} since the release" in (sentences.few(state) or "")
    label(lite, one, mixed(state.pool))
    add(lite, "later", scores_of(200, seed=9), start=RELEASED + timedelta(days=20, hours=12))
    state = recheck.state(lite, one, now=at)
    assert (state.left, state.exhausted) == (0, True)  # what comes later is in another period
    assert "--since DATE` takes a longer period" in sentences.next_step(state)
    longer = begin(lite, since=RELEASED + timedelta(days=13), labels=200, now=at)
    assert longer.id != one.id
    drawn = {row.trace_id for row in lite.scores.members(longer.config_id, longer.sample_id)}
    mine = {row.trace_id for row in lite.scores.members(one.config_id, one.sample_id)}
    # Without what was drawn before, the period would be its earlier part and not itself.
    assert mine < drawn
    assert any(name.startswith("w1") for name in drawn)
    assert not any(name.startswith("w0") for name in drawn)
    early = begin(lite, since=RELEASED - timedelta(days=30), again=True, now=at)
    assert recheck.plan_of(early).where.since == RELEASED  # never before it
    assert (lite.rechecks.get(longer.id).outcome or {})["decision"] == "go on"


def test_a_recheck_of_an_earlier_version_reads_as_it_did(lite: Store) -> None:
    """It had no period and kept no label that repeats a source."""
    traffic(lite)
    one = begin(lite)
    members = [member.trace_pk for member in lite.samples.members(one.sample_id)]
    plan = {key: value for key, value in one.plan.items() if key != "since_release"}
    plan["where"] = TraceFilter(since=RELEASED, undated=False).to_json()
    n = next(n for n in range(1, 60) if wealth(n, n, TARGET) < wealth(0, n, 1 - TARGET) >= np.log(20))
    kept = {"decision": "holds", "labels": [[pk, "hallucinated"] for pk in members[:n]]}
    old = replace(one, plan=plan, outcome=kept, started_at=RELEASED + timedelta(days=3), finished_at=NOW)
    at = recheck.state(lite, old, now=NOW)
    assert (at.decision, at.counted, at.repeats) == ("holds", n, 0)
    assert sentences.period(at.plan) == f"{RELEASED.day} to {RELEASED + timedelta(days=3):%-d %b %Y}"
    assert sentences.few(at) is None


@pytest.mark.both_databases
def test_it_is_topped_up_until_nothing_is_left_and_begun_anew_on_newer_traffic(store: Store) -> None:
    traffic(store, n=400)
    one = begin(store, labels=10)
    label(store, one, mixed(9))
    recheck.more(store, one, now=NOW)  # one is left: nothing is drawn
    assert recheck.state(store, one, now=NOW).sample.size == 10
    label(store, one, ["hallucinated"], start=9)
    recheck.more(store, one, labels=5, now=NOW)
    at = recheck.state(store, one, now=NOW)
    assert (at.sample.size, at.left) == (15, 5)
    label(store, one, mixed(5), start=10)
    recheck.more(store, one, labels=500, now=NOW)
    at = recheck.state(store, one, now=NOW)
    assert at.sample.size == at.pool
    label(store, one, mixed(at.left), start=15)
    at = recheck.state(store, one, now=NOW)
    assert at.exhausted
    with pytest.raises(BadInput, match="do not decide it"):
        recheck.more(store, one, now=NOW)
    assert begin(store).id == one.id
    add(store, "newer", scores_of(200, seed=8), start=LATER + timedelta(days=3))
    fresh = begin(store)
    assert fresh.id != one.id
    assert (store.rechecks.get(one.id).outcome or {})["decision"] == "go on"


def test_what_other_samples_hold_is_drawn_from_too_and_its_labels_count(lite: Store) -> None:
    """The surest flags are labelled first, week by week: those left over would be the least precise."""
    traffic(lite)
    flagged = [place for place, score in enumerate(scores_of(2000, seed=2)) if score is not None and score >= THRESHOLD]
    keys = [lite.traces.find(f"new-{place}") or 0 for place in flagged]
    week = keys[: len(keys) // 2]
    lite.samples.add(
        "w48", design="octave", by=None, seed=1, pool=len(keys), undated=0, where=TraceFilter(),
        strata={"0.5": (len(week), len(week))}, members=[Member(key, 1.0, "0.5") for key in week], now=NOW,
    )  # fmt: skip
    lite.labels.add_many([Label(trace.id, "bob", "hallucinated") for trace in lite.traces.load(week)], now=NOW)
    one = begin(lite, labels=len(keys))
    assert {member.trace_pk for member in lite.samples.members(one.sample_id)} == set(keys)
    at = recheck.state(lite, one, now=NOW)
    assert (at.pool, at.left) == (len(keys), len(keys) - len(week))
    first = next(i for i, row in enumerate(lite.samples.members(one.sample_id)) if row.trace_pk not in week)
    assert at.counted == first
    # Who labels now is not asked for what has a verdict.
    place = lite.labels.place(one.sample_id, "ann", only_open=True)
    assert (place.position, place.size - place.labelled) == (first, at.left)
    assert lite.labels.place(one.sample_id, "ann").position == 0


def test_the_next_recheck_is_of_other_traces(lite: Store) -> None:
    traffic(lite)
    one = begin(lite)
    label(lite, one, ["hallucinated"] * 60)
    assert recheck.state(lite, one, now=NOW).done
    other = begin(lite)
    drawn = [{member.trace_pk for member in lite.samples.members(each.sample_id)} for each in (one, other)]
    assert drawn[1]
    assert not drawn[0] & drawn[1]
    assert recheck.state(lite, other, now=NOW).pool == recheck.state(lite, one, now=NOW).pool - 60


def test_what_fell_is_said_where_thresholds_are_made_anew(lite: Store) -> None:
    traffic(lite)
    one = begin(lite)
    assert recheck.fallen(lite, 1) == ()
    for place in range(20):  # within the sample, as on its page
        pk = lite.samples.members(one.sample_id)[place].trace_pk
        verdict = Label(lite.traces.load([pk])[0].id, "ann", "clean")
        lite.labels.add(pk, verdict, sample_id=one.sample_id, now=NOW)
    assert recheck.state(lite, one, now=NOW).decision == "fell below"
    (fell,) = recheck.fallen(lite, 1)
    assert sentences.verdict(fell).startswith("Citation validity fell below 70% in the traffic of ")
    assert " (0 of 6 flagged traces" in sentences.verdict(fell)
    assert sentences.verdict(fell).rstrip(".") in recalibration.reasons(planning.plan(lite))
    # Labels of flagged answers alone make no model known.
    keys = {member.trace_pk for member in lite.samples.members(one.sample_id)[:20]}
    assert lite.labels.of_flagged_only() == keys
    other = lite.samples.members(one.sample_id)[0].trace_pk
    lite.labels.add(other, Label(lite.traces.load([other])[0].id, "bob", "clean"), sample_id=None, now=NOW)
    assert lite.labels.of_flagged_only() == keys - {other}


def test_it_is_of_one_model_where_one_is_named(lite: Store) -> None:
    traffic(lite)
    with pytest.raises(BadInput, match="flagged no trace of m2"):
        begin(lite, model="m2")
    add(lite, "other", scores_of(300, seed=4), start=LATER, model="m2")
    both, only = begin(lite), begin(lite, model="m2")
    assert both.id != only.id
    rows = lite.scores.members(only.config_id, only.sample_id)
    assert {row.model for row in rows} == {"m2"}
    assert recheck.open_one(lite, ABOVE, model="m2") == only
    assert recheck.newest(lite, ABOVE) == both


def test_what_cannot_be_rechecked_is_refused_with_a_remedy(lite: Store) -> None:
    with pytest.raises(BadInput, match="nothing was released"):
        begin(lite)
    released(lite)
    with pytest.raises(BadInput, match="score the traffic first"):
        begin(lite)
    for since in (timedelta(days=14), None, RELEASED - timedelta(days=12)):  # nothing before the release is taken
        with pytest.raises(BadInput, match="begins at the release at the earliest") as refused:
            begin(lite, since=since)
        assert "earlier day" not in str(refused.value)
        assert "wait for traffic after the release" in str(refused.value)
    with pytest.raises(BadInput, match="names no precision: say which with --target"):
        begin(lite, target=None)
    with pytest.raises(BadInput, match="not in release 1"):
        recheck.begin(lite, "nli", by="ann", now=NOW)
    with pytest.raises(BadInput, match="between 0 and 1"):
        begin(lite, target=1.5)


def test_the_target_is_what_the_policy_asked_for(lite: Store) -> None:
    released(lite, policy="precision>=0.6")
    add(lite, "new", scores_of(600, seed=2), start=LATER)
    one = begin(lite, target=None)
    assert recheck.plan_of(one).target == 0.6


def test_the_verb_goes_on_from_wherever_it_stands(lite: Store, capsys: pytest.CaptureFixture[str]) -> None:
    traffic(lite)
    call = ["recheck", ABOVE, "--store", lite.url, "--target", "0.7", "--labels", "10", "--json"]

    def said(*extra: str) -> dict[str, object]:
        assert main([*call, *extra]) == 0
        return dict(json.loads(capsys.readouterr().out))

    first = said()
    assert (first["did"], first["drawn"], first["decision"]) == ("drawn", 10, "go on")
    assert said()["did"] is None
    one = lite.rechecks.of(ABOVE)[0]
    label(lite, one, ["clean", "hallucinated"] * 5)
    assert said()["did"] == "drawn more"
    label(lite, one, ["clean"] * 10, start=10)
    assert said()["decision"] == "fell below"
    assert said("--again")["decision"] == "go on"
    assert main(["recheck", ABOVE, "--store", lite.url]) == 0
    assert "next: label the sample" in capsys.readouterr().out
    assert main(["recheck", "no_such", "--store", lite.url]) == 2
    for terms, match in (
        (["--target", "0.9"], "against 70% is under way"),
        (["--labels", "0"], "--labels 0 draws nothing"),
    ):
        capsys.readouterr()
        assert main(["recheck", ABOVE, "--store", lite.url, *terms]) == 2
        assert match in capsys.readouterr().err
