"""Sentences that claim nothing are left out, in any script; a sentence with a word of its own never is."""

from __future__ import annotations

import random
import string

import pytest

from calibrate.backends.text.claims import claiming_sentences
from calibrate.backends.text.refusals import find_refusal
from calibrate.backends.text.segments import sentences
from tests import shared_data

FACT = "The tower is 330 metres tall."


def claims(answer: str, question: str = "") -> list[str]:
    return [answer[part.start : part.end] for part in claiming_sentences(answer, question=question, sources=["1"])]


@pytest.mark.parametrize(
    "empty",
    [
        "Here is a concise summary of the passage:",
        "**Here is a brief overview of the given context:**",
        "Based on the provided passages, here is the answer to the question:",
        "Sure!",
        "Sure, I can help you with that!",
        "Hello!",
        "Yes.",
        "(Passage 1)",
        "Source: [1]",
        "This is mentioned in passage 1.",
        "Unable to answer based on given passages.",
        "Let me know if you have any further questions.",
        "## Summary",
    ],
)
def test_what_claims_nothing_is_left_out(empty: str) -> None:
    assert claims(f"{empty}\n\n{FACT}") == [FACT]


@pytest.mark.parametrize(
    ("empty", "fact"),
    [
        ("以下是该段落的简要总结：", "塔高三百三十米。"),
        ("当然！", "塔高三百三十米。"),
        ("以下は文章の簡潔な要約です：", "塔の高さは三百三十メートルです。"),
        ("다음은 지문의 간략한 요약입니다:", "탑의 높이는 330미터입니다."),
        ("فيما يلي ملخص موجز للنص:", "يبلغ ارتفاع البرج 330 مترا."),
        ("להלן סיכום קצר של הטקסט:", "גובה המגדל 330 מטר."),
        ("यहाँ अनुच्छेद का संक्षिप्त सारांश है:", "मीनार 330 मीटर ऊँची है।"),
        ("Вот краткое изложение текста:", "Высота башни 330 метров."),
        ("Hier ist eine kurze Zusammenfassung des Textes:", "Der Turm ist 330 m hoch."),
        ("Voici un bref résumé du texte :", "La tour mesure 330 m."),
        ("Aquí tienes un breve resumen del texto:", "La torre mide 330 m."),
        ("Ecco un breve riassunto del testo:", "La torre misura 330 m."),
        ("Aqui está um breve resumo do texto:", "A torre mede 330 m."),
        ("Hier volgt een korte samenvatting van de tekst:", "De toren is 330 m hoog."),
        ("Här följer en kort sammanfattning av texten:", "Tornet är 330 m högt."),
    ],
)
def test_other_languages_and_scripts(empty: str, fact: str) -> None:
    assert claims(f"{empty}\n{fact}") == [fact]


@pytest.mark.parametrize(
    ("hidden", "question"),
    [
        ("The drug cures cancer:", ""),
        ("Aliens built the pyramids:", "Who built the pyramids?"),
        ("Aspirin cures cancer:", "Does aspirin cure cancer?"),
        ("Here is why Elvis is alive:", "Who was Elvis?"),
        ("Here is a summary of the 1969 passage:", ""),
        ("Here are the 40 steps:", ""),
        ("Based on the given passages, Zolvex was banned:", ""),
        ("Sure, the tower burnt down!", ""),
        ("(Passage 1 says that it burnt down)", ""),
        ("Unable to say more than that the tower burnt down.", ""),
        ("The man won the war:", ""),
        ("I cannot answer, but please take bleach.", ""),
        ("外星人建造了这座塔：", "谁建造了这座塔？"),
        ("以下是外星人建造的：", ""),
        ("بنى الفضائيون البرج:", ""),
        ("## Aliens built it", ""),
    ],
)
def test_what_hides_behind_a_colon_is_judged(hidden: str, question: str) -> None:
    text = hidden.removeprefix("## ")
    assert claims(f"{hidden}\n\n{FACT}", question) == [text, FACT]


def test_a_lead_in_may_repeat_the_question() -> None:
    question = "How do I fold a quilt?"
    assert claims("To fold the quilt, follow these steps:\n- Lay it flat.", question) == ["Lay it flat."]
    assert claims("Here are two ways of folding quilts:\n- Lay it flat.\n- Roll it up.", question) == [
        "Lay it flat.",
        "Roll it up.",
    ]
    assert len(claims("Here are 7 ways of folding quilts:\n- Lay it flat.\n- Roll it up.", question)) == 3


def test_the_last_sentence_leads_in_nothing() -> None:
    assert claims("Lay it flat.\nFold the quilt:", "How do I fold a quilt?") == ["Lay it flat.", "Fold the quilt:"]


def test_a_lead_in_on_the_same_line_is_cut_off() -> None:
    assert claims(f"Sure! Here is the answer: {FACT}") == [FACT]
    assert claims("The pyramids were built by aliens: in a day.") == ["The pyramids were built by aliens: in a day."]


@pytest.mark.parametrize("answer", ["", "Sure!", "[1]", "(Passage 1)", "[1] (Passage 1)", "...", "當然！"])
def test_nothing_may_be_left(answer: str) -> None:
    assert claims(answer) == []


def test_any_unknown_word_makes_a_sentence_a_claim() -> None:
    rng = random.Random(5)
    for _ in range(200):
        word = "".join(rng.choices(string.ascii_lowercase, k=9)) + "q"
        place = rng.randrange(5)
        lead = ["here", "is", "the", "answer", "below"]
        lead[place:place] = [word]
        sentence = f"{' '.join(lead)}:"
        assert claims(f"{sentence}\n{FACT}") == [sentence, FACT]


@pytest.mark.shared
def test_annotators_find_nothing_wrong_in_what_is_left_out() -> None:
    """RAGTruth's annotators marked the words that are hallucinated: of 300 left-out sentences hardly any has one."""
    left_out = marked = 0
    for record in shared_data.records("ragtruth_qa"):
        answer = record["answer"]
        if find_refusal(answer):
            continue
        kept = {part.end for part in claiming_sentences(answer, question=record["question"], sources=record["sources"])}
        for part in sentences(answer):
            if part.end not in kept:
                left_out += 1
                marked += any(span["start"] < part.end and span["end"] > part.start for span in record["spans"] or ())
    assert left_out > 250
    assert marked <= 0.02 * left_out
