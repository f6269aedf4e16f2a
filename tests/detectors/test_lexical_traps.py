"""Where the common lexical recipes go wrong: each trap springs on `plain` and not on `default`. And other scripts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from calibrate import registry
from calibrate.engines.run import score_batch
from calibrate.types import Score, Source, Trace
from tests.detectors.examples import BATTERIES, WARRANTY, trace
from tests.shared_data import load

OVERLAPS = ("bleu", "rouge_l", "token_overlap", "word_overlap")


def score(name: str, one: Trace, **params: Any) -> Score:
    (found,) = registry.make(name, params).score([one])
    return found


def value(name: str, one: Trace, **params: Any) -> float:
    found = score(name, one, **params)
    assert found.value is not None, found.reason
    return found.value


def auroc(name: str, data: str, **params: Any) -> float:
    """Chance that a hallucinated trace ranks above a clean one; ties count half."""
    from sklearn.metrics import roc_auc_score

    labelled = load(data).scorable()
    detector = registry.make(name, params)
    sign = 1 if detector.flag_when == "above" else -1
    scores = detector.score(labelled.traces)
    pairs = [
        (label == "hallucinated", sign * found.value)
        for found, label in zip(scores, labelled.labels, strict=True)
        if found.value is not None
    ]
    return float(roc_auc_score(*zip(*pairs, strict=True)))


# --------------------------------------------------------------------------------------------------------- BLEU


def test_bleu_does_not_punish_a_short_answer() -> None:
    copied = trace("The warranty of the X200 lasts 24 months.", f"{WARRANTY} {BATTERIES}" * 4)
    assert value("bleu", copied) == 1
    assert value("bleu", copied, variant="plain") < 0.001


def test_bleu_of_fewer_words_than_four() -> None:
    assert value("bleu", trace("24 months.", WARRANTY)) == 1
    assert value("bleu", trace("Purple.", WARRANTY)) == 0


def test_bleu_names_the_sentence_and_the_run() -> None:
    mixed = trace("The warranty lasts. Keep the purple invoice [1].", WARRANTY)
    worst = score("bleu", mixed).evidence[0]
    assert mixed.answer[worst.start : worst.end] == "Keep the purple invoice [1]."
    assert worst.text == "3 of 4 words are in the sources; not: “purple”"


@pytest.mark.shared
@pytest.mark.parametrize(
    ("data", "least"), [("ragtruth_qa", 0.15), ("attributionbench", 0.05), ("faithdial_audit", 0.05), ("expertqa", 0.1)]
)
def test_bleu_ranks_better_without_the_penalty(data: str, least: float) -> None:
    assert auroc("bleu", data) - auroc("bleu", data, variant="plain") > least


# ------------------------------------------------------------------------------------------------- word overlap


def test_word_overlap_does_not_flip_when_the_answer_is_longer() -> None:
    padded = trace(
        "batteries are covered and so are theft, water, fire, earthquakes, love and every other misfortune",
        "batteries are covered",
    )
    assert value("word_overlap", padded) < 0.3
    assert value("word_overlap", padded, variant="plain") == 1


def test_word_overlap_sees_through_punctuation() -> None:
    one = trace("Keep the invoice, always.", "always keep the invoice")
    assert value("word_overlap", one) == 1
    assert value("word_overlap", one, variant="plain") == 0.5


@pytest.mark.shared
@pytest.mark.parametrize("data", ["ragtruth_qa", "attributionbench", "faithdial_audit", "expertqa"])
def test_word_overlap_ranks_better_than_its_plain_recipe(data: str) -> None:
    assert auroc("word_overlap", data) > auroc("word_overlap", data, variant="plain") + 0.01


# ------------------------------------------------------------------------------------------------------ unigram


def sampled(answer: str, *alternatives: str) -> Trace:
    return replace(trace(answer), alternatives=alternatives)


def test_unigram_sees_through_punctuation() -> None:
    agreed = sampled(
        "It lasts 24 months.", "It lasts 24 months from delivery", "24 months, it lasts", "24 months it is"
    )
    invented = replace(agreed, answer="It lasts 24 lightyears.")
    assert value("selfcheck_unigram", invented) > value("selfcheck_unigram", agreed) + 0.5
    assert value("selfcheck_unigram", invented, variant="plain") == value("selfcheck_unigram", agreed, variant="plain")


@pytest.mark.parametrize(
    ("agreed", "invented", "alternatives"),
    [
        ("保修期为二年。", "保修期为九年。", ("产品的保修期为二年，从交货算起。", "保修期为二年，很长。", "二年。")),
        ("保証期間は二年です。", "保証期間は九年です。", ("保証期間は二年間ですね。", "保証期間は二年ですよ。")),
        ("รับประกันสองปี", "รับประกันเก้าปี", ("สินค้านี้รับประกันสองปี", "รับประกันสองปีค่ะ")),
    ],
    ids=["zh", "ja", "th"],
)
def test_unigram_without_blanks(agreed: str, invented: str, alternatives: tuple[str, ...]) -> None:
    right, wrong = sampled(agreed, *alternatives), sampled(invented, *alternatives)
    assert value("selfcheck_unigram", wrong) > value("selfcheck_unigram", right)
    # One word, unseen, whatever it says.
    assert value("selfcheck_unigram", wrong, variant="plain") == value("selfcheck_unigram", right, variant="plain")


@pytest.mark.parametrize(
    ("agreed", "invented", "alternatives"),
    [
        ("الضمان لمدة سنتين.", "الضمان لمدة قرن.", ("يستمر الضمان لمدة سنتين من التسليم", "الضمان لمدة سنتين، نعم")),
        (
            "האחריות נמשכת שנתיים.",
            "האחריות נמשכת מאה.",
            ("האחריות נמשכת שנתיים ממועד המסירה", "האחריות נמשכת שנתיים, כן"),
        ),
    ],
    ids=["ar", "he"],
)
def test_unigram_right_to_left(agreed: str, invented: str, alternatives: tuple[str, ...]) -> None:
    wrong = sampled(invented, *alternatives)
    assert value("selfcheck_unigram", wrong) > value("selfcheck_unigram", sampled(agreed, *alternatives))
    worst = score("selfcheck_unigram", wrong).evidence[0]
    assert invented[worst.start : worst.end] == invented.rstrip(".").split()[-1]


def test_unigram_needs_alternatives_with_words() -> None:
    for alternatives in [("", " "), ("", "one"), ("😀", "…", "one")]:
        found = score("selfcheck_unigram", sampled("An answer.", *alternatives))
        assert (found.value, found.status) == (None, "abstained")
        assert found.reason == "fewer than two alternatives with words"
    assert value("selfcheck_unigram", sampled("Same here", *["Same here"] * 5)) == pytest.approx(math.log(2))


# ---------------------------------------------------------------------------------------------------- retrieval


def retrieved(*scores: float | None, **attributes: str) -> Trace:
    sources = tuple(Source(str(i), WARRANTY, retrieval_score=one) for i, one in enumerate(scores, 1))
    return Trace("t", "An answer.", sources=sources, attributes=attributes)


def test_no_retrieval_score_is_not_bad_retrieval() -> None:
    found = score("retrieval_confidence", retrieved(None, None))
    assert (found.value, found.status, found.reason) == (None, "abstained", "no source has a retrieval score")
    assert value("retrieval_confidence", retrieved(None, None), variant="plain") == 0
    assert value("retrieval_confidence", retrieved(None, -0.2)) == -0.2
    assert value("retrieval_confidence", retrieved(None, -0.2), variant="plain") == 0


def test_retrievers_are_not_compared() -> None:
    """17.3 of BM25 is no better than 0.8 of a cosine."""
    keyword, dense = retrieved(17.3, 2.0, retriever="bm25"), retrieved(0.8, retriever="dense")
    assert value("retrieval_confidence", keyword, variant="plain") > value(
        "retrieval_confidence", dense, variant="plain"
    )
    assert value("retrieval_confidence", dense, retriever="dense") == 0.8
    assert score("retrieval_confidence", keyword, retriever="dense").status == "abstained"
    assert score("retrieval_confidence", retrieved(0.8), retriever="dense").status == "abstained"
    unset = score("retrieval_confidence", dense)
    assert unset.status == "abstained"
    assert "set the parameter retriever to 'dense'" in (unset.reason or "")


@pytest.mark.parametrize("variant", ["default", "plain"])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_retrieval_scores_are_finite(bad: float, variant: str) -> None:
    found = score("retrieval_confidence", retrieved(0.4, bad), variant=variant)
    assert found.status == "failed"
    assert "source [2]" in (found.reason or "")


# ------------------------------------------------------------------------------------------------- other scripts


@pytest.mark.parametrize("name", OVERLAPS)
@pytest.mark.parametrize(
    ("answer", "source", "wrong"),
    [
        ("保修期为二十四个月。", "产品的保修期为二十四个月，从交货算起。", "天空是蓝色。"),
        ("保証期間は二年間です。", "この製品の保証期間は二年間です。", "空が青いね。"),
        ("รับประกันสองปี", "สินค้านี้รับประกันสองปี", "ฟ้ามีเมฆ"),
        ("الضمان لمدة سنتين.", "يستمر الضمان لمدة سنتين من تاريخ التسليم.", "السماء زرقاء دائما."),
        ("האחריות נמשכת שנתיים.", "לידיעתך האחריות נמשכת שנתיים ממועד המסירה.", "השמיים כחולים תמיד."),
    ],
    ids=["zh", "ja", "th", "ar", "he"],
)
def test_other_scripts(name: str, answer: str, source: str, wrong: str) -> None:
    assert value(name, trace(answer, source)) == 1
    assert value(name, trace(wrong, source)) < 0.5
    both = trace(f"{answer} {wrong}", source)
    worst = score(name, both).evidence[0]
    assert worst.start is not None
    assert worst.end is not None
    assert 0 <= worst.start < worst.end <= len(both.answer)
    assert wrong in both.answer[worst.start : worst.end]


@pytest.mark.parametrize("name", ["bleu", "word_overlap", "rouge_l", "token_overlap"])
def test_chinese_on_the_plain_recipes(name: str) -> None:
    copied = trace("保修期为二十四个月。", "产品的保修期为二十四个月，从交货算起。")
    assert value(name, copied) == 1
    assert score(name, copied, variant="plain").value in (0, None)


# ----------------------------------------------------------------------------------------------------- bad input

LEXICAL = (*OVERLAPS, "selfcheck_unigram", "retrieval_confidence")


@pytest.mark.parametrize("variant", ["default", "plain"])
@pytest.mark.parametrize("name", LEXICAL)
def test_bad_input_is_settled_in_seconds(name: str, variant: str) -> None:
    many = tuple(Source(str(i), f"Part {i} costs {i} dollars.", retrieval_score=i / 1e4) for i in range(10_000))
    full = replace(
        trace("Part 77 costs 77 dollars [78].", "Part 77 costs."), alternatives=("Part 77 costs a lot.", "77 dollars.")
    )
    bad = [
        *(
            replace(full, answer=answer)
            for answer in ["", " \n\t", "😀🎉", "\x00", "a\x00b", "\ud800", "x \udfff y.", "…"]
        ),
        *(replace(full, alternatives=some) for some in [("", ""), ("\ud800", "\x00"), ("Same.",) * 3, ("a",) * 10_000]),
        replace(full, sources=many),
        replace(full, sources=(Source("1", ""), Source("1", " "), Source("", "\ud800"))),
        replace(full, answer="The warranty of part 77 lasts 24 months [1]. " * 23_000),
        replace(full, answer="水" * 300_000, alternatives=("水" * 300_000, "火" * 1000)),
    ]
    scores = score_batch(registry.make(name, {"variant": variant}), bad)
    assert len(scores) == len(bad)
    if "answer" in registry.get(name).needs:
        assert [found.reason for found in scores[:2]] == ["empty answer"] * 2
    for found in scores:
        assert found.seconds < 30
        assert "Error" not in (found.reason or "")
        if found.status == "scored":
            assert found.value is not None
            assert math.isfinite(found.value)
        else:
            assert found.value is None
            assert found.reason


@pytest.mark.parametrize("name", ["bleu", "word_overlap"])
def test_an_empty_context_is_no_verdict(name: str) -> None:
    for variant in ("default", "plain"):
        found = score(name, trace("An answer.", "", " "), variant=variant)
        assert (found.value, found.reason) == (None, "no words in the context")
