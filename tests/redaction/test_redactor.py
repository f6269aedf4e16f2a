"""A redacted trace: one placeholder a value in all of it, log-probabilities and spans in step, nothing else changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate.backends.text.citations import citations
from calibrate.detectors.shared.scoring import by_number
from calibrate.errors import BadInput, Unavailable
from calibrate.redaction import redactor_of
from calibrate.redaction.redactor import Redactor
from calibrate.types import Label, Source, Span, Token, Trace

ALL = "email,phone,card,key"


@pytest.fixture(scope="module")
def redactor() -> Redactor:
    redactor = redactor_of(ALL)
    assert redactor is not None
    return redactor


def test_one_value_has_one_placeholder_in_the_whole_trace(redactor):
    trace = Trace(
        "t",
        "Write to ANN@x.org, not bob@x.org.",
        question="Is it ann@x.org?",
        context="ann@x.org is right",
        sources=(Source("1", "ann@x.org or bob@x.org", "From cyd@x.org"),),
        alternatives=("bob@x.org", "call (415) 555-2671"),
        schema={"examples": ["cyd@x.org"], "maxLength": 3},
        attributes={"user": "ann@x.org", "n": 3},
    )
    redacted, _, counts = redactor.redact(trace)
    assert redacted.question == "Is it [e-mail 1]?"
    assert redacted.context == "[e-mail 1] is right"
    assert redacted.sources == (Source("1", "[e-mail 1] or [e-mail 2]", "From [e-mail 3]"),)
    assert redacted.answer == "Write to [e-mail 1], not [e-mail 2]."
    assert redacted.alternatives == ("[e-mail 2]", "call [phone 1]")
    assert redacted.schema == {"examples": ["[e-mail 3]"], "maxLength": 3}
    assert redacted.attributes == {"user": "[e-mail 1]", "n": 3}
    assert counts == {"e-mail": 10, "phone": 1}


def test_token_texts_stay_the_answer_and_keep_their_probabilities(redactor):
    pieces = ["Ask", " ", "ann", "@x", ".org", " now", ", or", " bob@", "x.org", "!"]
    tokens = tuple(Token(piece, -at / 10, ((piece, -at / 10), ("ann", -3.0))) for at, piece in enumerate(pieces))
    redacted, _, counts = redactor.redact(Trace("t", "".join(pieces), tokens=tokens))
    assert redacted.answer == "Ask [e-mail 1] now, or [e-mail 2]!"
    assert redacted.tokens is not None
    assert "".join(token.text for token in redacted.tokens) == redacted.answer
    assert [token.logprob for token in redacted.tokens] == [token.logprob for token in tokens]
    assert [[p for _, p in token.top] for token in redacted.tokens] == [[p for _, p in token.top] for token in tokens]
    assert [token.text for token in redacted.tokens][2:5] == ["[e-mail 1]", "", ""]
    assert {text for token in redacted.tokens[2:5] for text, _ in token.top} == {""}
    assert counts == {"e-mail": 2}


def test_tokens_that_hold_more_than_the_answer_are_redacted_and_counted(redactor):
    tokens = (Token("ann@", -0.1), Token("x.org", -0.1))
    redacted, _, counts = redactor.redact(Trace("t", "Yes.", tokens=tokens))
    assert redacted.tokens == (Token("[e-mail 1]", -0.1), Token("", -0.1))
    assert counts == {"e-mail": 1}


def test_spans_of_labels_point_at_the_same_words(redactor):
    answer = "Ask ann@x.org about Rome, or bob@x.org."
    rome = answer.index("Rome")
    label = Label(
        "t",
        "me",
        "hallucinated",
        spans=(
            Span(rome, rome + 4, "fabrication"),
            Span(0, 3),
            Span(4, 13),
            Span(6, rome + 4),
            Span(rome + 4, len(answer)),
        ),
        note="not ann@x.org",
    )
    redacted, (moved,), _ = redactor.redact(Trace("t", answer), [label])
    words = [redacted.answer[span.start : span.end] for span in moved.spans]
    assert words == ["Rome", "Ask", "[e-mail 1]", "[e-mail 1] about Rome", ", or [e-mail 2]."]
    assert moved.note == "not [e-mail 1]"


def test_ids_that_hold_an_address_become_digests_and_numbers_stay(redactor):
    first, (label,), _ = redactor.redact(Trace("ann@x.org/1", "A", group="ann@x.org"), [Label("", "me", "clean")])
    second, _, _ = redactor.redact(Trace("ann@x.org/2", "B", group="ann@x.org"))
    assert first.group == second.group
    assert "ann" not in f"{first.id}{first.group}"
    assert first.id != second.id
    assert label.trace_id == first.id
    number = Trace("415-555-2671", "mail ann@x.org", group="4111111111111111")
    kept, _, _ = redactor.redact(number)
    assert (kept.id, kept.group) == (number.id, number.group)


def test_numbers_that_are_taken_are_not_given_again(redactor):
    trace = Trace("t", "[e-mail 1] asked, cyd@x.org answered")
    redacted, _, _ = redactor.redact(trace)
    assert redacted.answer == "[e-mail 1] asked, [e-mail 2] answered"
    assert redactor.redact_texts(["[e-mail 1] or dan@x.org"], redacted) == ["[e-mail 1] or [e-mail 3]"]


def test_names_of_attributes_and_numbers_of_sources_are_looked_into(redactor):
    trace = Trace(
        "t",
        "Paid [ann@x.org], see [2].",
        sources=(Source("ann@x.org", "It is paid."), Source("2", "See there."), Source("ANN@x.org", "Not yet.")),
        schema={"properties": {"bob@x.org": {"type": "string"}}, "required": ["bob@x.org"]},
        attributes={"score of ann@x.org": 3, "score of ANN@x.org": 4, "plan": "gold", "bob@x.org": "ann@x.org"},
    )
    redacted, _, counts = redactor.redact(trace)
    assert [source.number for source in redacted.sources] == ["[e-mail 1]", "2", "[e-mail 1] (2)"]
    assert [source.text for source in redacted.sources] == ["It is paid.", "See there.", "Not yet."]
    assert redacted.answer == "Paid [[e-mail 1]], see [2]."
    assert citations(redacted.answer, sources=by_number(redacted.sources))[0].numbers == ("e-mail 1",)
    assert redacted.attributes == {
        "score of [e-mail 1]": 3,
        "score of [e-mail 1] (2)": 4,
        "plan": "gold",
        "[e-mail 2]": "[e-mail 1]",
    }
    assert redacted.schema == {"properties": {"[e-mail 2]": {"type": "string"}}, "required": ["[e-mail 2]"]}
    assert counts == {"e-mail": 9}


KEYS = st.lists(
    st.sampled_from(("ann@x.org", "ANN@x.org", "[e-mail 1]", "[e-mail 1] (2)", "Ann@x.org", "plan")), unique=True
)


@given(KEYS, KEYS)
def test_keys_that_become_equal_lose_no_value(names, numbers):
    redactor = redactor_of(ALL)
    assert redactor is not None
    trace = Trace(
        "t",
        "Yes.",
        attributes={name: at for at, name in enumerate(names)},
        sources=tuple(Source(number, str(at)) for at, number in enumerate(numbers)),
        schema={"properties": {name: {"maxLength": at} for at, name in enumerate(names)}},
    )
    once, _, _ = redactor.redact(trace)
    assert list(once.attributes.values()) == list(range(len(names)))
    assert len({source.number for source in once.sources}) == len(numbers)
    assert isinstance(once.schema, dict)
    assert len(once.schema["properties"]) == len(names)
    assert "@" not in repr(once)
    assert redactor.redact(once)[0] == once


VALUES = ("ann@x.org", "bob.b@mail.example", "+49 30 1234567", "4111 1111 1111 1111", "AKIAIOSFODNN7EXAMPLE")
TEXT = st.lists(st.one_of(st.text(max_size=12), st.sampled_from(VALUES)), max_size=8).map(" ".join)


@given(TEXT, TEXT, st.integers(1, 7))
def test_redacting_twice_is_redacting_once(question, answer, width):
    redactor = redactor_of(ALL)
    assert redactor is not None
    pieces = [answer[at : at + width] for at in range(0, len(answer), width)]
    trace = Trace("t", answer, question=question, tokens=tuple(Token(piece, -0.5) for piece in pieces))
    once, _, _ = redactor.redact(trace)
    twice, _, counts = redactor.redact(once)
    assert twice == once
    assert not counts
    assert "".join(token.text for token in once.tokens or ()) == once.answer
    assert not any(value in f"{once.question} {once.answer}" for value in VALUES)


@given(st.text(alphabet=st.characters(exclude_categories=("Nd",), exclude_characters="@-")))
def test_a_text_without_matches_is_unchanged(text):
    redactor = redactor_of(ALL)
    assert redactor is not None
    trace = Trace("t", text, question=text, alternatives=(text,))
    assert redactor.redact(trace)[0] is trace


def test_a_hook_of_the_users_own(tmp_path, monkeypatch):
    (tmp_path / "our_names.py").write_text(
        "import re\n"
        "def find(text):\n    return [(*m.span(), 'name') for m in re.finditer('Ann Lee|Bob', text)]\n"
        "def wrong(text):\n    return [(0, len(text) + 1, 'name')]\n"
        "def broken(text):\n    raise KeyError('Ann Lee')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    redactor = redactor_of("email,our_names:find")
    assert redactor is not None
    redacted, _, counts = redactor.redact(Trace("t", "Ann Lee <ann@x.org> and Bob, Ann Lee"))
    assert redacted.answer == "[name 1] <[e-mail 1]> and [name 2], [name 1]"
    assert counts == {"name": 3, "e-mail": 1}
    for name, words in {"wrong": "a part of the text", "broken": "failed with KeyError"}.items():
        hook = redactor_of(f"our_names:{name}")
        assert hook is not None
        with pytest.raises(BadInput, match=words):
            hook.redact(Trace("t", "Ann Lee"))
    with pytest.raises(BadInput, match="cannot be loaded"):
        redactor_of("our_names:nothing")


@pytest.mark.parametrize("names", ["", "none", " off "])
def test_nothing_is_redacted_unless_it_is_asked_for(names):
    assert redactor_of(names) is None


def test_names_that_there_are_not_are_refused():
    with pytest.raises(BadInput, match=r"nothing is called 'mails' to redact: there are email, phone, card, key"):
        redactor_of("email,mails")


def test_presidio_is_named_where_it_is_absent(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "presidio_analyzer", None)
    with pytest.raises(Unavailable, match=r"pip install 'touchstone\[presidio\]'"):
        redactor_of("presidio")
