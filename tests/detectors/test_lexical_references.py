"""The lexical detectors against other people's code, closed forms and properties."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import islice, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.translate.bleu_score import modified_precision
from rapidfuzz.distance import LCSseq

from calibrate import registry
from calibrate.backends.text.lexical import highest_counts, ngrams, without_citations
from calibrate.backends.text.segments import words
from calibrate.detectors.bleu import sentence_bleu
from calibrate.detectors.shared.scoring import by_number
from calibrate.types import Score, Source, Trace
from tests.detectors.examples import trace
from tests.shared_data import load

WORDS = st.lists(st.sampled_from(["red", "blue", "green", "grey", "水", "سماء"]), min_size=1, max_size=14)


def score(name: str, one: Trace, **params: object) -> Score:
    (found,) = registry.make(name, params).score([one])
    return found


def value(name: str, one: Trace, **params: object) -> float:
    found = score(name, one, **params)
    assert found.value is not None, found.reason
    return found.value


def nltk_mean_precision(references: list[tuple[str, ...]], answer: tuple[str, ...]) -> float:
    orders = range(1, min(4, len(answer)) + 1)
    return sum(float(modified_precision(references, answer, n)) for n in orders) / len(orders)


# --------------------------------------------------------------------------------------------------------- BLEU


@pytest.mark.shared
def test_plain_bleu_is_sacrebleu() -> None:
    """1,000 real (context, answer) pairs, most of them not belonging together."""
    import sacrebleu

    traces = load("attributionbench").traces
    pairs = list(islice(product([t.context or "" for t in traces[::40]], [t.answer for t in traces[::35]]), 1000))
    assert len(pairs) == 1000
    for context, answer in pairs:
        assert sentence_bleu(context, answer) == pytest.approx(
            sacrebleu.sentence_bleu(answer, [context]).score / 100, abs=1e-12
        )


@given(st.text(alphabet="ab1 .,-&;<>lt\n'\"$%水", max_size=60), st.text(alphabet="ab1 .,-&;<>lt\n'\"$%水", max_size=40))
def test_plain_bleu_is_sacrebleu_on_odd_text(reference: str, prediction: str) -> None:
    import sacrebleu

    theirs = sacrebleu.sentence_bleu(prediction, [reference]).score / 100
    assert sentence_bleu(reference, prediction) == pytest.approx(theirs, abs=1e-12)


@pytest.mark.shared
@pytest.mark.parametrize("name", ["ragtruth_qa", "expertqa"])
def test_bleu_is_the_mean_of_nltk_precisions(name: str) -> None:
    """Every source a reference, on 80 real traces."""
    traces = [t for t in load(name).traces if t.sources][::2][:80]
    for one in traces:
        references = [words(source.text).tokens for source in one.sources]
        answer = words(without_citations(one.answer, by_number(one.sources))).tokens
        assert value("bleu", one) == pytest.approx(nltk_mean_precision(references, answer), abs=1e-12)


@given(WORDS, st.lists(WORDS, min_size=1, max_size=3))
def test_bleu_precisions_of_any_words(answer: list[str], references: list[list[str]]) -> None:
    one = trace(" ".join(answer), *(" ".join(words) for words in references))
    expected = nltk_mean_precision([words(source.text).tokens for source in one.sources], words(one.answer).tokens)
    assert value("bleu", one) == pytest.approx(expected, abs=1e-12)
    for piece in score("bleu", one).evidence:
        assert piece.value is not None
        assert 0 <= piece.value <= 1


def test_bleu_by_hand() -> None:
    """a b c d x against a b c d: 4/5, 3/4, 2/3, 1/2."""
    one = trace("alpha beta gamma delta xi", "alpha beta gamma delta")
    assert value("bleu", one) == pytest.approx((4 / 5 + 3 / 4 + 2 / 3 + 1 / 2) / 4)
    assert value("bleu", trace("alpha alpha", "alpha beta")) == pytest.approx((1 / 2 + 0) / 2)
    two = trace("Alpha beta. Xi omicron.", "Alpha beta.")
    assert value("bleu", two, aggregate="mean") == 0.5
    assert value("bleu", two, aggregate="min") == 0


@given(WORDS, st.lists(WORDS, max_size=4), st.integers(1, 5))
def test_most_often_is_the_union_of_counters(answer: list[str], texts: list[list[str]], n: int) -> None:
    """`Counter |` over the texts, cut to the n-grams asked for."""
    grams = set(ngrams(answer, n))
    union: Counter[tuple[str, ...]] = Counter()
    for text in texts:
        union |= Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1))
    assert highest_counts(grams, texts, n) == {gram: union[gram] for gram in grams if union[gram]}


# ------------------------------------------------------------------------------------- overlap and properties of all


@given(WORDS, WORDS)
def test_word_overlap_is_set_arithmetic(answer: list[str], context: list[str]) -> None:
    one, a, b = trace(" ".join(answer), " ".join(context)), set(answer), set(context)
    assert {"水", "سماء"} & a == {word for word in words(one.answer).tokens if not word.isascii()}
    assert value("word_overlap", one) == pytest.approx(len(a & b) / len(a))
    assert value("word_overlap", one, variant="plain") == pytest.approx(len(a & b) / min(len(a), len(b)))


@given(WORDS, WORDS, WORDS)
def test_more_sources_never_lower_a_score(answer: list[str], first: list[str], second: list[str]) -> None:
    fewer, more = trace(" ".join(answer), " ".join(first)), trace(" ".join(answer), " ".join(first), " ".join(second))
    for name in ("bleu", "word_overlap", "rouge_l"):
        assert value(name, more) >= value(name, fewer) - 1e-12


@given(WORDS)
def test_a_copy_scores_one(answer: list[str]) -> None:
    text = " ".join(answer)
    for name in ("bleu", "word_overlap", "rouge_l", "token_overlap"):
        assert value(name, trace(text, f"{text}. More of it.")) == pytest.approx(1)


@given(WORDS, WORDS)
def test_rouge_l_of_one_sentence_is_its_longest_common_subsequence(answer: list[str], context: list[str]) -> None:
    one = trace(" ".join(answer), " ".join(context))
    expected = LCSseq.similarity(answer, context) / len(answer)
    assert value("rouge_l", one, stop_words=True) == pytest.approx(expected)


# ------------------------------------------------------------------------------------------------------- unigram


def sampled(answer: str, *alternatives: str) -> Trace:
    return replace(trace(answer), alternatives=alternatives)


def test_unigram_by_hand() -> None:
    """Ten words in all; "cheese" once, "moon" four times, "is" three times."""
    one = sampled("Moon is cheese", "moon is round", "moon is grey", "moon")
    assert value("selfcheck_unigram", one) == pytest.approx(math.log(10 / 1))
    assert value("selfcheck_unigram", one, statistic="mean") == pytest.approx(
        (math.log(10 / 4) + math.log(10 / 3) + math.log(10)) / 3
    )
    (piece,) = score("selfcheck_unigram", one).evidence
    assert one.answer[piece.start : piece.end] == "cheese"
    assert piece.text == "“cheese” is in 0 of 3 alternatives"


@given(WORDS, st.lists(WORDS, min_size=2, max_size=5))
def test_unigram_is_the_unsmoothed_maximum_likelihood_model(answer: list[str], others: list[list[str]]) -> None:
    from nltk.lm import MLE
    from nltk.lm.preprocessing import flatten

    model = MLE(1)
    model.fit([[(word,) for word in text] for text in [answer, *others]], vocabulary_text=flatten([answer, *others]))
    surprises = [-math.log(model.score(word)) for word in answer]
    one = sampled(" ".join(answer), *(" ".join(text) for text in others))
    for variant in ("default", "plain"):
        assert value("selfcheck_unigram", one, variant=variant) == pytest.approx(max(surprises))
        mean = value("selfcheck_unigram", one, variant=variant, statistic="mean")
        assert mean == pytest.approx(sum(surprises) / len(surprises))


def test_unigram_gives_the_published_example() -> None:
    """The document-level figures in the README of SelfCheckGPT. Its words are spaCy's, here set apart by blanks, which
    is how `plain` reads words."""
    host = "Michael Alan Weiner ( born {} ) is {} radio host . {}"
    one = sampled(
        host.format("March 31 , 1942", "an American", "He is the host of The Savage Nation ."),
        host.format("March 31 , 1942", "an American", "He is the host of The Savage Country ."),
        host.format("January 13 , 1960", "a Canadian", "He works at The New York Times ."),
        host.format("March 31 , 1942", "an American", "He obtained his PhD from MIT ."),
    )
    assert value("selfcheck_unigram", one, variant="plain", statistic="mean") == pytest.approx(3.218678904916201)
    assert value("selfcheck_unigram", one, variant="plain", statistic="mean_of_max") == pytest.approx(4.025404834169327)


def test_mean_of_max_averages_sentences() -> None:
    one = sampled("Alpha beta. Gamma gamma.", "alpha gamma gamma", "gamma")
    # Eight words: beta once, gamma five times.
    expected = (math.log(8 / 1) + math.log(8 / 5)) / 2
    assert value("selfcheck_unigram", one, statistic="mean_of_max") == pytest.approx(expected)


# ------------------------------------------------------------------------------------------------------ retrieval


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8))
def test_retrieval_confidence_is_the_maximum(scores: list[float]) -> None:
    sources = tuple(Source(str(i), "text", retrieval_score=score) for i, score in enumerate(scores, 1))
    found = score("retrieval_confidence", Trace("t", "An answer.", sources=sources))
    assert found.value == max(scores)
    assert found.evidence[0].source is not None
    assert scores[int(found.evidence[0].source) - 1] == max(scores)
