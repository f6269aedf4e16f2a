"""Entropy and log-probability of tokens: against numpy, scipy and closed forms, and where usual recipes go wrong."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax
from scipy.stats import entropy as scipy_entropy

from calibrate import registry, workspace
from calibrate.backends import logprobs
from calibrate.types import Baseline, Score, Token, Trace
from calibrate.workflow.traces.demo import TRACES
from tests.shared_data import load

LN5 = math.log(5)
NOW = datetime(2026, 11, 21, tzinfo=UTC)
POOLINGS = ("mean", "max", "top_decile")


def token(top: list[float], text: str = "word", logprob: float | None = None) -> Token:
    """A token whose most likely alternatives have these log-probabilities."""
    chosen = logprob if logprob is not None else (top[0] if top else -0.5)
    return Token(text, chosen, tuple((f"{text}{i}", one) for i, one in enumerate(top)))


def spread_over(n: int, k: int = 5) -> list[float]:
    """The k most likely of n tokens that are all equally likely."""
    return [-math.log(n)] * k


def trace(tokens: list[Token], model: str | None = "m") -> Trace:
    return Trace("t", " ".join(one.text for one in tokens) or "x", tokens=tuple(tokens), model=model)


def drawn(seed: int = 3, n: int = 37, k: int = 5) -> tuple[list[Token], np.ndarray]:
    """Tokens with the k most likely of 200 by real softmaxes, and those log-probabilities as an array."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, 200)) * rng.uniform(0.5, 5, size=(n, 1))
    top = -np.sort(-log_softmax(logits, axis=1), axis=1)[:, :k]
    return [token(list(map(float, row)), f"w{i}") for i, row in enumerate(top)], top


def baselines(centre: float = 0.6, spread: float = 0.2, k: int = 5) -> workspace.Workspace:
    made = [Baseline(f"entropy/{how}/top{k}", "m", centre, spread, 40, NOW) for how in POOLINGS]
    return workspace.Workspace(baselines={(one.statistic, one.model): one for one in made})


def score(name: str, one: Trace, **params: str) -> Score:
    (found,) = registry.make(name, params).score([one])
    return found


def value(name: str, one: Trace, **params: str) -> float:
    found = score(name, one, **params)
    assert found.value is not None, found.reason
    return found.value


# ------------------------------------------------------------------------------------------------------- entropy


@pytest.mark.parametrize("k", [2, 5, 20])
def test_entropies_are_scipys(k: int) -> None:
    tokens, top = drawn(k=k)
    found = logprobs.entropies(tokens)
    assert found.k == k
    assert found.ceiling == pytest.approx(math.log(k))
    assert list(found.values) == pytest.approx(scipy_entropy(np.exp(top), axis=1), abs=1e-12)


def test_pooling_is_numpys() -> None:
    tokens, top = drawn()
    values = scipy_entropy(np.exp(top), axis=1)
    found = logprobs.entropies(tokens).values
    assert logprobs.pool(found, "mean") == pytest.approx(values.mean())
    assert logprobs.pool(found, "max") == pytest.approx(values.max())
    assert logprobs.pool(found, "top_decile") == pytest.approx(np.sort(values)[-4:].mean())  # 4 of 37


def test_closed_forms() -> None:
    assert logprobs.entropy([0.0, -100.0]) == pytest.approx(0, abs=1e-12)
    assert logprobs.entropy([math.log(0.5)] * 2) == pytest.approx(math.log(2))
    assert logprobs.entropy([math.log(0.1)] * 5) == pytest.approx(LN5)  # half of the mass is elsewhere
    p = 0.9
    assert logprobs.entropy([math.log(p), math.log(1 - p)]) == pytest.approx(-p * math.log(p) - 0.1 * math.log(0.1))


@pytest.mark.parametrize("pooling", POOLINGS)
def test_z_is_the_distance_from_the_baseline(pooling: str) -> None:
    tokens, top = drawn()
    values = scipy_entropy(np.exp(top), axis=1)
    pooled = {"mean": values.mean(), "max": values.max(), "top_decile": np.sort(values)[-4:].mean()}[pooling]
    with workspace.using(baselines(1.0, 0.25)):
        high, low, either = (
            value("entropy_z", trace(tokens), aggregate=pooling, side=side) for side in ("high", "low", "abs")
        )
    assert high == pytest.approx((pooled - 1.0) / 0.25)
    assert low == pytest.approx(-high)
    assert either == pytest.approx(abs(high))


def test_abs_mixes_unsure_with_too_sure() -> None:
    unsure = trace([token(spread_over(5))] * 5)
    sure = trace([token([0.0, *[-40.0] * 4])] * 5)
    with workspace.using(baselines(LN5 / 2, 0.1)):
        assert value("entropy_z", unsure, side="abs") == pytest.approx(value("entropy_z", sure, side="abs"))
        assert value("entropy_z", unsure) > 2.5 > -2.5 > value("entropy_z", sure)


def test_the_published_recipe_never_sees_an_unsure_answer() -> None:
    """ln 5 is 0.51 above 1.42 ± 0.38: no top-5 entropy can be further up, so |z| > 2.5 means "sure"."""
    lost = trace([token(spread_over(5))] * 8)
    certain = trace([token([-1e-4, -10.0, -11.0, -12.0, -13.0])] * 8)
    assert value("entropy_z", lost, variant="plain") == pytest.approx((LN5 - 1.42) / 0.38, abs=1e-9)
    assert (LN5 - 1.42) / 0.38 < 0.51
    rng = np.random.default_rng(0)
    for row in np.log(rng.dirichlet(np.ones(5), size=500)):
        mean = -float(np.sum(np.exp(row) * row))
        z = value("entropy_z", trace([token(list(map(float, row)))] * 3), variant="plain")
        assert z < 0.51 or mean < 1.42
    assert value("entropy_z", certain, variant="plain") > 2.5
    with workspace.using(baselines(0.6, 0.2)):
        assert value("entropy_z", lost) > 2.5
        assert value("entropy_z", certain) < 0


def test_a_model_that_knows_nothing_does_not_read_as_sure() -> None:
    """One of 50,000 equally likely tokens: five of them hold 0.01% of the mass, and the sum as logged is next to 0."""
    lost = trace([token(spread_over(50_000))] * 6)
    assert value("entropy_z", lost, variant="plain") == pytest.approx(1.42 / 0.38, abs=0.01)  # as for a certain one
    with workspace.using(baselines()):
        assert value("entropy_z", lost) == pytest.approx((LN5 - 0.6) / 0.2)


def test_no_most_likely_tokens_are_not_certainty() -> None:
    bare = trace([Token("word", -1.2)] * 6)
    assert value("entropy_z", bare, variant="plain") > 2.5
    with workspace.using(baselines()):
        found = score("entropy_z", bare)
    assert found.status == "abstained"
    assert "top_logprobs" in (found.reason or "")


def test_tokens_that_lack_them_are_left_out_until_too_many_do() -> None:
    full, bare = token(spread_over(5)), Token("word", -1.2)
    with workspace.using(baselines()):
        assert value("entropy_z", trace([full] * 4 + [bare] * 4), aggregate="mean") == pytest.approx((LN5 - 0.6) / 0.2)
        found = score("entropy_z", trace([full] * 3 + [bare] * 4))
    assert found.status == "abstained"
    assert "only 3 of 7 tokens" in (found.reason or "")


def test_one_alternative_says_nothing_of_entropy() -> None:
    with workspace.using(baselines(k=1)):
        found = score("entropy_z", trace([token([-0.3])] * 6))
    assert (found.status, "at least two" in (found.reason or "")) == ("abstained", True)


def test_a_token_drawn_from_outside_the_k_does_not_change_k() -> None:
    """Some services add the drawn token to the five most likely."""
    five = token([math.log(0.3), *[math.log(0.1)] * 4])
    six = token([math.log(0.3), *[math.log(0.1)] * 4, math.log(0.001)])
    assert logprobs.entropies([five, five, six]) == logprobs.entropies([five] * 3)


def test_missing_values_are_no_numbers() -> None:
    some = token([math.log(0.5), math.nan, math.log(0.25), math.nan, math.nan])
    found = logprobs.entropies([some] * 3)
    assert found.k == 2
    assert found.values[0] == pytest.approx(float(scipy_entropy([0.5, 0.25])))
    nothing = trace([token([math.nan] * 5, logprob=math.nan)] * 3)
    with workspace.using(baselines()):
        assert score("entropy_z", nothing).status == "abstained"
    assert score("token_logprob", nothing).status == "abstained"


# -------------------------------------------------------------------------------------------------------- logits


@pytest.mark.parametrize("name", ["entropy_z", "token_logprob"])
@pytest.mark.parametrize("logit", [0.01, 17.3, 900.0, math.inf])
def test_unnormalised_logits_are_refused(name: str, logit: float) -> None:
    one = trace([token([-0.1, -3.0, -4.0, -5.0, -6.0])] * 5 + [token([logit, 9.0, 3.0, 1.0, -2.0], logprob=logit)])
    with workspace.using(baselines()):
        found = score(name, one)
    assert (found.status, found.value) == ("failed", None)
    assert "token 6" in (found.reason or "")
    assert "logits" in (found.reason or "")
    if math.isfinite(logit):
        assert score(name, one, variant="plain").value is not None  # takes them for log-probabilities, unnoticed


def test_logits_below_zero_are_known_by_their_sum() -> None:
    one = trace([token([-0.1, -0.2, -0.3, -0.4, -0.5])] * 3)
    with workspace.using(baselines()):
        found = score("entropy_z", one)
        assert found.status == "failed"
        assert "sum to 3.74" in (found.reason or "")
        # Four decimals of real probabilities may sum to a little more than 1.
        rounded = [round(math.log(p), 2) + 0.001 for p in (0.5, 0.3, 0.15, 0.04, 0.01)]
        assert score("entropy_z", trace([token(rounded)] * 3)).status == "scored"


def test_a_rounded_certainty_is_no_logit() -> None:
    assert value("token_logprob", trace([Token("a", 9e-7), Token("b", -1.0)])) == pytest.approx(0.5)


# ----------------------------------------------------------------------------------------------- log-probability


def test_log_probability_is_numpys() -> None:
    tokens, top = drawn()
    assert value("token_logprob", trace(tokens)) == pytest.approx(-top[:, 0].mean())
    assert value("token_logprob", trace(tokens), aggregate="min") == pytest.approx(-top[:, 0].min())
    perplexity = float(np.exp(-top[:, 0]).prod() ** (1 / len(top)))
    assert math.exp(value("token_logprob", trace(tokens))) == pytest.approx(perplexity)


def test_very_unlikely_is_not_minus_9999() -> None:
    """Some services write -9999 for "not among the 20 most likely"; one such token drowns all others."""
    one = trace([Token("a", -0.5)] * 49 + [Token("b", -9999.0)])
    assert value("token_logprob", one, variant="plain") > 200
    assert value("token_logprob", one) == pytest.approx((49 * 0.5 + 100) / 50)
    assert value("token_logprob", one, aggregate="min") == 100


def test_only_zeros_are_no_certainty() -> None:
    """Taken after top-k sampling with k = 1, every log-probability is 0, whatever the model thought."""
    zeros = trace([Token("word", 0.0)] * 8)
    assert value("token_logprob", zeros, variant="plain") == 0
    found = score("token_logprob", zeros)
    assert (found.status, "after sampling" in (found.reason or "")) == ("abstained", True)
    assert value("token_logprob", trace([Token("yes", 0.0)])) == 0  # one word may be that certain


# ---------------------------------------------------------------------------------------------------- baselines


def test_without_a_baseline_it_says_what_to_label() -> None:
    tokens, _ = drawn()
    found = score("entropy_z", trace(tokens, model="new-model"))
    assert (found.status, found.value) == ("abstained", None)
    assert "no entropy baseline for model new-model" in (found.reason or "")
    assert "label about 30 clean traces" in (found.reason or "")
    assert "python -m calibrate baselines fit" in (found.reason or "")
    with workspace.using(baselines()):
        assert score("entropy_z", trace(tokens)).status == "scored"
        assert score("entropy_z", trace(tokens, model="new-model")).status == "abstained"
        assert "which model" in (score("entropy_z", trace(tokens, model=None)).reason or "")


def test_a_baseline_of_one_k_says_nothing_of_another() -> None:
    tokens, _ = drawn(k=20)
    with workspace.using(baselines(k=5)):
        assert "with 20 most likely tokens" in (score("entropy_z", trace(tokens)).reason or "")


def test_the_revision_names_the_baselines_it_would_use() -> None:
    detector = registry.make("entropy_z")
    assert detector.revision() == ""
    seen = set()
    for place in (baselines(0.6), baselines(0.7), baselines(0.6, 0.3)):
        with workspace.using(place):
            seen.add(detector.revision())
            assert registry.make("entropy_z", {"variant": "plain"}).revision() == ""
    assert len(seen) == 3
    other = {key: replace(one, n=99) for key, one in baselines(0.6).baselines.items()}
    other |= {("something/else", "m"): Baseline("something/else", "m", 1.0, 1.0, 40, NOW)}
    with workspace.using(workspace.Workspace(baselines=other)):
        assert detector.revision() in seen  # the same centre and spread give the same scores


# ------------------------------------------------------------------------------------------------------ evidence


def test_the_least_sure_tokens_are_shown_where_they_stand() -> None:
    words = ["保証", "期間は", "二年", "です", " الضمان", " سنتان", " ולא", " 😀"]
    tops = [
        [math.log(p), math.log((1 - p) / 2), math.log((1 - p) / 2)] for p in (0.9, 0.8, 0.4, 0.99, 0.95, 0.7, 0.5, 0.6)
    ]
    tokens = [token(top, word) for word, top in zip(words, tops, strict=True)]
    one = Trace("t", "".join(words), tokens=tuple(tokens), model="m")
    with workspace.using(baselines(k=3)):
        about, *pieces = score("entropy_z", one, aggregate="mean").evidence
        (_, surest, *_) = score("entropy_z", one, aggregate="mean", side="low").evidence
    assert about.start is None
    assert "of at most 1.10 nats" in about.text
    assert [one.answer[piece.start : piece.end] for piece in pieces[:3]] == ["二年", "ולא", "😀"]
    assert one.answer[surest.start : surest.end] == "です"
    least = score("token_logprob", one).evidence[0]
    assert one.answer[least.start : least.end] == "二年"
    assert least.value == pytest.approx(-math.log(0.4))


@pytest.mark.parametrize(
    ("answer", "texts", "found"),
    [
        ("The cat sat.", ["The", " cat", " sat", "."], ["The", "cat", "sat", "."]),
        ("The cat", ["▁The", "▁cat"], ["The", "cat"]),
        ("a\nb c", ["a", "Ċ", "b", "Ġc"], ["a", None, "b", "c"]),
        ("né à Ġgantija", ["n", "\\xc3", "\\xa9", " à", " Ġgantija", "</s>"], ["n", None, None, "à", "Ġgantija", None]),
        ("stripped", ["  stripped ", " "], ["stripped", None]),
        ("", ["a", ""], [None, None]),
    ],
)
def test_tokens_are_found_in_the_answer(answer: str, texts: list[str], found: list[str | None]) -> None:
    places = logprobs.places(answer, [Token(text, -1.0) for text in texts])
    assert [None if one is None else answer[one.start : one.end] for one in places] == found


def test_a_hundred_thousand_tokens_show_ten() -> None:
    tokens = [Token(f" {i}", -float(i % 97) / 10) for i in range(100_000)]
    one = Trace("t", "".join(t.text for t in tokens), tokens=tuple(tokens), model="m")
    pieces = score("token_logprob", one).evidence
    assert len(pieces) == 10
    assert {piece.value for piece in pieces} == {9.6}
    assert one.answer[pieces[-1].start : pieces[-1].end] == str(96 + 97 * 9)


# ----------------------------------------------------------------------------------------------------- real data


def shipped(record: dict[str, Any]) -> Trace:
    tokens = tuple(
        Token(t["token"], t["logprob"], tuple((u["token"], u["logprob"]) for u in t["top_logprobs"]))
        for t in record["tokens"]
    )
    return Trace(record["trace_id"], record["answer"], tokens=tokens, model=record["model"])


def test_the_sample_traces_rank_better_than_the_recipe() -> None:
    """SmolLM2's own log-probabilities: what is wrong was hesitated over; the recipe flags what was said for sure."""
    from sklearn.metrics import roc_auc_score

    from calibrate.detectors.entropy_z import statistic
    from calibrate.stats.fitting.baselines import fit_baseline

    records = [json.loads(line) for line in TRACES.read_text(encoding="utf-8").splitlines()]
    rows = [(shipped(one), one["label"] == "hallucinated") for one in records if one["label"] and one["tokens"]]
    clean: dict[str, list[float]] = {}
    for one, wrong in rows:
        if not wrong:
            pooled = logprobs.pool(logprobs.entropies(one.tokens or ()).values, "top_decile")
            clean.setdefault(str(one.model), []).append(pooled)
    name = statistic("top_decile", 5)
    made = {(name, m): fit_baseline(some, statistic=name, model=m, now=NOW) for m, some in clean.items()}
    wrong = [label for _, label in rows]
    with workspace.using(workspace.Workspace(baselines=made)):
        ours, plain = (
            roc_auc_score(wrong, [value("entropy_z", one, variant=variant) for one, _ in rows])
            for variant in ("default", "plain")
        )
    assert ours > 0.65
    assert plain < 0.5


@pytest.mark.shared
def test_swedish_answers_have_log_probabilities_and_no_entropy() -> None:
    traces = load("mushroom_sv").traces
    with workspace.using(baselines()):
        assert {one.status for one in registry.make("entropy_z").score(traces)} == {"abstained"}
    scores = list(registry.make("token_logprob").score(traces))
    assert sum(one.status == "scored" for one in scores) >= 70
    for one, found in zip(traces, scores, strict=True):
        if found.value is not None:
            logged = np.array([t.logprob for t in one.tokens or ()])
            assert found.value == pytest.approx(-logged.mean(), abs=1e-9)
            assert sum(piece.start is not None for piece in found.evidence) >= len(found.evidence) * 0.7


@pytest.mark.parametrize(
    ("answer", "texts", "status"),
    [
        ("The cat sat.", ["The", " cat", " sat", ".", "<|im_end|>"], "scored"),
        ("The cat sat.", ["▁The", "▁cat", "▁sat", ".", "</s>"], "scored"),
        ("The cat sat. Sources: 1", ["The", " cat", " sat", "."], "scored"),  # a line of the application's own
        ("né", ["n", "\\xc3", "\\xa9"], "scored"),  # cannot be told
        ("二年前", ["äºĮ", "å¹´", "åīį"], "scored"),  # as byte-level vocabularies write it
        ("The cat sat.", ["Le", " chien", " dort", "!"], "abstained"),
        ("The cat sat.", [" Thoughts", " go", " on", " and", " on", " The", " cat", " sat", "."], "abstained"),
        ("The cat sat on the mat all day.", ["The", " cat"], "abstained"),
        ("The cat sat.", ["<|im_end|>"], "abstained"),
    ],
)
def test_the_tokens_of_another_text_are_no_evidence(answer: str, texts: list[str], status: str) -> None:
    found = score("token_logprob", Trace("t", answer, tokens=tuple(Token(text, -0.5) for text in texts)))
    assert found.status == status
    assert status == "scored" or "not of this answer" in str(found.reason)


def test_a_number_that_stands_for_none_everywhere_is_no_score() -> None:
    assert score("token_logprob", trace([Token(f"w{n}", -9999.0) for n in range(5)])).status == "abstained"
    one = trace([Token("a", -1.0), Token("b", -9999.0)])
    assert value("token_logprob", one) == pytest.approx((1 + 100) / 2)
