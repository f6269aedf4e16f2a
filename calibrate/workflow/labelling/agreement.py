"""Agreement: how far labellers agree, adjudication of what they dispute, and labels that deserve a second look."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations

import numpy as np

from calibrate.errors import BadInput
from calibrate.stats.labels.agreement import CODES, ENRICHED, SHARE, Agreement, measure_agreement
from calibrate.stats.labels.confident_learning import Doubt, rank_doubts
from calibrate.stats.labels.sensitivity import Errors, Measured, WhatIf, measure_errors, what_if
from calibrate.stats.sampling.designs import default_name
from calibrate.types import (
    VERDICTS,
    Evidence,
    Label,
    Member,
    OperatingPoint,
    Sample,
    SampleOptions,
    Trace,
    TraceFilter,
    Verdict,
)
from calibrate.workflow.detection.configurations import resolve_config
from calibrate.workflow.evidence.basis import EVERY_LABEL, choose_basis, resolve_sample
from calibrate.workflow.evidence.score_matrix import load_score_matrix
from db import Store
from db.labels import Reading
from db.scores import Row

SEED = 20_231  # the same labels, the same intervals
DOUBLE = 100


@dataclass(frozen=True)
class AgreementReport:
    """How labellers agree on a sample, or on everything. `readings` are the traces with more than one label; `pairs`
    the pairs of labellers who share any, most traces first; `overall` is every labeller together, None with fewer than
    two. `labellers` counts the traces each has labelled among `readings`."""

    sample: Sample | None
    readings: tuple[Reading, ...]
    labellers: Mapping[str, int]
    overall: Agreement | None
    pairs: tuple[Agreement, ...]

    @property
    def disputed(self) -> tuple[Reading, ...]:
        """The traces that wait for adjudication, in labelling order."""
        return tuple(reading for reading in self.readings if reading.gold == "disputed" and not reading.purged)

    @property
    def adjudicated(self) -> int:
        return sum(reading.adjudicated is not None for reading in self.readings)


@dataclass(frozen=True)
class Suspect:
    """A gold label that the detectors would not have given."""

    row: Row
    doubt: Doubt


@dataclass(frozen=True)
class Doubted:
    """A suspect's trace, a detector that speaks against its label, and what that detector's score rests on."""

    suspect: Suspect
    trace: Trace
    detector: str
    value: float
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True)
class SecondLook:
    """Suspects, the most surprising first, adjudicated ones left out. `n` gold labels were looked at, `positives` of
    them hallucinated; `auroc` is how well `detectors` together tell them apart, each judged by a fit without it."""

    suspects: tuple[Suspect, ...]
    n: int
    positives: int
    auroc: float
    detectors: tuple[str, ...]


def look(store: Store, sample: str | None = None) -> AgreementReport:
    """Measure the agreement on a sample, or on every trace with more than one label."""
    drawn = _find_sample(store, sample)
    readings = tuple(store.labels.readings(drawn.id if drawn else None))
    several = [reading for reading in readings if len(reading.verdicts) > 1]
    counts = Counter(who for reading in several for who in reading.verdicts)
    names = sorted(counts)
    codes = np.array([[CODES[reading.verdicts.get(who)] for who in names] for reading in several], dtype=np.int64)
    codes = codes.reshape(len(several), len(names))
    groups = [reading.group for reading in several]
    pairs = []
    for i, j in combinations(range(len(names)), 2):
        both = np.flatnonzero((codes[:, i] >= 0) & (codes[:, j] >= 0))
        if len(both):
            theirs = [groups[row] for row in both.tolist()]
            rng = np.random.default_rng(SEED)
            pairs.append(measure_agreement((names[i], names[j]), codes[both][:, [i, j]], groups=theirs, rng=rng))
    pairs.sort(key=lambda pair: -pair.traces)
    overall = (
        measure_agreement(names, codes, groups=groups, rng=np.random.default_rng(SEED)) if len(names) > 1 else None
    )
    return AgreementReport(drawn, readings, {who: counts[who] for who in names}, overall, tuple(pairs))


def adjudicate(store: Store, pk: int, verdict: Verdict, *, by: str, now: datetime, note: str | None = None) -> bool:
    """Decide the gold verdict of a trace, whatever labellers say.

    Returns False and writes nothing if the same person made the same decision last. Raises BadInput for an unknown
    verdict or a trace that nobody has labelled.
    """
    if verdict not in VERDICTS:
        raise BadInput(f"a verdict is one of {', '.join(VERDICTS)}, not {verdict!r}")
    labels = store.labels.of_trace(pk)
    if not labels:
        raise BadInput("nobody has labelled this trace yet: label it first, there is nothing to decide between")
    last = next((label for label in reversed(labels) if label.adjudicates), None)
    if last is not None and (last.labeller, last.verdict, last.note) == (by, verdict, note):
        return False
    label = Label(labels[0].trace_id, by, verdict, note=note, adjudicates=True)
    store.labels.add(pk, label, sample_id=None, now=now)
    return True


def double(
    store: Store,
    sample: str | None,
    *,
    size: int = DOUBLE,
    name: str | None = None,
    seed: int | None = None,
    now: datetime,
) -> Sample:
    """Draw traces that one person has labelled, for a second person to label. 40% of them (or as many as there are)
    were first called hallucinated, so that agreement on hallucinations can be measured.

    It is drawn by its labels: no figure of the traffic can come from it, and its design says so.
    """
    drawn = _find_sample(store, sample)
    seed = secrets.randbits(31) if seed is None else seed
    if size < 2:
        raise BadInput(f"to label twice take at least 2 traces, not {size}")
    pools = _find_labelled_once(store, drawn)
    total = sum(map(len, pools.values()))
    if not total:
        raise BadInput("no trace has exactly one person's clean or hallucinated label: there is nothing to label twice")
    rng = np.random.default_rng(seed)
    positives = min(len(pools["hallucinated"]), max(round(SHARE * size), size - len(pools["clean"])))
    sizes = {"hallucinated": positives, "clean": min(len(pools["clean"]), size - positives)}
    members = [
        Member(pk, n / len(pools[kind]), kind)
        for kind, n in sizes.items()
        for pk in rng.choice(pools[kind], size=n, replace=False).tolist()
    ]
    return store.samples.add(
        name or f"{drawn.name if drawn else default_name(now)}-double",
        design=ENRICHED,
        by=None,
        seed=seed,
        pool=total,
        undated=0,
        where=drawn.filter if drawn else TraceFilter(),
        strata={kind: (len(pools[kind]), n) for kind, n in sizes.items()},
        members=[members[i] for i in rng.permutation(len(members))],
        now=now,
        options=SampleOptions(of=drawn.name) if drawn else None,
    )


def second_look(store: Store, sample: str | None = None, *, limit: int = 20) -> SecondLook:
    """The gold labels most likely wrong. Raises BadInput where detectors or labels are too few."""
    data = load_score_matrix(store, basis=EVERY_LABEL if sample is None else choose_basis(store, sample))
    doubts = rank_doubts(
        data.labels, data.scores, flag_when=data.flag_when, groups=data.groups, rng=np.random.default_rng(SEED)
    )
    readings = store.labels.readings(data.sample.id if data.sample else None)
    settled = {reading.pk for reading in readings if reading.adjudicated is not None}
    settled |= store.purges.of_traces(row.pk for row in data.rows)  # nobody can look at them again
    suspects = (Suspect(data.rows[doubt.row], doubt) for doubt in doubts.ranked)
    open_suspects = [suspect for suspect in suspects if suspect.row.pk not in settled]
    return SecondLook(
        tuple(open_suspects[:limit]), len(data.rows), int(data.labels.sum()), doubts.auroc, doubts.detectors
    )


def read_doubts(store: Store, looked: SecondLook) -> tuple[Doubted, ...]:
    """Read the suspects' traces, each with the evidence of a detector that speaks against its label: of the first whose
    evidence is about places of the answer, else of the first."""
    keys = [suspect.row.pk for suspect in looked.suspects]
    traces = dict(zip(keys, store.traces.load(keys), strict=True)) if keys else {}
    names = {reason.detector for suspect in looked.suspects for reason in suspect.doubt.reasons}
    evidence = {name: store.scores.evidence(resolve_config(store, name).id, keys) for name in sorted(names)}
    doubted = []
    for suspect in looked.suspects:
        pk, reasons = suspect.row.pk, suspect.doubt.reasons
        placed = [
            reason
            for reason in reasons
            if any(piece.start is not None for piece in evidence[reason.detector].get(pk, ()))
        ]
        for reason in (placed or list(reasons))[:1]:
            pieces = evidence[reason.detector].get(pk, ())
            doubted.append(Doubted(suspect, traces[pk], reason.detector, reason.value, pieces))
    return tuple(doubted)


def errors(store: Store, seen: AgreementReport) -> tuple[Measured, ...]:
    """Measure each labeller's misses and false calls on settled traces.

    A trace is settled by two definite verdicts that agree, or by an adjudication.

    Errors that two people share stay unseen, so these are a lower bound, and far too low while disputes wait. Traces
    of an enriched sample count for those they were drawn from: without that, whom the draw favours would seem to miss
    less.
    """
    settled = [
        reading
        for reading in seen.readings
        if reading.gold in ("clean", "hallucinated")
        and sum(verdict != "unsure" for verdict in reading.verdicts.values()) > 1
    ]
    drawn = [sample.id for sample in store.samples.list() if sample.design == ENRICHED]
    chance = {member.trace_pk: member.inclusion_probability for key in drawn for member in store.samples.members(key)}
    rates = []
    for who in seen.labellers:
        mine = [reading for reading in settled if reading.verdicts.get(who, "unsure") != "unsure"]
        calls = [reading.verdicts[who] == "hallucinated" for reading in mine]
        gold = [reading.gold == "hallucinated" for reading in mine]
        rates.append(measure_errors(who, calls, gold, [1 / chance.get(reading.pk, 1.0) for reading in mine]))
    return tuple(rates)


def if_labellers_err(point: OperatingPoint, rates: Errors) -> WhatIf:
    """Compute a point's figures if labellers err like this. Raises BadInput for one without precision or recall."""
    precision, recall, rate = point.precision.value, point.recall.value, point.flag_rate.value
    if not precision or not recall or not rate:
        raise BadInput("this point finds no labelled hallucination, so there is nothing to correct: choose another one")
    # flag rate x precision and prevalence x recall are both the share of traffic that is flagged and hallucinated.
    return what_if(prevalence=rate * precision / recall, precision=precision, flag_rate=rate, errors=rates)


def _find_labelled_once(store: Store, drawn: Sample | None) -> dict[str, list[int]]:
    """The keys of traces with exactly one person's definite label, by verdict."""
    pools: dict[str, list[int]] = {"hallucinated": [], "clean": []}
    for reading in store.labels.readings(drawn.id if drawn else None, least=1):
        verdicts: Sequence[Verdict] = list(reading.verdicts.values())
        if len(verdicts) == 1 and verdicts[0] in pools and reading.adjudicated is None and not reading.purged:
            pools[verdicts[0]].append(reading.pk)
    return {kind: sorted(keys) for kind, keys in pools.items()}


def _find_sample(store: Store, name: str | None) -> Sample | None:
    """Find a sample like `resolve_sample`, but accept an enriched one."""
    drawn = store.samples.get(name) if name is not None else None
    return drawn if drawn is not None else resolve_sample(store, name)
