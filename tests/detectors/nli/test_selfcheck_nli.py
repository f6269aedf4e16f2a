"""`selfcheck_nli` against its published definition."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from calibrate import registry
from calibrate.backends.nli.model import nli
from calibrate.backends.text.segments import sentences
from calibrate.detectors import selfcheck_nli
from calibrate.detectors.shared import nli as _nli
from tests.detectors.nli.asking import OTHERS, REFUSAL, SAID, Judge, asked, score, value
from tests.tiny_nli import random_model


def contradicted(judge: Judge, sentence: str, other: str) -> float:
    """SelfCheckGPT's P(contradiction): the logits of entailment and contradiction alone, premise first."""
    row = judge(sentence, other)
    logits = np.log([row["entailment"], row["contradiction"]])
    return float(np.exp(logits[1]) / np.exp(logits).sum())


@pytest.mark.parametrize("variant", ["default", "plain"])
def test_selfcheck_nli_is_its_definition(random: str, judge: Judge, variant: str) -> None:
    means = [np.mean([contradicted(judge, SAID[a:b], other) for other in OTHERS]) for a, b in sentences(SAID)]
    one = asked(SAID, *OTHERS)
    assert np.ptp(means) > 0.01
    assert value("selfcheck_nli", one, model=random, variant=variant) == pytest.approx(np.mean(means), abs=1e-4)
    worst = value("selfcheck_nli", one, model=random, variant=variant, aggregate="max")
    assert worst == pytest.approx(max(means), abs=1e-4)


def test_selfcheck_nli_shows_each_sentence(random: str, judge: Judge) -> None:
    one = asked(SAID, *OTHERS)
    found = score("selfcheck_nli", one, model=random)
    expected = {(a, b): np.mean([contradicted(judge, SAID[a:b], o) for o in OTHERS]) for a, b in sentences(SAID)}
    assert {(piece.start, piece.end): piece.value for piece in found.evidence} == pytest.approx(expected, abs=1e-4)
    assert [piece.value for piece in found.evidence] == sorted((p.value or 0 for p in found.evidence), reverse=True)


def test_the_order_of_the_pair_is_sentence_then_alternative(random: str, judge: Judge) -> None:
    one = asked("Keep the invoice as proof.", "Not made of cheese, twelve.", "It leaves before noon.")
    there = np.mean([contradicted(judge, one.answer, other) for other in one.alternatives])
    back = np.mean([contradicted(judge, other, one.answer) for other in one.alternatives])
    assert abs(there - back) > 0.01
    assert value("selfcheck_nli", one, model=random) == pytest.approx(there, abs=1e-4)


def test_selfcheck_nli_reads_alternatives_to_their_end(known: str) -> None:
    one = asked("The answer.", *["filler of the ocean. " * 40 + "A lie."] * 2)
    assert value("selfcheck_nli", one, model=known) > 0.98
    assert value("selfcheck_nli", one, model=known, variant="plain") < 0.9


def test_selfcheck_nli_leaves_refusals_out(known: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_nli, "find_refusal", lambda text: text if text == REFUSAL else None)
    mixed = asked("The answer.", "A lie.", "A lie again.", REFUSAL)
    found = score("selfcheck_nli", mixed, model=known)
    assert found.value == pytest.approx(
        value("selfcheck_nli", asked("The answer.", "A lie.", "A lie again."), model=known)
    )
    assert "1 of 3 alternatives are refusals" in found.evidence[0].text
    assert value("selfcheck_nli", mixed, model=known, variant="plain") < found.value - 0.1


def test_selfcheck_nli_needs_a_model_that_knows_contradiction(tmp_path: Path) -> None:
    model = str(random_model(tmp_path, labels=("entailment", "not_entailment")))
    assert "does not tell contradiction" in (registry.make("selfcheck_nli", {"model": model}).unavailable() or "")
    assert registry.make("semantic_entropy", {"model": model}).unavailable() is None


def test_selfcheck_nli_is_not_one_pair_at_a_time(random: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, calls = nli(random), []
    forward = model.forward
    monkeypatch.setattr(model, "forward", lambda inputs: calls.append(len(inputs)) or forward(inputs))
    model.forget()
    traces = [asked(f"{SAID} Number {i}.", *OTHERS) for i in range(5)]
    list(registry.make("selfcheck_nli", {"model": random}).score(traces))
    assert len(calls) == 1, "five traces, one call of the model"
    calls.clear()
    model.forget()
    list(registry.make("selfcheck_nli", {"model": random, "variant": "plain"}).score(traces[:1]))
    assert calls == [1] * 12


def test_selfcheck_nli_says_when_it_left_sentences_out(known: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selfcheck_nli, "PAIRS", 4)
    found = score("selfcheck_nli", asked("The answer is it. " * 9, "A lie.", "Filler."), model=known)
    assert "the first 2 of 9 sentences" in found.evidence[0].text
