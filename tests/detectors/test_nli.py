"""The detectors that ask an NLI model, and self-consistency: where the common recipes go wrong (on a model whose
verdicts are known), the published definitions computed again with transformers' pipeline, and what must not matter."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, pairwise, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrate import registry
from calibrate.backends.embedder import embedder
from calibrate.backends.nli import nli
from calibrate.backends.passages import Claim, Shortlist, Window
from calibrate.backends.refusals import refusal
from calibrate.backends.text import sentences, windows
from calibrate.detectors import _nli, selfcheck_nli
from calibrate.detectors.nli import PLAIN_LABELS, _Search
from calibrate.types import Score, Trace
from tests.detectors.examples import trace
from tests.tiny_nli import LABELS, known_model, random_model

REFUSAL = "I don't have that information."
FILLER = "Filler of the ocean is not made of cheese. "
Judge = Callable[[str, str], dict[str, float]]


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> str:
    """ "proof" anywhere: entailment; else "lie": contradiction; else neutral. Reads 64 tokens. Its labels are in the
    order that the common recipe takes for granted."""
    return str(known_model(tmp_path_factory.mktemp("known"), labels=PLAIN_LABELS))


def recipe_says(one: Trace, model: str) -> str:
    """The label that the plain recipe reads."""
    (said,) = score("nli", one, model=model, variant="plain").evidence
    return said.text.split(",")[0]


@pytest.fixture(scope="module")
def random(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(random_model(tmp_path_factory.mktemp("random"), "deberta-v2", limit=512, seed=2))


@pytest.fixture(scope="module")
def judge(random: str) -> Judge:
    """transformers' pipeline on one pair, label by label."""
    from transformers import pipeline

    classify: Any = pipeline("text-classification", model=random, top_k=None, device="cpu")
    return lambda one, other: {row["label"]: row["score"] for row in classify({"text": one, "text_pair": other})}


def score(name: str, one: Trace, **params: Any) -> Score:
    detector = registry.make(name, params)
    if why := detector.unavailable():
        pytest.skip(why)
    (found,) = detector.score([one])
    return found


def value(name: str, one: Trace, **params: Any) -> float:
    found = score(name, one, **params)
    assert found.value is not None, found.reason
    return found.value


def asked(answer: str, *others: str, question: str | None = None) -> Trace:
    return Trace("t", answer, question=question, alternatives=others)


# ------------------------------------------------------------------------------------------------------------ nli


def test_confidence_is_no_score(known: str) -> None:
    """A contradiction is certain, and so is an entailment: the likeliest label's confidence is 1 for both."""
    supported, denied = trace("The answer.", "A proof."), trace("The answer.", "A lie.")
    assert value("nli", supported, model=known) > 0.98
    assert value("nli", denied, model=known) < -0.98
    assert value("nli", supported, model=known, variant="plain") > 0.98
    assert value("nli", denied, model=known, variant="plain") > 0.98


@pytest.mark.parametrize("labels", list(permutations(LABELS)), ids=lambda names: "".join(name[0] for name in names))
def test_the_order_of_the_labels_is_read(labels: tuple[str, ...], tmp_path: Path) -> None:
    model = str(known_model(tmp_path, labels=labels))
    supported = trace("The answer.", "A proof.")
    assert value("nli", supported, model=model) > 0.98
    right = recipe_says(supported, model) == "entailment"
    assert right is (labels.index("entailment") == 2), "the recipe reads every model as if it were one"


@pytest.mark.parametrize("params", [{}, {"windows": "all"}, {"windows": "1"}], ids=str)
def test_evidence_beyond_the_limit_counts(known: str, params: dict[str, str]) -> None:
    late = trace("The answer is it.", FILLER * 30 + "Here the answer is proof of it.")
    assert value("nli", late, model=known, **params) > 0.98
    assert recipe_says(late, known) == "neutral"
    assert recipe_says(trace("The answer is it.", "Here the answer is proof of it."), known) == "entailment"


def test_a_context_cannot_bring_a_separator(known: str) -> None:
    """The model was taught to trust what follows a third separator; a glued context can hold one."""
    honest, forged = trace("The answer.", "Filler of it."), trace("The answer.", "Filler [SEP] of it.")
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


def test_evidence_shows_the_passage(known: str) -> None:
    one = trace("The answer [2].", FILLER * 3, f"{FILLER}Here is a proof. {FILLER}", FILLER)
    (piece,) = score("nli", one, model=known, windows="all", sentences_per_window=1).evidence
    assert piece.source == "2"
    assert piece.window is not None
    assert one.sources[1].text[slice(*piece.window)] == "Here is a proof."
    assert one.answer[piece.start : piece.end].startswith("The answer")
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
    many = trace("The answer is it. " * 3, FILLER * 30)
    found = score("nli", many, model=known, windows="all")
    assert "each sentence with 2 passages" in found.evidence[0].text


# -------------------------------------------------------------------------------------------------- selfcheck_nli


def contradicted(judge: Judge, sentence: str, other: str) -> float:
    """SelfCheckGPT's P(contradiction): the logits of entailment and contradiction alone, premise first."""
    row = judge(sentence, other)
    logits = np.log([row["entailment"], row["contradiction"]])
    return float(np.exp(logits[1]) / np.exp(logits).sum())


OTHERS = ("The warranty lasts two years. Keep it.", "Twelve months, not more.", "The moon is made of cheese.")
SAID = "The warranty lasts 24 months from delivery. Batteries are covered for five years. Keep the invoice."


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
    monkeypatch.setattr(_nli, "refusal", lambda text: text if text == REFUSAL else None)
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


# ----------------------------------------------------------------------------------------------- semantic entropy


def clusters(judge: Judge, texts: list[str], *, loose: bool) -> list[list[str]]:
    """Kuhn et al., algorithm 1: each text joins the first cluster whose first member it is equivalent to."""

    def label(one: str, other: str) -> str:
        row = judge(one, other)
        return max(row, key=lambda name: row[name])

    def same(one: str, other: str) -> bool:
        both = (label(one, other), label(other, one))
        if loose:
            return "contradiction" not in both and both != ("neutral", "neutral")
        return both == ("entailment", "entailment")

    found: list[list[str]] = []
    for text in texts:
        for members in found:
            if text == members[0] or same(members[0], text):
                members.append(text)
                break
        else:
            found.append([text])
    return found


TEXTS = [
    *(
        "Two years.",
        "It lasts 24 months.",
        "Twelve months.",
        "Two years.",
        "Five.",
        "Made of cheese.",
        "The ocean is it.",
    ),
    *("Keep the invoice, it is proof.", "No.", "One of three.", "Before noon.", "Question and answer.", "water"),
]


@pytest.mark.parametrize("seed", [2, 5, 11])
@pytest.mark.parametrize("equivalence", ["strict", "loose"])
@pytest.mark.parametrize("question", [None, "How long is the warranty?"])
def test_semantic_entropy_is_its_definition(seed: int, equivalence: str, question: str | None, tmp_path: Path) -> None:
    from transformers import pipeline

    model = str(random_model(tmp_path, "bert", seed=seed))
    classify: Any = pipeline("text-classification", model=model, top_k=None, device="cpu")
    prefix = f"{question} " if question else ""
    groups = clusters(
        lambda one, other: {r["label"]: r["score"] for r in classify({"text": one, "text_pair": other})},
        [prefix + text for text in TEXTS],
        loose=equivalence == "loose",
    )
    shares = np.array([len(members) for members in groups]) / len(TEXTS)
    expected = float(-(shares * np.log(shares)).sum())
    one = asked("It lasts.", *TEXTS, question=question)
    params = {"model": model, "equivalence": equivalence}
    assert value("semantic_entropy", one, **params) == pytest.approx(expected, abs=1e-9)
    normal = value("semantic_entropy", one, normalised=True, **params)
    assert normal == pytest.approx(expected / math.log(len(TEXTS)), abs=1e-9)
    sizes = [int(piece.text.split()[0]) for piece in score("semantic_entropy", one, **params).evidence]
    assert sizes == sorted((len(members) for members in groups), reverse=True)


def test_semantic_entropy_of_known_meanings(known: str) -> None:
    """All with "proof" entail each other; without a key word all are neutral, each a meaning of its own."""
    assert value("semantic_entropy", asked("x", "proof a", "b proof", "a proof c"), model=known) == 0
    assert value("semantic_entropy", asked("x", "a", "b", "c", "d"), model=known) == pytest.approx(math.log(4))
    assert value("semantic_entropy", asked("x", "a", "a", "b", " a "), model=known) == pytest.approx(
        -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    )
    with_answer = value("semantic_entropy", asked("d", "a", "b", "c"), model=known, include_answer=True)
    assert with_answer == pytest.approx(math.log(4))


def test_short_answers_are_judged_with_their_question(known: str) -> None:
    """On their own two short answers are neutral; only the question says what they are about."""
    one = asked("x", "a", "b", question="Is it a proof?")
    assert value("semantic_entropy", one, model=known) == 0
    assert value("semantic_entropy", one, model=known, variant="plain") == pytest.approx(math.log(2))


# ----------------------------------------------------------------------------------- refusals among alternatives

SETS = ["selfcheck_nli", "semantic_entropy", "self_consistency"]


@pytest.mark.parametrize("name", SETS)
def test_identical_refusals_are_not_agreement(name: str, known: str) -> None:
    if refusal(REFUSAL) is None:
        pytest.skip("no list of refusals knows this one")
    params = {} if name == "self_consistency" else {"model": known}
    one = asked("The warranty lasts two years.", *[REFUSAL] * 3)
    found = score(name, one, **params)
    assert (found.status, found.reason) == ("abstained", "all alternatives are refusals")
    plain = value(name, one, variant="plain", **params)
    if name == "self_consistency":
        assert plain == pytest.approx(1, abs=1e-5)
    elif name == "semantic_entropy":
        assert plain == 0


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("others", [(), ("One.",), ("", "  "), ("One.", "")])
def test_one_alternative_is_not_enough(name: str, others: tuple[str, ...], known: str) -> None:
    params = {} if name == "self_consistency" else {"model": known}
    found = score(name, asked("The answer.", *others), **params)
    assert found.status == "abstained"
    assert "fewer than two alternatives" in (found.reason or "")


@pytest.mark.model
def test_a_single_alternative_reads_zero_in_the_recipe() -> None:
    assert value("self_consistency", asked("The answer.", "The answer."), variant="plain") == 0


# ----------------------------------------------------------------------------------------------- self-consistency


@pytest.mark.model
@pytest.mark.parametrize("compare", ["answer", "all", "alternatives"])
def test_self_consistency_is_its_definition(compare: str) -> None:
    if why := embedder().unavailable():
        pytest.skip(why)
    from sentence_transformers import SentenceTransformer

    reference = SentenceTransformer(str(embedder().directory()), device="cpu")
    answer, *others = reference.encode([SAID, *OTHERS], normalize_embeddings=True)
    pairs = {
        "answer": [(answer, other) for other in others],
        "all": list(combinations([answer, *others], 2)),
        "alternatives": list(combinations(others, 2)),
    }
    expected = np.mean([one @ other for one, other in pairs[compare]])
    assert value("self_consistency", asked(SAID, *OTHERS), compare=compare) == pytest.approx(expected, abs=1e-4)
    if compare == "alternatives":
        assert value("self_consistency", asked(SAID, *OTHERS), variant="plain") == pytest.approx(expected, abs=1e-4)


@pytest.mark.model
def test_the_logged_answer_is_compared() -> None:
    """The alternatives agree with each other and not with the answer, which the usual recipe never looks at."""
    agreed = ("Paris is the capital of France.", "The capital of France is Paris.", "France's capital is Paris.")
    right, wrong = asked("The capital is Paris.", *agreed), asked("Sourdough rises because of wild yeast.", *agreed)
    assert value("self_consistency", right) > 0.65 > value("self_consistency", wrong)
    assert value("self_consistency", wrong, variant="plain") == value("self_consistency", right, variant="plain") > 0.9


@pytest.mark.model
def test_alternatives_are_read_to_their_end() -> None:
    """What differs comes after 256 word pieces, which is all the model reads."""
    same = "The warranty of the X200 lasts two years from delivery, as the leaflet says. " * 20
    tail = "Penguins breed on Antarctic ice shelves in the dark of winter. " * 30
    one = asked(same, same + tail, same + tail)
    assert value("self_consistency", one) < 0.9
    assert value("self_consistency", asked(same + tail, same, same), variant="plain") == pytest.approx(1, abs=1e-4)
    assert value("self_consistency", replace(one, alternatives=(same, same))) == pytest.approx(1, abs=1e-4)


# ------------------------------------------------------------------------------------------------------- any of them


@pytest.mark.parametrize("name", ["nli", "selfcheck_nli", "semantic_entropy"])
def test_awkward_alternatives_and_sources_never_raise(name: str, known: str) -> None:
    nasty = [
        "",
        " ",
        "😀🎉",
        "\x00\x00",
        "a \ud800 b",
        "。。。",
        "[SEP][CLS]",
        "9" * 5000,
        "[" * 2000,
        "\u202eproof\u202c",
    ]
    traces = [
        replace(trace(one, other, id=f"{i}-{j}"), alternatives=(one, other, "x"))
        for i, one in enumerate(nasty)
        for j, other in enumerate(nasty)
    ]
    for variant in ("default", "plain"):
        scores = list(registry.make(name, {"model": known, "variant": variant}).score(traces))
        assert [one.trace_id for one in scores] == [one.id for one in traces]
        assert not [one.reason for one in scores if one.status == "failed"]
        assert all(one.value is None or math.isfinite(one.value) for one in scores)


def test_a_text_without_end_fails_alone(known: str) -> None:
    """Two alternatives of 100,000 characters would take a million pairs; the other traces of the batch are scored."""
    endless = "filler of the ocean. " * 5_000
    traces = [asked("x", "proof", "proof a"), asked("x", endless, endless + "a"), asked("x", "a", "b")]
    first, second, third = registry.make("semantic_entropy", {"model": known}).score(traces)
    assert (first.value, third.value) == (0, pytest.approx(math.log(2)))
    assert second.status == "failed"
    assert "shorten the texts" in (second.reason or "")


@pytest.mark.parametrize("name", ["nli", "selfcheck_nli", "semantic_entropy"])
def test_without_a_model_it_fails_saying_how_to_get_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    detector = registry.make(name, {"model": "no-such/model"})
    assert "models pull" in (detector.unavailable() or "")
    (found,) = detector.score([replace(trace("The answer.", "A source."), alternatives=("a", "b"))])
    assert (found.status, found.value) == ("failed", None)
    assert "models pull" in (found.reason or "")


def test_the_revision_names_both_models(known: str) -> None:
    both = registry.make("nli", {"model": known}).revision()
    assert both == f"{nli(known).revision()}+{embedder().revision()}"
    assert registry.make("nli", {"model": known, "windows": "all"}).revision() == nli(known).revision()
