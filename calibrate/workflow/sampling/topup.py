"""Top up a sample: draw further members of the same strata, from the same frame."""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import datetime

import numpy as np

from calibrate.errors import BadInput
from calibrate.stats.sampling import designs
from calibrate.types import Member, Sample, TopUp
from calibrate.workflow.detection.detect import no_sample
from calibrate.workflow.sampling import frame
from db import Store


def top_up(store: Store, name: str, *, more: int, seed: int | None, now: datetime) -> Sample:
    """Draw `more` further members of a sample. They are labelled after the present ones, in random order.

    The strata are those of the first draw, from the traces, labels and scores of that moment, so what came later takes
    no part. Allocation is of the total, as far as the labels given allow: a sample topped up is as one drawn larger.
    Raises BadInput where nothing is left, or the strata can no longer be told.
    """
    sample = store.samples.get(name)
    if sample is None:
        raise no_sample(store, name)
    _check(store, sample, more, seed)
    seed = secrets.randbits(31) if seed is None else seed
    rng = np.random.default_rng(seed)
    pool = frame.again(store, sample)
    drawn = {stratum: n for stratum, (_, n) in sample.strata.items()}
    total = designs.allocate(pool.strata, sample.size + more, given=drawn)
    members = [member.trace_pk for member in store.samples.members(sample.id)]
    fresh = []
    for stratum, n in total.items():
        left = np.setdiff1d(pool.inside(stratum), members)
        ranks = designs.draw_ranks(rng, len(left), n - drawn[stratum])
        fresh += [Member(int(pk), n / pool.strata[stratum], stratum) for pk in left[ranks]]
    fresh = [fresh[i] for i in rng.permutation(len(fresh))]
    options = replace(sample.options, top_ups=(*sample.options.top_ups, TopUp(len(fresh), seed, now)))
    strata = {stratum: (population, total[stratum]) for stratum, population in pool.strata.items()}
    return store.samples.extend(sample, fresh, strata=strata, options=options)


def _check(store: Store, sample: Sample, more: int, seed: int | None) -> None:
    if more < 1:
        raise BadInput(f"{more} more traces are none: ask for at least 1")
    if seed is not None and not 0 <= seed < 2**63:
        raise BadInput(f"a seed is a whole number from 0 to 2^63 - 1, not {seed}")
    designs.known_design(sample)
    if sample.design in (designs.FLAGGED_ONLY, designs.FEEDBACK):
        raise BadInput(f"{sample.name!r} holds labels that people chose, and cannot be topped up: draw a sample")
    if sample.size >= sample.pool:
        raise BadInput(f"{sample.name!r} holds all {sample.pool:,} traces of its pool already: there are no more")
    cut = sample.options.cut
    if cut and any(attempt.fresh_sample_id == sample.id for attempt in store.certifications.of(cut.name)):
        raise BadInput(
            f"{sample.name!r} is the fresh sample of a certification, whose size its plan fixed: a test that goes on "
            "until it passes proves nothing. Begin another certification instead"
        )
