"""Judges on a real model: the path, never its taste."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from calibrate.backends.chat import Reply, chat
from calibrate.workspace import Workspace, using
from tests.detectors.examples import trace
from tests.detectors.judges.judging import score
from tests.llm import Llm


@pytest.fixture
def real(llm_chat: Llm) -> Iterator[Llm]:
    with using(Workspace()):
        yield llm_chat


SHORT = trace("It lasts 24 months.", "The warranty lasts 24 months.", id="real")


def test_a_real_models_yes_or_no_has_log_probabilities(real: Llm) -> None:
    found = score("judge_yes_no", SHORT)
    assert found.usage is not None
    assert found.usage.requests == 1
    assert found.usage.prompt_tokens > 50
    assert found.usage.completion_tokens > 0
    if found.status == "scored":
        assert "from log-probabilities" in found.evidence[1].text
        assert 0 < (found.value or 0) < 1
    else:
        assert (found.reason or "").startswith("unparsed: ")
        assert found.evidence[0].text.startswith("the reply: ")


FEW_SHOT = """=== system ===
Is the answer in the context? Reply YES or NO. The texts stand between lines with {fence}.
=== user ===
{context}
{answer}
Reply YES or NO.
=== assistant ===
YES
=== user ===
BEGIN context {fence}
Tea is hot.
END context {fence}
BEGIN answer {fence}
Cars are red.
END answer {fence}
Reply YES or NO.
=== assistant ===
NO
=== user ===
{context}
{answer}
Reply YES or NO."""


def test_a_real_models_word_becomes_a_probability(real: Llm) -> None:
    """With a team's wording that even a small model keeps to: the whole path ends in a value between 0 and 1."""
    with using(Workspace(files={"prompts/judge_yes_no.txt": FEW_SHOT})):
        found = score("judge_yes_no", SHORT)
    assert found.status == "scored", (found.reason, found.evidence)
    assert found.evidence[0].text.startswith(("YES", "NO"))
    assert "from log-probabilities" in found.evidence[1].text
    assert 0 < (found.value or 0) < 1
    assert found.usage is not None
    assert found.usage.cost is None  # the price of this model is not in the table


def test_a_real_models_tokens_join_to_its_reply(real: Llm) -> None:
    """What the odds rely on: the first word is found among the tokens, whose spellings compete."""
    from calibrate.backends.chat import Request
    from calibrate.detectors.shared.replies import odds

    few_shot = (("user", "Is 2 even? Reply YES or NO."), ("assistant", "YES"), ("user", "Is 3 even? Reply YES or NO."),
                ("assistant", "NO"), ("user", "Is 4 even? Reply YES or NO."))  # fmt: skip
    (reply,) = chat().ask([Request(few_shot, max_tokens=4, logprobs=20)])
    assert isinstance(reply, Reply), reply
    assert reply.tokens is not None
    assert "".join(token.text for token in reply.tokens).strip() == reply.text.strip()
    assert all(token.logprob <= 0 and len(token.top) == 20 for token in reply.tokens)
    found = odds(reply.tokens, reply.text, len(reply.text) - len(reply.text.lstrip()))
    assert found is not None
    assert 0 < found.no < 1
    assert 0 < found.mass <= 1


@pytest.mark.parametrize("name", ["judge_verdict", "judge_score", "selfcheck_judge"])
def test_a_real_models_reply_is_a_value_or_is_kept(real: Llm, name: str) -> None:
    found = score(name, replace(SHORT, alternatives=("It lasts 24 months.", "Two years.")))
    assert found.status in ("scored", "failed", "abstained")
    if found.status == "failed":
        assert (found.reason or "").startswith(("unparsed: ", "the judge declined: ")), found.reason
        assert found.evidence[0].text.startswith("the reply: ")
    assert found.usage is not None
    assert found.usage.completion_tokens > 0
