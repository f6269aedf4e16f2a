"""Refusals: recognised in many languages, and never where an answer also says something."""

from __future__ import annotations

import hashlib
import json
from collections import Counter

import pytest

from calibrate import workspace
from calibrate.backends import files
from calibrate.backends.text.refusals import find_refusal, version
from calibrate.errors import BadInput
from calibrate.workflow.traces.demo import TRACES
from tests.shared_data import load

REFUSALS = [
    "I do not have that information.",
    "I DON’T HAVE THAT INFORMATION",
    "I'm sorry for any confusion. I'm unable to assist you with that question.",
    "Sorry, as an AI language model, I cannot generate an output without a specific input. Please provide more.",
    "Unable to answer based on given passages.",
    "Based on the provided context, it is not possible to determine whether periods will cease. [1]",
    "The provided passages do not mention watching stories.",
    "Unfortunately, I don't have access to your account. Is there anything else I can help you with?",
    "I don't know.",
    "I’m sorry, but I can’t help with that.",
    "There is no information about the price in the given sources.",
    "There is no mention of the price in the provided context.",
    "Based on the given passages, the cost of a second floor cannot be determined.",
    "Ich habe dazu leider keine Informationen.",
    "Es tut mir leid, aber ich kann diese Frage anhand der vorliegenden Dokumente nicht beantworten.",
    "Leider kann ich dazu keine Auskunft geben. Bitte wenden Sie sich an den Support.",
    "Die Quellen enthalten keine Angaben zum Preis.",
    "Das weiß ich leider nicht.",
    "Je suis désolé, mais je ne peux pas répondre à cette question.",
    "Je n'ai pas d'informations à ce sujet.",
    "Les documents fournis ne mentionnent pas le prix.",
    "Lo siento, pero no tengo información sobre eso.",
    "Lamentablemente, no puedo responder a esa pregunta.",
    "Mi dispiace, ma non posso rispondere a questa domanda.",
    "Purtroppo non ho informazioni al riguardo.",
    "Desculpe, mas não tenho essa informação.",
    "Infelizmente, não posso responder a essa pergunta.",
    "Sorry, ik kan deze vraag niet beantwoorden.",
    "Helaas heb ik geen informatie daarover.",
    "Tyvärr kan jag inte svara på den frågan.",
    "К сожалению, я не могу ответить на этот вопрос.",
    "У меня нет информации об этом.",
    "申し訳ありませんが、その質問にはお答えできません。",
    "その情報は提供されていません。",
    "抱歉，我无法回答这个问题。",
    "很抱歉，根据提供的资料，没有相关信息。",
    "對不起，我不知道。",
    "죄송합니다. 해당 정보를 제공할 수 없습니다.",
    "عذرًا، لا أستطيع الإجابة على هذا السؤال.",
    "ليس لدي معلومات حول ذلك.",
    "מצטער, אין לי מידע על כך.",
    "אני לא יכול לענות על השאלה הזו.",
    "क्षमा करें, मेरे पास यह जानकारी नहीं है।",
]

ANSWERS = [
    "",
    "   \n ",
    "😀",
    "[1]",
    "I'm sorry to hear that.",
    "Please contact our support.",
    "No, the warranty does not cover damage by limescale. [1]",
    "No, it is not possible to pause a subscription for six months. [2]",
    "No, you cannot return beans that you have opened.",
    "I'm not sure, but they are actually the national dog of Cuba.",
    "The passages do not mention watching stories. The score is increased by sending snaps.",
    "I can't provide a list of phone numbers. [5] The repair is available for 24 hours from 9:00 to 17:00. [5]",
    "The text does not say when; it was 1990.",
    "I do not know the exact date: probably 1990.",
    "I don't have that information. Please call 555 0199.",
    "The warranty lasts 24 months. I do not have information on batteries.",
    "The warranty lasts 24 months and I do not have information on batteries.",
    "Sorry, the warranty lasts two years. I do not have that information.",
    "As an AI language model, I don't have access to real-time data. However, Blinding Lights was popular.",
    "Insects do not have eyelids or moving eye parts.",
    "They cannot focus on objects by changing the shape of their lens.",
    "There is no information barrier between the two firms.",
    "There is no mention of ZIPPOs in the context of naval warfare or any other related fields[8].",
    "“I don't know that” is not what the minister said; she said yes.",
    "Die Garantie deckt Kalk nicht ab.",
    "Nein, Sie können die Bohnen nicht zurückgeben.",
    "Ich weiß nicht genau, aber es sind zwei Jahre.",
    "Non, la garantie ne couvre pas le calcaire.",
    "No, la garantía no cubre la cal.",
    "Lo siento, pero la garantía dura dos años.",
    "保証は水濡れには適用されません。",
    "保修不包括水损坏。",
    "抱歉，保修期为两年。",
    "الضمان لا يغطي الماء.",
    "האחריות אינה מכסה נזקי מים.",
    "Das Lieferung kostet 4,90 EUR. [1]",
    '{"message": "I do not have that information."}',
]


@pytest.mark.parametrize("answer", REFUSALS)
def test_refusals_are_recognised(answer: str) -> None:
    said = find_refusal(answer)
    assert said is not None
    assert said in answer


@pytest.mark.parametrize("answer", ANSWERS)
def test_whoever_says_something_does_not_refuse(answer: str) -> None:
    assert find_refusal(answer) is None


def test_the_sentence_that_declines_is_given() -> None:
    answer = "I'm sorry.  I do not have that information [1].\nPlease ask our support."
    assert find_refusal(answer) == "I do not have that information [1]."


def test_one_sentence_of_substance_makes_it_an_answer() -> None:
    """Whatever refusal an answer opens or ends with, and in whatever language."""
    for said in REFUSALS:
        assert find_refusal(f"{said}\n\nThe warranty lasts two years.") is None
        assert find_refusal(f"Die Garantie dauert zwei Jahre.\n\n{said}") is None
        assert find_refusal(f"保修期为两年。\n\n{said}") is None


def test_a_long_answer_is_no_refusal() -> None:
    assert find_refusal("I do not have that information. " * 10) is not None
    assert find_refusal("I do not have that information. " * 40) is None


# What the shipped lists catch in real answers, read one by one: every one declines and says nothing else.
CAUGHT = {
    "ragtruth_qa": 0,
    "expertqa": 0,
    "attributionbench": 2,
    "expertqa_claims": 1,
    "faithdial_audit": 1,
    "halueval_general": 13,
    "mushroom_sv": 0,
    "wikibio_passages": 0,
}


@pytest.mark.shared
@pytest.mark.parametrize("name", CAUGHT)
def test_what_is_caught_in_real_answers(name: str) -> None:
    caught = {one.answer for one in load(name).traces if find_refusal(one.answer)}
    assert len(caught) == CAUGHT[name], "\n".join(caught)


def test_what_is_caught_in_the_sample_traces() -> None:
    answers = [json.loads(line)["answer"] for line in TRACES.read_text(encoding="utf-8").splitlines()]
    assert Counter(filter(find_refusal, answers)) == {
        "I do not have that information.": 6,
        "I'm sorry for any confusion. I'm unable to assist you with that question.": 1,
        "I am not able to provide that information.": 1,
    }


# ----------------------------------------------------------------------------------------------- the team's lists


def test_the_teams_list_counts_and_has_a_version() -> None:
    assert version() == ""
    ours = files.packaged("refusals/en.txt")
    with workspace.using(workspace.Workspace(files={"refusals/en.txt": f"computer says no\n{ours}"})):
        assert find_refusal("Computer says no!") == "Computer says no!"
        assert find_refusal("I do not have that information.") is not None
        assert len(version()) == 8
    with workspace.using(workspace.Workspace(files={"refusals/en.txt": "computer says no  # and nothing else"})):
        assert find_refusal("Computer says no.") == "Computer says no."
        assert find_refusal("I do not have that information.") is None
        assert find_refusal("Das weiß ich nicht.") is not None  # the other languages are ours
    with workspace.using(workspace.Workspace(files={"refusals/en.txt": ours, "prices.csv": "x"})):
        assert version() == ""
    assert find_refusal("Computer says no.") is None


@pytest.mark.parametrize(
    ("line", "said", "other"),
    [
        ("we|they say no", "They say no.", "You say no."),
        ("can_not|won't say", "Can not say.", "Can say."),
        ("no really? idea", "No idea.", "No bad idea."),
        ("ask … else", "Ask anybody else in the world.", "Ask."),
        ("... weiß nur der Chef", "Darüber weiß nur der Chef.", "Darüber weiß ich alles."),
        ("不清楚 这|那 事", "不清楚那事。", "清楚那事。"),
    ],
)
def test_how_a_phrase_is_written(line: str, said: str, other: str) -> None:
    with workspace.using(workspace.Workspace(files={"refusals/en.txt": line})):
        assert find_refusal(said) == said
        assert find_refusal(other) is None


def test_lines_without_words_match_nothing() -> None:
    for text in ("", "\n# nothing\n", "…", "… … ?", "a?", "|", "[beside]\n…\n…", "\x00", "\ud800"):
        with workspace.using(workspace.Workspace(files={"refusals/en.txt": text})):
            assert find_refusal("The warranty lasts two years.") is None


def test_an_unknown_section_is_named() -> None:
    edited = workspace.Workspace(files={"refusals/en.txt": "no\n[exceptions]\nyes"})
    said = r"refusals/en.txt, line 2: there is no section \[exceptions\]"
    with workspace.using(edited), pytest.raises(BadInput, match=said):
        find_refusal("No.")


def test_every_shipped_list_has_both_kinds() -> None:
    names = [name for name in files.names() if name.startswith("refusals/")]
    assert {"en", "de", "fr", "es", "it", "pt", "nl", "ja", "zh", "ar", "he"} <= {n[9:-4] for n in names}
    for name in names:
        with workspace.using(workspace.Workspace(files={one: "" for one in names if one != name})):
            assert find_refusal("The warranty lasts two years.") is None
        text = files.packaged(name)
        assert all(f"[{section}]" in text for section in ("declines", "beside", "but"))


# ---------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "answer",
    [
        "The warranty lasts 24 months. " * 35_000,
        " " * 1_000_000 + "x",
        "I do not know " * 42,
        "please " * 85,
        "情報" * 300,
        "그 정보 수 " * 80,
        "sorry, but " * 50,
        "\x00\ud800 I do not know \udfff",
        ": ; : ; " * 70,
        "नहीं जानकारी " * 40,
    ],
    ids=lambda text: hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6],
)
def test_odd_answers_end(answer: str) -> None:
    said = find_refusal(answer)
    assert said is None or said in answer
