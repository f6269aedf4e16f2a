"""The Combine page: what to do without scores, the sentence the statistics say, another kind, saved under a name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from calibrate import registry
from calibrate.report.sentences.tuning import ensembles as sentences
from calibrate.report.sentences.tuning import learning as wording
from calibrate.stats.ensembles import rules
from calibrate.stats.ensembles.combine import Recipe
from calibrate.types import Score, Trace
from calibrate.workflow.tuning import ensemble as step
from calibrate.workflow.tuning import learn
from db import Store, open_store
from tests.browser.conftest import LONG, App, serve, settled
from tests.workflow.making import NOW, fill, give_scores

pytestmark = pytest.mark.browser
NAMES = ["bleu", "rouge_l", "token_overlap"]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    folder = tmp_path_factory.mktemp("ensemble")
    store = open_store(f"sqlite:///{folder / 'store.db'}")
    server, address = serve(store.url, folder / "server.log")
    yield App(address, store)
    server.terminate()
    server.wait(timeout=20)
    store.close()


def give_current_scores(store: Store, traces: Sequence[Trace], scores: Sequence[float], name: str) -> None:
    """Scores of the detector as a run would store them now."""
    detector = registry.make(name)
    config = store.scores.config(name, detector.version, registry.config_of(detector), "", now=NOW)
    pairs = [(trace.content_hash(), Score(trace.id, score)) for trace, score in zip(traces, scores, strict=True)]
    store.scores.save(config.id, pairs, now=NOW)


def test_from_nothing_to_a_saved_ensemble(own: App, browser: Any) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(LONG)
    page = context.new_page()
    page.goto(own.url)
    page.get_by_role("link", name="This week").first.wait_for()
    page.goto(f"{own.url}/ensemble")
    page.get_by_text("An ensemble needs the scores of two detectors.").wait_for()
    page.get_by_role("link", name="Run detectors").wait_for()

    rng = np.random.default_rng(3)
    truth = rng.random(120) < 0.3
    scores = [[float(one) for one in 0.7 - 0.2 * truth + rng.normal(0, 0.15, 120)] for _ in NAMES]
    fill(own.store, [bool(bad) for bad in truth], scores[0], name=NAMES[0])
    traces = own.store.traces.load([own.store.traces.find(f"t{place}") or 0 for place in range(120)])
    for name, some in zip(NAMES[1:], scores[1:], strict=True):
        give_scores(own.store, traces, some, name=name)

    page.goto(f"{own.url}/ensemble")
    report = step.build(own.store, Recipe("logistic"), NAMES, budget=None)
    _, _, answer = sentences.answer(report, registry.get(report.best).title).partition(": ")
    page.get_by_text(answer).wait_for()
    page.locator(".st-key-ensemble-details summary").first.click()
    page.get_by_text(sentences.sentences(report)[1]).first.wait_for()
    page.get_by_text("At least k flag").click()
    page.get_by_label("How many must flag").fill("1")
    page.keyboard.press("Enter")
    other = step.build(own.store, Recipe("k_of_n", k=1), NAMES, budget=None)
    page.get_by_text(sentences.sentences(other)[1]).first.wait_for()
    settled(page)
    page.get_by_role("textbox", name="Name").fill("<b>any</b> *one*")
    page.keyboard.press("Tab")
    settled(page)
    page.get_by_role("button", name="Save ensemble").click()
    page.get_by_text("Saved: <b>any</b> *one*.").wait_for()
    (saved,) = step.saved(own.store)
    assert rules.from_json(saved.ensemble.rule) == other.rule
    page.get_by_role("button", name="Learn from these labels").click()
    page.get_by_text("Nothing to learn from yet.").wait_for()  # these scores are of no detector as it is now
    for name, some in zip(NAMES, scores, strict=True):
        give_current_scores(own.store, traces, some, name)
    _, _, learned = wording.answer(learn.learn(own.store, now=NOW)).partition(": ")
    page.reload()
    page.get_by_role("button", name="Learn from these labels").click()
    page.get_by_text(learned).wait_for()
    page.get_by_role("button", name="Use this head").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()
