"""A plan asks for no more test traces than there are, and is told with one chance."""

from __future__ import annotations

import json

import pytest

from calibrate.cli import main
from calibrate.stats.certification.certificates import NotCertifiable, ShortfallReason
from calibrate.workflow.certification import certify, planning
from db import Store, open_store
from tests.workflow.certifying import traffic
from tests.workflow.making import ABOVE, NOW


def test_a_plan_can_be_drawn_from_what_the_first_labels_left(store: Store) -> None:
    """Of 500 traces 150 are labelled, the most suspicious first: of what a cut flags, most had a part in the plan. A
    plan for 27 traces was made where 4 are left."""
    world = traffic(store, n=500)
    planned = planning.plan(store, world.first(150), target=0.7, budget=100, seed=5, by="ann", now=NOW)
    if isinstance(planned, NotCertifiable):
        assert planned.why.reason == ShortfallReason.NO_TRAFFIC
        assert planned.why.fresh == 350
    else:
        assert planned.plan.labels <= certify.available(store, planned)


def test_the_chance_of_a_plan_is_one_number(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    traffic(open_store(sqlite_url)).first()
    assert main(["certify", ABOVE, "--labels", "100", "--seed", "5", "--json", "--store", sqlite_url]) == 0
    document = json.loads(capsys.readouterr().out)
    (mine,) = [offer for offer in document["offers"] if offer["labels"] == document["labels"]]
    assert mine["chance"] == document["chance"]
