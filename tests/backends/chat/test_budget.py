"""What a reply costs, and a budget that is never exceeded."""

from __future__ import annotations

import pytest

from calibrate import workspace
from calibrate.backends.chat import ChatError, Reply
from calibrate.backends.chat.price import price_of, table
from calibrate.errors import BadInput
from calibrate.workspace import Workspace
from tests.backends.chat.asking import Cache, Start, one, paid, request
from tests.backends.chat_stub import good, wrong


def test_a_reply_says_what_it_cost(start: Start) -> None:
    _, chat = start(good)
    with workspace.using(paid()):
        reply = one(chat)
    assert isinstance(reply, Reply)
    assert reply.usage.cost == pytest.approx((10 * 1000 + 5 * 2000) / 1e6)


def test_the_budget_stops_the_run_and_is_never_exceeded(start: Start) -> None:
    stub, chat = start(good, CONCURRENCY=8)
    # A reply costs $0.02, and as much is set aside before: 10 tokens in (a quarter of 24 bytes, and 4) and 5 out.
    with workspace.using(paid(0.1)) as here:
        results = list(chat.ask(request(f"{i:024}", max_tokens=5) for i in range(50)))
    replies = [reply for reply in results if isinstance(reply, Reply)]
    assert len(replies) == len(stub.asked) == 5
    assert sum(reply.usage.cost or 0 for reply in replies) == pytest.approx(0.1)
    assert here.budget is not None
    assert here.budget.spent == pytest.approx(0.1)
    errors = [error for error in results if isinstance(error, ChatError)]
    assert all(str(error).startswith("the budget of $0.1 does not allow ") and error.final for error in errors)


def test_what_is_set_aside_but_not_spent_is_there_for_the_next(start: Start) -> None:
    _, chat = start(lambda asked: good(asked, after=0.01), CONCURRENCY=8)
    # Each may cost $2 and costs $0.02: one at a time, all twenty fit into $2.4.
    with workspace.using(paid(2.4)):
        results = list(chat.ask(request(str(i), max_tokens=1000) for i in range(15)))
    assert all(isinstance(result, Reply) for result in results)


def test_a_failed_request_costs_nothing(start: Start) -> None:
    _, chat = start(lambda asked: wrong(403, "no"))
    with workspace.using(paid(1.0)) as here:
        assert isinstance(one(chat), ChatError)
    assert here.budget is not None
    assert here.budget.spent == 0


def test_a_budget_needs_a_price(start: Start) -> None:
    stub, chat = start(good, MODEL="unheard-of")
    with workspace.using(paid(5)):
        assert "the price of 'unheard-of' is not known" in str(one(chat))
    assert not stub.asked
    _, free = start(good, MODEL="free-one")
    with workspace.using(paid(0)):
        reply = one(free)
    assert isinstance(reply, Reply)
    assert reply.usage.cost == 0


def test_an_unknown_price_makes_the_cost_unknown_not_nothing(start: Start) -> None:
    _, chat = start(good, MODEL="unheard-of")
    reply = one(chat)
    assert isinstance(reply, Reply)
    assert reply.usage.cost is None
    assert chat.estimate([request()]).cost is None


def test_an_estimate_sends_nothing(start: Start) -> None:
    stub, chat = start(good)
    with workspace.using(paid(replies=Cache())):
        assert isinstance(one(chat, request("known")), Reply)
        found = chat.estimate(
            [request("known"), request("x" * 400, max_tokens=100), request("x" * 400, max_tokens=100)]
        )
    assert (found.requests, found.cached, found.prompt_tokens, found.completion_tokens) == (1, 2, 104, 100)
    assert found.cost == pytest.approx((104 * 1000 + 100 * 2000) / 1e6)
    assert len(stub.asked) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("model,price\n", "line 1"),
        ("model,prompt,completion,as_of\na,1,2\n", "line 2: 3 fields"),
        ("# c\nmodel,prompt,completion,as_of\n\na,1,two,2026-01-01\n", "line 4: 'two' is no price"),
        ("model,prompt,completion,as_of\na,-1,2,\n", "line 2: '-1' is no price"),
        ("model,prompt,completion,as_of\na,nan,2,\n", "line 2"),
        ("model,prompt,completion,as_of\na,none,2,\n", "line 2"),
        ("model,prompt,completion,as_of\na,1,2,yesterday\n", "line 2: 'yesterday' is no day"),
        ("model,prompt,completion,as_of\n,1,2,\n", "line 2"),
    ],
)
def test_a_bad_price_table_is_refused_with_its_line(start: Start, text: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        table(text)
    stub, chat = start(good)
    with workspace.using(Workspace(files={"prices.csv": text})):
        assert said in str(one(chat))
    assert not stub.asked


@pytest.mark.parametrize(
    ("model", "price"),
    [("gpt-4o-mini", (0.15, 0.6)), ("GPT-4o-2024-08-06", (2.5, 10)), ("gpt-4o-audio-preview", None), ("own", None)],
)
def test_the_first_matching_line_counts(model: str, price: tuple[float, float] | None) -> None:
    found = price_of(model)
    assert (None if found is None else (found.prompt, found.completion)) == price
