"""A certificate through the store: in any number of visits, once, on labels drawn for it, by scipy's exact test."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, binomtest, hypergeom

from calibrate.cli import main
from calibrate.errors import BadInput
from calibrate.report.sentences.releasing import recalibration
from calibrate.report.sentences.releasing import release as sentences
from calibrate.report.sentences.tuning import certification
from calibrate.stats.certification.certificates import NotCertifiable, ShortfallReason
from calibrate.stats.certification.ladder import build_ladder, local_weights
from calibrate.types import Guarantee, Label
from calibrate.workflow.certification import attempts, certify, planning
from calibrate.workflow.evidence import evidence, loading
from calibrate.workflow.evidence.traffic import counted_traffic
from calibrate.workflow.releasing import release as releasing
from calibrate.workflow.releasing.candidate import build_candidate
from calibrate.workflow.sampling import sample
from calibrate.workflow.upgrade import planning as upgrade
from calibrate.workflow.upgrade import recalibrate
from db import Store, open_store
from db.releases import ReleaseRequest
from tests.workflow.certifying import WINDOW, Traffic, traffic
from tests.workflow.making import ABOVE, NOW


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Traffic]:
    """A store with traffic and first labels, to be copied: most tests need no second database, and none its making."""
    path = tmp_path_factory.mktemp("certify") / "store.db"
    world = traffic(open_store(f"sqlite:///{path}"))
    world.first()
    world.store.close()
    return path, world


@pytest.fixture
def world(template: tuple[Path, Traffic], tmp_path: Path) -> Iterator[Traffic]:
    path, made = template
    shutil.copytree(path.parent, tmp_path / "copy")
    store = open_store(f"sqlite:///{tmp_path / 'copy' / path.name}")
    yield replace(made, store=store)
    store.close()


@pytest.fixture
def lite(sqlite_url: str) -> Iterator[Store]:
    store = open_store(sqlite_url)
    yield store
    store.close()


def planned(store: Store, data: evidence.Evidence, **given: Any) -> attempts.Attempt:
    found = planning.plan(store, data, **{"seed": 5, "by": "ann", "now": NOW, **given})
    assert isinstance(found, attempts.Attempt)
    return found


def standing(store: Store) -> attempts.CertificationStatus:
    found = attempts.latest_status(store, ABOVE)
    assert found is not None
    return found


@pytest.mark.both_databases
def test_a_walk_that_is_left_after_every_step_is_resumed_and_ends_in_a_saved_point(
    store: Store, store_url: str
) -> None:
    world = traffic(store)
    data = world.first()
    assert attempts.latest_status(store, ABOVE) is None
    fixed = planned(store, data).plan

    def resumed() -> attempts.CertificationStatus:
        other = open_store(store_url)  # another process, later
        found = standing(other)
        other.close()
        assert found.attempt.plan == fixed
        return found

    assert (resumed().stage, resumed().plan.labels) == ("planned", 180)
    certify.draw(store, resumed().attempt, now=NOW)
    drawn = resumed().fresh
    assert drawn is not None
    assert (resumed().stage, drawn.size, drawn.design) == ("drawn", 180, "fresh-flagged")
    world.label(drawn, leave=40)
    assert (resumed().stage, resumed().labelled) == ("drawn", 140)
    world.label(drawn)
    assert resumed().stage == "labelled"
    certify.finish(store, resumed().attempt, now=NOW)
    done = resumed()
    assert done.stage == "certified"
    point = certify.save(store, done.attempt, by="ann", now=NOW)
    assert point.strength == "certified"
    saved = store.points.latest()[ABOVE]
    assert (saved.point.guarantee.sample, saved.data.samples) == (drawn.name, ("w47",))
    assert saved.data.n == 120 + 180


def test_the_certificate_is_scipys_exact_test_on_the_fresh_labels(world: Traffic) -> None:
    store = world.store
    data = loading.load_evidence(store, ABOVE, sample="w47")
    one = certify.draw(store, planned(store, data), now=NOW)
    drawn = standing(store).fresh
    assert drawn is not None
    world.label(drawn)
    done = certify.finish(store, one, now=NOW)
    point = certify.point_of(store, done)
    assert point.guarantee is not None
    rows = store.scores.members(done.config_id, drawn.id)
    flagged = [row for row in rows if row.value is not None and row.value >= point.threshold]
    hits = sum(world.truth[row.trace_id] for row in flagged)
    assert (point.guarantee.labels, point.guarantee.hallucinated) == (len(flagged), hits)
    exact = binomtest(hits, len(flagged), alternative="greater").proportion_ci(0.96, method="exact").low
    assert point.guarantee.bound == pytest.approx(exact, abs=1e-9)
    assert binom.sf(hits - 1, len(flagged), 0.7) <= 0.04
    assert (point.guarantee.target, point.guarantee.confidence, point.policy) == (0.7, 0.95, "precision>=0.7")
    # The flagged labels of the test count beside the first ones (Hartley 1962), each frame for a fixed share.
    assert point.n == 120 + len(rows)
    assert data.design is not None
    pool = counted_traffic(store, data)
    assert pool is not None
    deepest, w = done.plan.deepest, data.design.weights
    inside, flagged_traffic = data.scores >= deepest, int((pool.scores >= deepest).sum())
    kish = w[inside].sum() ** 2 / (w[inside] ** 2).sum()
    share = len(rows) / (len(rows) + kish)
    of_first, of_test = flagged_traffic / w[inside].sum(), (flagged_traffic - inside.sum()) / len(rows)
    beyond = (w.sum() * (1 - flagged_traffic / len(pool.scores))) / w[~inside].sum()

    def total(cut: float) -> float:
        """The hallucinated traces from this score on, of those that the deepest cut flags."""
        first = inside & data.labels & (data.scores >= cut)
        test = sum(world.truth[row.trace_id] for row in rows if row.value is not None and row.value >= cut)
        return float(share * (first.sum() + of_test * test) + (1 - share) * of_first * w[first].sum())

    missed = beyond * w[~inside & data.labels].sum()
    assert point.recall.value == pytest.approx(total(point.threshold) / (total(deepest) + missed), rel=1e-9)
    assert point.counted is not None, "all of the traffic is scored"
    assert point.flag_rate.value == point.counted.flagged / point.counted.traffic
    assert point.precision.value == pytest.approx(hits / len(flagged))
    certify.save(store, done, by="ann", now=NOW)
    file = build_candidate(
        store, ReleaseRequest(tiers={ABOVE: "page"}, by="ann"), points=store.points.latest(), previous=None, now=NOW
    )
    assert file.detectors[ABOVE].guarantee == point.guarantee
    assert sentences.cautions(file) == []


def test_test_traces_are_drawn_from_all_that_is_flagged_but_what_planned_it(store: Store) -> None:
    world = traffic(store)
    data = world.first()
    first = {member.trace_pk for member in store.samples.members(data.sample.id)}  # type: ignore[union-attr]
    sample.draw(store, "other", size=600, design="random", where=WINDOW, seed=4, now=NOW)
    one = planned(store, data, budget=150)
    cut = one.plan.deepest
    flagged = {row.pk for row in store.scores.members(data.config.id, _everything(store)) if (row.value or -9.0) >= cut}
    assert certify.available(store, one) == len(flagged - first)
    one = certify.draw(store, one, now=NOW)
    rows = attempts.fresh_rows(store, one)
    assert len(rows) == 150
    assert {row.pk for row in rows} <= flagged - first


def test_triage_does_not_bend_what_is_tested(world: Traffic) -> None:
    """On-call dismisses most false alarms of the window before anybody draws: the rest looks better than it is."""
    store = world.store
    data = loading.load_evidence(store, ABOVE, sample="w47")
    first = {member.trace_pk for member in store.samples.members(data.sample.id)}  # type: ignore[union-attr]
    one = planned(store, data, budget=150)
    everything = store.scores.members(data.config.id, _everything(store))
    frame = [row for row in everything if (row.value or -9.0) >= one.plan.deepest and row.pk not in first]
    alarms = [row for row in frame if not world.truth[row.trace_id]]
    dismissed = alarms[: round(0.8 * len(alarms))]
    store.labels.add_many([Label(row.trace_id, "on-call", "clean") for row in dismissed], now=NOW)
    one = certify.draw(store, one, now=NOW)
    drawn = {row.pk for row in attempts.fresh_rows(store, one)}
    expected = hypergeom(len(frame), len(dismissed), len(drawn))
    hits = len(drawn & {row.pk for row in dismissed})
    assert expected.ppf(0.001) <= hits <= expected.ppf(0.999)
    assert hits > 5
    assert attempts.status_of(store, one).labelled == hits  # their verdicts count as they stand
    world.label(standing(store).fresh)  # type: ignore[arg-type]
    outcome = certify.finish(store, one, now=NOW).outcome
    assert outcome is not None
    truly = sum(world.truth[row.trace_id] for row in frame) / len(frame)
    step = outcome.walk[-1]
    assert abs(step.hallucinated / step.labels - truly) < 0.12


def _everything(store: Store) -> int:
    return sample.draw(store, "everything", size=3000, design="random", where=WINDOW, seed=1, now=NOW).id


def test_the_same_seed_plans_and_draws_alike(world: Traffic) -> None:
    store = world.store
    data = loading.load_evidence(store, ABOVE, sample="w47")
    one, other = planned(store, data), planned(store, data)
    assert one.plan == other.plan
    with pytest.raises(BadInput, match="there is a newer plan"):
        certify.draw(store, one, now=NOW)
    assert planned(store, data, seed=6).plan != one.plan
    assert one.plan.attempt == 1  # what is not drawn costs nothing


def test_nothing_is_tested_while_a_label_is_missing_not_even_a_skipped_one(world: Traffic) -> None:
    store = world.store
    one = planned(store, loading.load_evidence(store, ABOVE, sample="w47"))
    with pytest.raises(BadInput, match="no test traces are drawn yet"):
        certify.finish(store, one, now=NOW)
    one = certify.draw(store, one, now=NOW)
    drawn = standing(store).fresh
    assert drawn is not None
    world.label(drawn, leave=3)
    for member in store.samples.members(drawn.id)[-3:]:
        store.labels.skip(member.trace_pk, sample_id=drawn.id, labeller="ann", now=NOW)
    with pytest.raises(BadInput, match="3 of the 180 test traces have no label yet"):
        certify.finish(store, one, now=NOW)
    with pytest.raises(BadInput, match="attempt 1 on these labels is under way"):
        planned(store, loading.load_evidence(store, ABOVE, sample="w47"))
    assert standing(store).stage == "drawn"
    with pytest.raises(BadInput, match="nothing is certified"):
        certify.save(store, one, by="ann", now=NOW)
    world.label(drawn, verdicts=dict.fromkeys(range(177, 180), "unsure"))
    outcome = certify.finish(store, one, now=NOW).outcome
    assert outcome is not None
    assert outcome.unsure == 3


def test_drawing_and_finishing_twice_give_what_stands(world: Traffic) -> None:
    store = world.store
    one = planned(store, loading.load_evidence(store, ABOVE, sample="w47"))
    drawn = certify.draw(store, one, now=NOW)
    assert certify.draw(store, one, now=NOW) == drawn == certify.draw(store, drawn, now=NOW)
    sample_of = standing(store).fresh
    assert sample_of is not None
    world.label(sample_of)
    first = certify.finish(store, drawn, now=NOW)
    # Were the labels better now, the outcome is still that of the one test.
    world.label(sample_of, verdicts=dict.fromkeys(range(180), "clean"))
    assert certify.finish(store, drawn, now=NOW) == first == certify.finish(store, first, now=NOW)
    assert len(store.samples.list()) == 2


def test_a_certificate_outlives_later_attempts_and_not_its_labels(world: Traffic) -> None:
    store = world.store
    data = loading.load_evidence(store, ABOVE, sample="w47")
    one = certify.draw(store, planned(store, data), now=NOW)
    drawn = attempts.status_of(store, one).fresh
    assert drawn is not None
    world.label(drawn)
    sure = certify.point_of(store, certify.finish(store, one, now=NOW)).guarantee
    assert sure is not None
    other = planned(store, world.first(name="w48", seed=2), target=0.8)
    assert standing(store).attempt.id == other.id
    kept = attempts.certified(store, ABOVE, data.config.id, 0.7)
    assert kept is not None
    assert kept.attempt.id == one.id
    assert attempts.certified(store, ABOVE, data.config.id, 0.8) is None
    assert attempts.overturned(store, ABOVE, sure) is None
    world.label(drawn, verdicts=dict.fromkeys(range(drawn.size), "clean"))
    said = attempts.overturned(store, ABOVE, sure)
    assert said is not None
    assert f"{sure.hallucinated} of {sure.labels} were hallucinated, 0 are now" in certification.overturned(said)


def test_a_certificate_whose_labels_changed_is_told_wherever_it_is_asked_for(
    lite: Store, sqlite_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = traffic(lite)
    one = certify.draw(lite, planned(lite, world.first()), now=NOW)
    drawn = standing(lite).fresh
    assert drawn is not None
    world.label(drawn)
    certify.save(lite, certify.finish(lite, one, now=NOW), by="ann", now=NOW)
    releasing.release(lite, ReleaseRequest(by="ann"), now=NOW)
    assert standing(lite).overturned is None
    world.label(drawn, verdicts={**dict.fromkeys(range(60), "unsure"), **dict.fromkeys(range(60, 100), "clean")})
    lost, out = standing(lite).overturned, tmp_path / "t.json"
    assert lost is not None
    outcome = standing(lite).outcome
    assert outcome is not None
    flagged = [row.gold for row in attempts.fresh_rows(lite, one) if (row.value or 0.0) >= (outcome.cut or 0.0)]
    assert lost.unsure == flagged.count("unsure") > 0
    said = f"{lost.hallucinated} are now and {lost.unsure} of the rest are unsure or disputed"
    assert said in certification.status(standing(lite))

    assert main(["release", "--again", "1", "--out", str(out), "--store", sqlite_url]) == 2
    assert out.is_file()
    assert "Citation validity: do not release this. Its certificate no longer holds" in capsys.readouterr().out
    plan = upgrade.plan(lite)
    unchanged = replace(plan, due=tuple(replace(due, changes=()) for due in plan.due))
    (stays,) = recalibrate.redo(lite, unchanged)
    assert "nothing of it changed, but labels of Citation validity have changed" in (recalibration.stays(stays) or "")
    assert main(["certify", ABOVE, "--store", sqlite_url]) in (0, 2)
    printed = capsys.readouterr().out
    assert said in printed
    assert "Certified" not in printed
    assert "no plan: " in printed or standing(lite).plan.attempt == 2


def test_unsure_and_disputed_labels_count_as_not_hallucinated(world: Traffic) -> None:
    store = world.store
    one = certify.draw(store, planned(store, loading.load_evidence(store, ABOVE, sample="w47")), now=NOW)
    drawn = standing(store).fresh
    assert drawn is not None
    world.label(drawn, verdicts=dict.fromkeys(range(60), "unsure"))
    for member in store.samples.members(drawn.id)[60:70]:
        for who, verdict in (("bob", "clean"), ("cat", "hallucinated")):
            store.labels.add(member.trace_pk, Label("", who, verdict), sample_id=drawn.id, now=NOW)  # type: ignore[arg-type]
    outcome = certify.finish(store, one, now=NOW).outcome
    assert outcome is not None
    assert outcome.unsure == 70
    rows = attempts.fresh_rows(store, one)
    for step in outcome.walk:
        flagged = [row for row in rows if row.value is not None and row.value >= step.cut]
        definite = sum(row.gold == "hallucinated" for row in flagged)
        assert (step.labels, step.hallucinated) == (len(flagged), definite)
    assert "70 unsure or disputed counted as not hallucinated" in certification.status(standing(store))


def test_traces_that_share_sources_are_tested_by_rows_and_by_sources(lite: Store) -> None:
    world = traffic(lite, grouped=True)  # neighbours in score share sources
    one = certify.draw(lite, planned(lite, world.first()), now=NOW)
    drawn = standing(lite).fresh
    assert drawn is not None
    world.label(drawn)
    outcome = certify.finish(lite, one, now=NOW).outcome
    assert outcome is not None
    rows = attempts.fresh_rows(lite, one)
    assert outcome.repeats == len(rows) - len({row.group for row in rows}) > 20
    step = outcome.walk[-1]
    assert (step.labels, step.sources) == (len(rows), len({row.group for row in rows}))
    assert outcome.guarantee is not None
    passed = [each for each in outcome.walk if each.outcome == "passed"][-1]
    for hits, labels in ((passed.hallucinated, passed.labels), (passed.first_hallucinated, passed.sources)):
        assert labels is not None
        assert hits is not None
        assert binom.sf(hits - 1, labels, 0.7) <= 0.04
    # A label that only the test by sources counts as the first of its source: the certificate is its, too.
    assert attempts.overturned(lite, ABOVE, outcome.guarantee) is None


def test_a_failed_attempt_says_what_another_takes_and_that_one_spends_the_next_level(store: Store) -> None:
    world = traffic(store)
    data = world.first()
    one = certify.draw(store, planned(store, data, budget=60), now=NOW)
    drawn = standing(store).fresh
    assert drawn is not None
    rows = attempts.fresh_rows(store, one)
    # The labels of a bad day: at the strictest cut a seventh is clean whatever it is.
    start = one.plan.cuts[0]
    top = [place for place, row in enumerate(rows) if row.value is not None and row.value >= start]
    world.label(drawn, verdicts=dict.fromkeys(top[::7], "clean"))
    failed = certify.finish(store, one, now=NOW)
    outcome = failed.outcome
    assert outcome is not None
    assert (outcome.cut, outcome.guarantee, standing(store).stage) == (None, None, "not certifiable")
    assert outcome.needed is not None
    assert f"about {outcome.needed} more flagged labels would do" in certification.status(standing(store))
    again = planned(store, data)
    second = again.plan
    assert (second.attempt, second.alpha, second.level) == (2, 0.05, pytest.approx(0.008))
    assert second.labels <= outcome.needed == again.terms.budget
    assert second.chance > 0.5
    assert again.plan.precision != one.plan.precision  # it has learnt of the labels in between
    again = certify.draw(store, again, fewer=True, now=NOW)
    assert not {row.pk for row in attempts.fresh_rows(store, again)} & {row.pk for row in rows}
    assert [one.id for one in attempts.siblings(store, again)] == [again.id, failed.id]
    assert failed.outcome == outcome


def test_another_sample_is_another_attempt(world: Traffic) -> None:
    store = world.store
    one = certify.draw(store, planned(store, loading.load_evidence(store, ABOVE, sample="w47"), budget=40), now=NOW)
    assert one.plan.attempt == 1
    other = planned(store, world.first(name="w48", seed=9), budget=60)
    assert (other.plan.attempt, other.plan.level) == (2, pytest.approx(0.008))
    certify.draw(store, other, now=NOW)
    assert [one.name for one in store.samples.list()][::-1] == ["w47", f"{ABOVE}-test-1", "w48", f"{ABOVE}-test-2"]


def test_weighting_the_first_labels_twice_changes_nothing() -> None:
    # Test labels weigh 1, as the first do on average within an octave: so they may be weighted again together.
    rng = np.random.default_rng(8)
    rungs = build_ladder(rng.standard_normal(4000))
    first, fresh = rungs.positions(rng.standard_normal(200)), rungs.positions(1 + rng.standard_normal(90))
    once = np.concatenate([local_weights(first, rng.uniform(0.1, 90, 200)), np.ones(90)])
    assert np.allclose(local_weights(np.concatenate([first, fresh]), once), once)


def narrowed(store: Store, attempt: attempts.Attempt, n: int) -> attempts.Attempt:
    """The attempt with a window that holds the newest `n` traces it can draw."""
    first = {member.trace_pk for member in store.samples.members(store.samples.get("w47").id)}  # type: ignore[union-attr]
    rows = store.scores.members(attempt.config_id, _everything(store))
    times = sorted(
        row.timestamp
        for row in rows
        if row.timestamp and (row.value or -9.0) >= attempt.plan.deepest and row.pk not in first
    )
    where = replace(attempt.terms.where, since=times[-n])
    return replace(attempt, terms=replace(attempt.terms, where=where))


def test_too_little_traffic_says_how_much_there_is_and_what_may_be_done(world: Traffic) -> None:
    store = world.store
    one = narrowed(store, planned(store, loading.load_evidence(store, ABOVE, sample="w47")), 30)
    assert certify.available(store, one) == 30
    with pytest.raises(BadInput, match=r"asks for 180 flagged traces to test on, and 30 are there: .*detect .* --all"):
        certify.draw(store, one, now=NOW)
    one = certify.draw(store, one, fewer=True, now=NOW)
    assert len(attempts.fresh_rows(store, one)) == 30
    assert "Only 30 were there" in certification.status(standing(store))


def test_fewer_than_can_ever_pass_are_not_drawn(world: Traffic) -> None:
    store = world.store
    one = planned(store, loading.load_evidence(store, ABOVE, sample="w47"))
    few = certify.least(one.plan)
    assert binom.sf(few - 1, few, 0.7) <= 0.04 < binom.sf(few - 2, few - 1, 0.7)
    with pytest.raises(BadInput, match=f"fewer than {few} certify nothing"):
        certify.draw(store, narrowed(store, one, few - 1), fewer=True, now=NOW)
    assert standing(store).stage == "planned"


def test_a_detector_that_knows_nothing_gets_no_plan_worth_labelling_for(lite: Store) -> None:
    world = traffic(lite, good=False)
    found = planning.plan(lite, world.first(), target=0.9, seed=5, by="ann", now=NOW)
    if isinstance(found, NotCertifiable):
        assert attempts.latest_status(lite, ABOVE) is None
        assert found.why.reason == ShortfallReason.OUT_OF_REACH
    else:
        assert found.plan.chance < 0.2


def test_where_every_label_made_the_plan_new_traffic_is_the_remedy(world: Traffic) -> None:
    store = world.store
    truths = [Label(key, "ann", "hallucinated" if bad else "clean") for key, bad in world.truth.items()]
    store.labels.add_many(truths, now=NOW)
    data = replace(loading.load_evidence(store, ABOVE, sample=_name(store)), sample=None)
    result = planning.plan(store, data, seed=5, by="ann", now=NOW)
    assert isinstance(result, NotCertifiable)
    assert (result.why.reason, result.why.fresh, result.needed) == (ShortfallReason.NO_TRAFFIC, 0, None)
    assert "import and score new traffic" in certification.no_plan(result)


def _name(store: Store) -> str:
    _everything(store)
    return "everything"


def test_flagged_traces_alone_are_no_first_labels(world: Traffic) -> None:
    store = world.store
    one = certify.draw(store, planned(store, loading.load_evidence(store, ABOVE, sample="w47"), budget=40), now=NOW)
    drawn = standing(store).fresh
    assert drawn is not None
    world.label(drawn)
    with pytest.raises(BadInput, match="holds flagged traces only"):
        planned(store, loading.load_evidence(store, ABOVE, sample=drawn.name))
    assert one.terms.samples == ("w47",)


def test_the_command_says_which_labels_a_plan_stands_on(world: Traffic, capsys: pytest.CaptureFixture[str]) -> None:
    sample = world.store.samples.get("w47")
    assert sample is not None
    assert main(["certify", ABOVE, "--store", world.store.url, "--sample", "w47", "--seed", "5"]) == 0
    assert f"of {sample.size:,} labelled" in capsys.readouterr().out


def test_the_command_does_one_step_a_call_and_says_what_is_next(
    world: Traffic, capsys: pytest.CaptureFixture[str]
) -> None:
    def call(*given: str) -> tuple[int, dict[str, Any]]:
        code = main(["certify", ABOVE, "--store", world.store.url, "--json", *given])
        return code, json.loads(capsys.readouterr().out)

    steps = [call("--sample", "w47", "--seed", "5"), call("--sample", "w47", "--seed", "5"), call()]
    assert [(code, found["stage"], found["did"]) for code, found in steps] == [
        (0, "planned", "planned"), (0, "drawn", "drawn"), (0, "drawn", None)
    ]  # fmt: skip
    code, refused = call("--target", "0.8")
    assert (code, "is under way" in refused["error"]) == (2, True)
    assert call("--save")[0] == 2
    drawn = standing(world.store).fresh
    assert drawn is not None
    world.label(drawn)
    code, tested = call()
    assert (code, tested["stage"], tested["did"]) == (0, "certified", "tested")
    assert call()[1]["outcome"] == tested["outcome"]
    assert call("--save")[1]["saved"]
    assert world.store.points.latest()[ABOVE].point.guarantee == Guarantee(**tested["outcome"]["guarantee"])
    assert main(["certify", ABOVE, "--store", world.store.url]) == 0
    assert "Certified: of what is flagged at" in capsys.readouterr().out


def test_a_plan_that_cannot_go_on_says_how_it_can(
    lite: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan of an older version may ask for more traces than there are; today's has too little chance with those."""
    world = traffic(lite, n=400)
    world.first(60)
    here = ("certify", ABOVE, "--store", lite.url)
    assert main([*here, "--sample", "w47", "--labels", "300", "--seed", "5"]) == 2
    assert "import and score new traffic" in capsys.readouterr().out
    monkeypatch.setattr(planning, "REPLANS", 0)
    assert main([*here, "--sample", "w47", "--labels", "300", "--seed", "5"]) == 0
    at = standing(lite)
    there = certify.available(lite, at.attempt)
    assert certify.least(at.plan) <= there < at.plan.labels
    assert f"or `certify {ABOVE} --fewer` draws these" in capsys.readouterr().out
    assert main(here) == 2
    assert f"draw these {there} (`certify {ABOVE} --fewer`)" in capsys.readouterr().err
    assert main([*here, "--fewer"]) == 0
    assert standing(lite).stage == "drawn"
