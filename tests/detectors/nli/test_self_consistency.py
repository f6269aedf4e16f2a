"""`self_consistency`, and refusals among the alternatives."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from calibrate.backends.embedding.model import embedder
from calibrate.backends.text.refusals import find_refusal
from tests.detectors.nli.asking import OTHERS, REFUSAL, SAID, asked, score, value

SETS = ["selfcheck_nli", "semantic_entropy", "self_consistency"]


@pytest.mark.parametrize("name", SETS)
def test_identical_refusals_are_not_agreement(name: str, known: str) -> None:
    if find_refusal(REFUSAL) is None:
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
