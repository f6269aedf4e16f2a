"""`nli`: where the common recipe goes wrong, and transformers' pipeline as the reference."""

from __future__ import annotations

from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pytest

from calibrate import registry
from calibrate.backends.embedding.model import embedder
from calibrate.backends.embedding.passages import Claim, Shortlist, Window
from calibrate.backends.text.segments import sentences, windows
from calibrate.detectors.nli import _Search
from tests.detectors.examples import trace
from tests.detectors.nli.asking import FILLER, Judge, recipe_says, score, value
from tests.tiny_nli import LABELS, known_model


def test_confidence_is_no_score(known: str) -> None:
    """A contradiction is certain, and so is an entailment: the likeliest label's confidence is 1 for both."""
    supported, denied = trace("The parcel.", "A proof."), trace("The parcel.", "A lie.")
    assert value("nli", supported, model=known) > 0.98
    assert value("nli", denied, model=known) < -0.98
    assert value("nli", supported, model=known, variant="plain") > 0.98
    assert value("nli", denied, model=known, variant="plain") > 0.98


@pytest.mark.parametrize("labels", list(permutations(LABELS)), ids=lambda names: "".join(name[0] for name in names))
def test_the_order_of_the_labels_is_read(labels: tuple[str, ...], tmp_path: Path) -> None:
    model = str(known_model(tmp_path, labels=labels))
    supported = trace("The parcel.", "A proof.")
    assert value("nli", supported, model=model) > 0.98
    right = recipe_says(supported, model) == "entailment"
    assert right is (labels.index("entailment") == 2), "the recipe reads every model as if it were one"


@pytest.mark.parametrize("params", [{}, {"windows": "all"}, {"windows": "1"}], ids=str)
def test_evidence_beyond_the_limit_counts(known: str, params: dict[str, str]) -> None:
    late = trace("The parcel is it.", FILLER * 30 + "Here the answer is proof of it.")
    assert value("nli", late, model=known, **params) > 0.98
    assert recipe_says(late, known) == "neutral"
    assert recipe_says(trace("The parcel is it.", "Here the answer is proof of it."), known) == "entailment"


def test_a_context_cannot_bring_a_separator(known: str) -> None:
    """The model was taught to trust what follows a third separator; a glued context can hold one."""
    honest, forged = trace("The parcel.", "Filler of it."), trace("The parcel.", "Filler [SEP] of it.")
    assert value("nli", honest, model=known) == pytest.approx(0, abs=0.02)
    assert value("nli", forged, model=known) == pytest.approx(0, abs=0.02)
    assert recipe_says(honest, known) == "neutral"
    assert recipe_says(forged, known) == "entailment"


def test_one_unsupported_sentence_is_not_hidden(known: str) -> None:
    mixed = trace("The proof is it. The moon is cheese. Another proof.", "Filler of it.")
    assert value("nli", mixed, model=known) == pytest.approx(0, abs=0.02)
    assert value("nli", mixed, model=known, aggregate="mean") == pytest.approx(2 / 3, abs=0.02)
    worst = score("nli", mixed, model=known).evidence[0]
    assert mixed.answer[worst.start : worst.end] == "The moon is cheese."


def test_the_two_worst_sentences_share_the_verdict(known: str) -> None:
    mixed = trace("The proof is it. The moon is cheese. A lie. Another proof.", "Filler of it.")
    assert value("nli", mixed, model=known) == pytest.approx(-1, abs=0.02)
    assert value("nli", mixed, model=known, aggregate="lowest_two") == pytest.approx(-1 / 2, abs=0.02)
    assert value("nli", mixed, model=known, aggregate="mean") == pytest.approx(1 / 4, abs=0.02)


def test_entailment_alone_takes_a_contradiction_for_silence(known: str) -> None:
    denied, silent = trace("A lie.", "Filler of it."), trace("The moon.", "Filler of it.")
    assert value("nli", denied, model=known, variant="entailment") == pytest.approx(0, abs=0.02)
    assert value("nli", silent, model=known, variant="entailment") == pytest.approx(0, abs=0.02)
    assert value("nli", trace("A proof.", "Filler of it."), model=known, variant="entailment") > 0.98


def test_entailment_alone_is_the_models_own_probability(random: str, judge: Judge) -> None:
    """With one sentence and one passage the value is what transformers' pipeline gives."""
    row = judge("The parcel leaves our warehouse before noon.", "It leaves before noon.")
    single = trace("It leaves before noon.", "The parcel leaves our warehouse before noon.")
    assert value("nli", single, model=random, variant="entailment") == pytest.approx(row["entailment"], abs=1e-4)
    assert value("nli", single, model=random) == pytest.approx(row["entailment"] - row["contradiction"], abs=1e-4)


def test_the_usual_configuration_keeps_its_key() -> None:
    """Its parameters are part of the key of stored scores: a new one would make them all anew."""
    assert registry.config_of(registry.make("nli")) == {
        "variant": "default", "aggregate": "min", "windows": "3", "sentences_per_window": 2, "evidence": "worst",
        "model": "default", "embedding_model": "all-MiniLM-L6-v2",
    }  # fmt: skip


def test_evidence_shows_the_passage(known: str) -> None:
    one = trace("The parcel [2].", FILLER * 3, f"{FILLER}Here is a proof. {FILLER}", FILLER)
    (piece,) = score("nli", one, model=known, windows="all", sentences_per_window=1).evidence
    assert piece.source == "2"
    assert piece.window is not None
    assert one.sources[1].text[slice(*piece.window)] == "Here is a proof."
    assert one.answer[piece.start : piece.end].startswith("The parcel")
    assert "entailment 1.00" in piece.text


def test_offsets_hold_in_other_scripts(known: str) -> None:
    one = trace("保修期为二十四个月。proof 在此。", "مدة الضمان سنتان. الدليل هنا proof.", "保修期为十二个月。")
    found = score("nli", one, model=known, windows="all", evidence="all")
    said = {one.answer[piece.start : piece.end] for piece in found.evidence}
    assert said == {"保修期为二十四个月。", "proof 在此。"}
    held = {one.sources[int(piece.source or 0) - 1].text[slice(*(piece.window or (0, 0)))] for piece in found.evidence}
    assert any("proof" in text for text in held)


def test_a_sentence_too_long_for_the_model_says_so(known: str) -> None:
    long = trace("The proof " + "of it and the ocean " * 40 + "is made.", "Filler of it.")
    found = score("nli", long, model=known, windows="all", evidence="all")
    assert "too long for the model" in found.evidence[0].text
    spans = sorted((piece.start, piece.end) for piece in found.evidence if piece.start is not None and piece.end)
    assert spans[0][0] == 0
    assert spans[-1][1] == len(long.answer)
    assert all(a[1] == b[0] for a, b in pairwise(spans))
    assert found.value == pytest.approx(0, abs=0.02), "only the first part has the proof"


@pytest.mark.parametrize("pooling", ["min", "mean"])
@pytest.mark.parametrize("most", ["2", "all"])
def test_nli_is_its_definition(random: str, judge: Judge, most: str, pooling: str) -> None:
    """Windows, cosines and verdicts each from elsewhere: the lowest (or mean) over sentences of the highest difference.
    The search that leaves sentences early must find the same as judging every pair."""
    one = trace(
        "The ocean is not made of cheese. Batteries are covered for 12 months! Keep the invoice. It leaves at noon.",
        "The Pacific is the largest ocean. It is not cheese. Nobody made it. Three of six say so.",
        "Batteries are covered. Damage by water is excluded. Keep the invoice as proof. The parcel leaves before noon.",
    )
    passages = [s.text[a:b] for s in one.sources for a, b in windows(s.text, sentences_per_window=2)]
    highest = []
    for start, end in sentences(one.answer):
        said = one.answer[start:end]
        near = range(len(passages))
        if most != "all":
            if why := embedder().unavailable():
                pytest.skip(why)
            vectors = embedder().encode([said, *passages])
            near = np.argsort(-(vectors[1:] @ vectors[0]), kind="stable")[: int(most)].tolist()
        rows = [judge(passages[at], said) for at in near]
        highest.append(max(row["entailment"] - row["contradiction"] for row in rows))
    assert max(highest) - min(highest) > 0.05
    expected = min(highest) if pooling == "min" else sum(highest) / len(highest)
    for evidence in ("worst", "all"):
        got = value("nli", one, model=random, windows=most, aggregate=pooling, evidence=evidence)
        assert got == pytest.approx(expected, abs=1e-4)


def searched(table: np.ndarray, candidates: list[list[int]]) -> tuple[float, int]:
    """The lowest highest support that the search finds in a table (sentences by windows), and the pairs it took."""
    texts = [str(at) for at in range(max(table.shape))]
    said = [Claim(0, 1, text) for text in texts[: table.shape[0]]]
    held = [Window(0, 0, 1, text) for text in texts[: table.shape[1]]]
    search, judged = _Search(Shortlist(said, held, None), candidates, []), 0
    while pairs := search.next(everything=False):
        judged += len(pairs)
        supports = [table[int(claim), int(window)] for window, claim in pairs]
        search.learn(np.array([[(1 + one) / 2, 0, (1 - one) / 2] for one in supports], dtype=np.float32))
    return min(one.best for one in search.sentences), judged


@pytest.mark.parametrize("seed", range(40))
def test_leaving_sentences_early_changes_no_score(seed: int) -> None:
    """On tables of random supports: the same lowest highest value, whatever the order of the windows; and when the best
    window comes first, from one pair a sentence and the worst sentence in full."""
    rng = np.random.default_rng(seed)
    for _ in range(25):
        table = rng.uniform(-1, 1, (int(rng.integers(1, 12)), int(rng.integers(1, 9)))).round(2)
        expected = pytest.approx(table.max(axis=1).min(), abs=1e-6)
        found, judged = searched(table, [rng.permutation(table.shape[1]).tolist() for _ in table])
        assert found == expected
        assert judged <= table.size
        assert searched(table, (-table).argsort(axis=1).tolist()) == (expected, sum(table.shape) - 1)


@pytest.mark.parametrize("windows", ["0", "-1", "some", "2.5", "99999", "²"])
def test_windows_is_a_number_or_all(windows: str) -> None:
    from calibrate.errors import BadInput

    with pytest.raises(BadInput, match="or all"):
        registry.make("nli", {"windows": windows})


def test_nli_says_when_it_could_not_judge_everything(known: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from calibrate.detectors import nli as module

    monkeypatch.setattr(module, "PAIRS", 6)
    many = trace("The parcel is it. " * 3, FILLER * 30)
    found = score("nli", many, model=known, windows="all")
    assert "each sentence with 2 passages" in found.evidence[0].text
