"""The reader in plain JavaScript decides what ours does; test_other_readers.py holds it to the vectors."""

from __future__ import annotations

import base64
import contextlib
import json
import math
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calibrate.errors import BadThresholds
from calibrate.runtime import decide, probability
from calibrate.thresholds import ThresholdsFile, encode, read, to_json
from calibrate.thresholds.canonical import digest_of
from tests.thresholds.make import entry, release, releases
from tests.thresholds.make_vectors import detectors, scores, votes

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="no node here")

HARNESS = """
import { readFileSync } from "node:fs";
import { Refused, decide, probability, read } from "./touchstone.mjs";
const answers = JSON.parse(readFileSync(0, "utf8")).map(({ content, scores }) => {
  try {
    const file = read(Buffer.from(content, "base64"));
    const { reasons, ...decision } = decide(file, scores);
    return { decision, probabilities: Object.keys(file.detectors).sort().map((name) => probability(file, name, scores[name])) };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return null;
  }
});
console.log(JSON.stringify(answers));
"""  # noqa: E501


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As the README says: the reader, and the schema beside it."""
    path = tmp_path_factory.mktemp("javascript")
    for one in (ROOT / "docs" / "consumers" / "javascript").glob("*.mjs"):
        shutil.copy(one, path)
    shutil.copy(ROOT / "calibrate" / "thresholds" / "schema.json", path)
    (path / "harness.mjs").write_text(HARNESS)
    return path


def test_the_example_of_its_readme(folder: Path) -> None:
    page = (ROOT / "docs" / "reference" / "thresholds-file.md").read_text(encoding="utf-8")
    (folder / "thresholds.json").write_text(page.split("```json\n")[1].split("```")[0], encoding="utf-8")
    example = (ROOT / "docs" / "consumers" / "javascript" / "README.md").read_text(encoding="utf-8")
    (folder / "example.mjs").write_text(
        example.split("```js\n")[1].split("```")[0].replace('"touchstone-thresholds"', '"./touchstone.mjs"')
        + "console.log(JSON.stringify(decision))",
        encoding="utf-8",
    )
    done = subprocess.run(["node", "example.mjs"], cwd=folder, capture_output=True, text=True, timeout=60, check=True)
    found = json.loads(done.stdout)
    assert (found["verdict"], found["tier"]) == ("REVIEW", "page")
    assert found["reasons"] == ["citation_grounding 0.41 ≤ 0.52"]


def both(folder: Path, asked: list[tuple[bytes, dict[str, Any]]]) -> list[tuple[Any, Any]]:
    """The answers of both readers: None where refused."""
    given = json.dumps([{"content": base64.b64encode(content).decode(), "scores": scores} for content, scores in asked])
    given = given.replace("Infinity", "1e999")  # which JSON.parse reads as that
    done = subprocess.run(
        ["node", "harness.mjs"], cwd=folder, input=given, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return list(zip(map(_python, asked), json.loads(done.stdout), strict=True))


def test_an_infinity_is_no_score_in_any_form(folder: Path) -> None:
    asked = []
    for file, *_ in [*detectors().values(), *scores().values(), *votes().values()]:
        for end in (math.inf, -math.inf):
            names = sorted(file.detectors)
            asked += [(encode(file), dict.fromkeys(names, end))]
            asked += [(encode(file), dict.fromkeys(names, 0.4) | {name: end}) for name in names]
    answers = both(folder, asked)
    assert assert_alike(answers) == len(asked) > 20
    for (_, numbers), (_, theirs) in zip(asked, answers, strict=True):
        assert not [name for name in theirs["decision"]["scored"] if math.isinf(numbers[name])]


def _python(asked: tuple[bytes, dict[str, Any]]) -> Any:
    content, scores = asked
    try:
        file = read(content)
    except BadThresholds:
        return None
    found = decide(file, scores)
    keys = ("flags", "tier", "verdict", "version", "scored", "missing", "unknown", "unscored")
    decision = {key: list(got) if isinstance(got := getattr(found, key), tuple) else got for key in keys}
    return {
        "decision": decision,
        "probabilities": [probability(file, n, scores.get(n)) for n in sorted(file.detectors)],
    }


def assert_alike(answers: list[tuple[Any, Any]]) -> int:
    """How many files both took."""
    for python, javascript in answers:
        assert (python is None) == (javascript is None)
        if python is not None:
            assert javascript["decision"] == python["decision"]
            assert javascript["probabilities"] == pytest.approx(python["probabilities"], abs=1e-12)
    return sum(python is not None for python, _ in answers)


def test_any_release_and_scores_are_decided_alike(folder: Path) -> None:
    asked: list[tuple[bytes, dict[str, Any]]] = []

    @settings(max_examples=25, database=None, suppress_health_check=list(HealthCheck))
    @given(releases(), st.data())
    def gather(file: ThresholdsFile, data: st.DataObject) -> None:
        number = (
            st.none()
            | st.floats(-110, 110)
            | st.sampled_from([one.threshold for one in file.detectors.values()] or [0])
        )
        asked.append((encode(file), {name: data.draw(number) for name in [*file.detectors, "other"]}))

    gather()
    assert assert_alike(both(folder, asked)) == len(asked)


ODD = [None, True, 0, -1, 1, 2, 0.5, 1e300, -1e301, "", "a", "below", "cascade", "2026-02-31T00:00:00Z",
       "0000-01-01T00:00:00Z", "2026-11-16T24:00:00Z", "half \ud800", [], [1], {}, {"a": 1}, {"x-a": []}]  # fmt: skip


def mutated(rng: random.Random, part: Any) -> Any:
    """One thing in it replaced, left out or added."""
    if isinstance(part, dict | list) and part and rng.random() < 0.93:
        made = part.copy()
        key: Any = rng.choice(sorted(part)) if isinstance(part, dict) else rng.randrange(len(part))
        made[key] = mutated(rng, part[key])
        if rng.random() < 0.03:
            del made[key]
        if rng.random() < 0.03 and isinstance(made, dict):
            made[rng.choice(["x-own", "surprise", "b", "__proto__"])] = rng.choice(ODD)
        return made
    if isinstance(part, int | float) and rng.random() < 0.5:
        return part * rng.choice([1, -1, 2, 0.5])
    return rng.choice(ODD)


@pytest.mark.parametrize("seed", range(2))
def test_any_field_changed_and_signed_again_is_taken_by_both_or_by_none(folder: Path, seed: int) -> None:
    rng = random.Random(seed)
    several = [one for one, *_ in {**detectors(), **votes(), **scores()}.values()]
    asked = []
    for place in range(200):
        document = mutated(rng, to_json(several[place % len(several)]))
        if isinstance(document, dict):
            with contextlib.suppress(BadThresholds):  # half a character: it stays as it was signed
                document["digest"] = digest_of(document)
        given = {name: rng.choice([None, 0, 0.25, 0.5, 1, 2, 5, 6]) for name in ("a", "b", "c", "judge", "loud")}
        asked.append((json.dumps(document).encode(), given))
    taken = assert_alike(both(folder, asked))
    assert 20 < taken < 180


def test_any_byte_changed_is_refused_by_both_or_means_the_same(folder: Path) -> None:
    rng = random.Random(0)
    good = encode(release({"rouge_l": entry(0.3), "entropy_z": entry(2.5, "above")}))
    asked = []
    for _ in range(200):
        place, how = rng.randrange(len(good)), rng.choice(["replace", "insert", "delete"])
        insert = b"" if how == "delete" else bytes([rng.randrange(256)])
        asked.append((good[:place] + insert + good[place + (how != "insert") :], {"rouge_l": 0.3}))
    answers = both(folder, asked)
    assert_alike(answers)
    assert {json.dumps(python["decision"]) for python, _ in answers if python} == {
        json.dumps(_python((good, {"rouge_l": 0.3}))["decision"])
    }
