"""The complete demo: ten weeks of a shop's assistant, as a team would have lived through them with Touchstone.

Every step is the function that its page and its verb call, with the clock of the day on which it is taken: traces come
in day by day, samples are drawn and labelled, thresholds are chosen and released, each evening `watch` decides what
came in, and a recheck ends when its test says so. Nothing is written past those functions, so that every figure is one
that they worked out. Runs of detectors, and the scores that they make, bear the time at which they are really made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

from calibrate.errors import BadInput
from calibrate.ingest import ImportReport
from calibrate.stats.choosing.policy import parse
from calibrate.stats.sampling import designs
from calibrate.types import PointVerdict, Sample, Tier, Trace, TraceFilter
from calibrate.workflow.demo import shop
from calibrate.workflow.detection import detect
from calibrate.workflow.evidence import loading, traffic
from calibrate.workflow.labelling import agreement, assignment
from calibrate.workflow.releasing import release
from calibrate.workflow.releasing.known_bad import state_of_choice
from calibrate.workflow.sampling import sample as sampler
from calibrate.workflow.tuning import operating_points
from calibrate.workflow.watching import recheck
from calibrate.workflow.watching.watch import Watcher
from calibrate.workflow.week.week import monday
from db import Store
from db.audit import Actor, acting_as, actor
from db.releases import ReleaseRequest

DETECTORS = ("token_overlap", "rouge_l", "citation_validity", "selfcheck_unigram")
"""Those that need no model: they score the demo in seconds on any machine."""
TARGETS = ("precision>=0.7", "precision>=0.6", "precision>=0.5")
AT_LEAST = 0.5
"""Every second flag is to be right at the least: what the team rechecks a live threshold against."""
LABELLERS = ("ada", "ben")
LEAD = "lena"
SEED = 16
OVERLAP = 0.6
TURN = 5
WEEK = timedelta(weeks=1)
PACE = timedelta(seconds=40)
"""From one label to the next."""
WORDS_A_SECOND = 4.0
"""How fast the demo's people read."""
STEPS = 22

Progress = Callable[[int, int], None]


def fill(store: Store, now: datetime, *, on_progress: Progress = lambda done, total: None) -> ImportReport:
    """Fill an empty store with the complete demo. The same moment gives the same demo.

    Raises BadInput for a store that holds traces already: the demo is not to mix with real traces.
    """
    if store.traces.count(TraceFilter(), limit=1):
        raise BadInput(
            f"the store {store.name} holds traces already; the demo goes into an empty store only: name another with "
            "--store, sqlite:///demo.db for instance"
        )
    story = _Story(store, now.astimezone(UTC), on_progress)
    story.tell()
    return ImportReport(imported=story.imported, labels=story.labels, share=1.0)


class _Story:
    """A team's weeks, one step after another. `at` is the clock: all up to this moment has happened."""

    def __init__(self, store: Store, now: datetime, on_progress: Progress) -> None:
        self.store, self.now, self._on_progress = store, now, on_progress
        self.records, self.readings = list(shop.read_traces(now)), shop.read_readings()
        self.at, self.imported, self.labels, self._steps = shop.time_of(self.records[0]), 0, 0, 0
        self._watcher: Watcher | None = None

    def tell(self) -> None:
        """The weeks from the first sample to the one at hand."""
        start = monday(self.now)
        first, last = start - timedelta(weeks=6), start - timedelta(weeks=1)
        self._pass_until(first + timedelta(hours=9))
        base = self._draw(first, size=140, design="random", window=2 * WEEK)
        self._label(base, 140)
        self._settle(base, first + timedelta(days=1, hours=14))
        self._detect()
        self._choose("token_overlap", [base], first + timedelta(days=2, hours=10))
        self._release("First threshold")

        self._recheck("token_overlap", last - timedelta(days=3, hours=-9))

        self._pass_until(last + timedelta(hours=9))
        self._detect()
        newer = self._draw(last, size=70)
        self._label(newer, 70)
        self._settle(newer, last + timedelta(days=3, hours=14))
        self._choose("token_overlap", [base, newer], last + timedelta(days=4, hours=10))
        self._choose("rouge_l", [base, newer], last + timedelta(days=4, hours=10, minutes=15))
        self._release("With ROUGE-L")

        self._pass_until(start + min(timedelta(hours=9), (self.now - start) / 2))
        self._detect()
        current = self._draw(start, size=80)
        self._label(current, 40)
        if not self.store.labels.gold_counts().get("disputed"):  # some weeks take longer until two disagree
            self._label(current, 60)
        self._pass_until(self.now)
        self._detect()

    def _pass_until(self, moment: datetime) -> None:
        """Let the days pass: what was logged comes in, and at night `watch` decides it, once there is a release."""
        moment = min(moment, self.now)
        while self.at < moment:
            midnight = datetime.combine(self.at.date() + timedelta(days=1), time(), UTC)
            self.at = min(midnight, moment)
            arrived = [record for record in self.records if shop.time_of(record) <= self.at]
            del self.records[: len(arrived)]
            if arrived:
                self.imported += self.store.traces.add(arrived, labels_as=None, now=self.at).imported
            if self._watcher is not None:
                self._watcher.look()
        self._step()

    def _step(self) -> None:
        self._steps += 1
        self._on_progress(min(self._steps, STEPS), STEPS)

    def _draw(self, week: datetime, *, size: int, design: str | None = None, window: timedelta = WEEK) -> Sample:
        """The week's sample, shared between the labellers; by the usual design, if none is named."""
        where = TraceFilter(since=self.at - window, until=self.at, undated=False)
        name, design = designs.default_name(week), design or sampler.usual_design(self.store, where)
        with _by(LEAD):
            drawn = sampler.draw(self.store, name, size=size, design=design, where=where, seed=SEED, now=self.at)
            assignment.assign(self.store, drawn, "split", overlap=OVERLAP, seed=SEED, by=LEAD, now=self.at)
        return drawn

    def _label(self, sample: Sample, most: int) -> None:
        """Two people label the first traces, `most` of them, in turns; some are for both."""
        labelled = {pk for pk, verdict in self.store.samples.verdicts(sample.id) if verdict is not None}
        resting = 0
        while len(labelled) < most and resting < len(LABELLERS):
            for who in LABELLERS:
                pks = assignment.next_items(self.store, sample, who, TURN, now=self.at)
                resting = 0 if pks else resting + 1
                labelled.update(pks)
                for pk in pks:
                    self._answer(pk, who, sample)
        self._step()

    def _answer(self, pk: int, who: str, sample: Sample) -> None:
        (trace,) = self.store.traces.load([pk])
        reading = replace(self.readings[trace.id, who], seconds=_reading_time(trace))
        self.at = min(self.at + PACE, self.now)
        with _by(who):
            self.store.answers.add(pk, reading, sample_id=sample.id, seen=None, now=self.at)
        self.labels += 1

    def _settle(self, sample: Sample, moment: datetime) -> None:
        """The lead decides what the labellers dispute, and says why."""
        self._pass_until(moment)
        for disputed in self.store.labels.readings(sample.id):
            if disputed.gold == "disputed":
                settled = self.readings[disputed.trace_id, LEAD]
                with _by(LEAD):
                    agreement.adjudicate(
                        self.store, disputed.pk, settled.verdict, by=LEAD, now=self.at, note=settled.note
                    )
        self._step()

    def _detect(self) -> None:
        queued = detect.queue(self.store, DETECTORS, detect.scope_of(everything=True))
        detect.work(self.store, run_id=queued.id)
        self._step()

    def _choose(self, detector: str, samples: Sequence[Sample], moment: datetime) -> None:
        """Save a threshold for the highest target that these labels show; else for the highest that they do not deny;
        none, where they deny all."""
        self._pass_until(moment)
        data = loading.load_evidence(self.store, detector, sample=[sample.name for sample in samples])
        pool = traffic.counted_traffic(self.store, data)
        points = [operating_points.choose_point(data, parse(target), pool=pool) for target in TARGETS]
        judged = [(point, state_of_choice(self.store, data, point)) for point in points]
        open_to_us = [(point, state) for point, state in judged if point.feasible and not state.known_bad]
        shown = [(point, state) for point, state in open_to_us if state.verdict is PointVerdict.HOLDS]
        for point, state in (shown or open_to_us)[:1]:
            with _by(LEAD):
                operating_points.save_point(self.store, data, point, state=state, by=LEAD, now=self.at)

    def _release(self, note: str) -> None:
        self.at = min(self.at + timedelta(hours=1), self.now)
        tiers: dict[str, Tier] = dict.fromkeys(self.store.points.latest(), "signal")
        with _by(LEAD):
            release.release(self.store, ReleaseRequest(tiers=tiers, note=note, by=LEAD), now=self.at)
        self._watcher = self._watcher or Watcher(self.store, where=self._watched, now=lambda: self.at)
        self._step()

    def _watched(self) -> TraceFilter:
        """What came in since the evening before."""
        return TraceFilter(since=self.at - timedelta(days=1), undated=False)

    def _recheck(self, detector: str, moment: datetime) -> None:
        """Label what the live threshold flagged since its release, until it is known whether it holds."""
        self._pass_until(moment)
        with _by(LEAD):
            under_way = recheck.begin(
                self.store, detector, target=AT_LEAST, since=None, labels=40, seed=SEED, by=LEAD, now=self.at
            )
        state = recheck.state(self.store, under_way, now=self.at)
        while not state.done and not state.exhausted:
            if not state.left:
                under_way = recheck.more(self.store, under_way, now=self.at)
            place = self.store.labels.place(state.sample.id, LABELLERS[0])
            if place.position is None:
                break
            pk = self.store.samples.at(state.sample.id, place.position)
            assert pk is not None
            self._answer(pk, LABELLERS[0], state.sample)
            state = recheck.state(self.store, under_way, now=self.at)
        self._step()


def _reading_time(trace: Trace) -> float:
    """Seconds at which somebody has read all that a label takes; no more than pass until the next label."""
    words = sum(len(text.split()) for text in (trace.question or "", trace.answer, *trace.context_texts))
    return min(round(words / WORDS_A_SECOND, 1), PACE.total_seconds())


@contextmanager
def _by(name: str) -> Iterator[None]:
    """Let one of the demo's people act, with the rights of whoever fills the store; nobody vouches for who they are."""
    real = actor()
    with acting_as(Actor(name, "unstated", real.may_write if real else None)):
        yield
