"""Changed files: no reader crashes, no change gets through, and both readers say the same.

Every file is whole to begin with: each vector that is to be read, and one release with all there is. Then bytes are
changed, or fields of the document, with or without a digest that was made to match.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import json
import math
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calibrate.errors import BadThresholds
from calibrate.runtime import decide
from calibrate.thresholds import encode, read, to_json, verify
from calibrate.thresholds.canonical import canonical, digest_of
from calibrate.types import Guarantee
from tests.thresholds.make import MAP, entry, release
from tests.thresholds.make_vectors import FOLDER

ROOT = Path(__file__).parents[2]
MUTANTS = 600


def good_files() -> list[bytes]:
    # A reader keeps no key that it does not know, so what it read of such a file is not all of it.
    paths = sorted(path for path in FOLDER.glob("*.json") if path.stem != "unknown_keys")
    found = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    documents = [one["document"] for one in found if not one.get("refused") and "document" in one]
    guaranteed = Guarantee("certified", 0.7, 0.95, 0.733, 84, 69, "frésh ✓")
    every = encode(release({"d": entry(guarantee=guaranteed, probability_map=MAP), "e": entry(1e-7, "above")}))
    return [every, *(json.dumps(one, indent=1, ensure_ascii=False).encode() for one in documents)]


GOOD = good_files()


def same(one: Any, other: Any) -> bool:
    """Equal as JSON, where 1 and 1.0 are one number and true is none."""
    return canonical(one) == canonical(other)


def assert_refused_or_equal(mutant: bytes, original: bytes) -> bool:
    """Whether it was read."""
    try:
        file = read(mutant)
    except BadThresholds:
        return False
    assert file == read(original)
    assert same(to_json(file), json.loads(original))
    assert decide(file, {}) == decide(read(original), {})
    return True


# Bytes that mean something in JSON, in numbers and in UTF-8.
TELLING = [*b' \t\n\r"\\{}[],:0123456789.-+eE/truefalsn', 0, 0x7F, 0x80, 0xBF, 0xC0, 0xC3, 0xED, 0xEF, 0xF4, 0xFF]


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_changed_bytes_are_refused_or_mean_the_same(data: st.DataObject) -> None:
    original = data.draw(st.sampled_from(GOOD))
    mutant = bytearray(original)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(mutant)))
        end = min(len(mutant), start + data.draw(st.sampled_from([0, 1, 1, 1, 2, 50])))
        put = data.draw(st.lists(st.sampled_from(TELLING) | st.integers(0, 255), max_size=3))
        mutant[start:end] = bytes(put)
    assert_refused_or_equal(bytes(mutant), original)


def places(part: Any) -> Iterator[tuple[Any, Any]]:
    """Every (object or list, key) in a document."""
    keys = list(part) if isinstance(part, dict) else range(len(part)) if isinstance(part, list) else ()
    for key in keys:
        yield part, key
        yield from places(part[key])


ODD = [None, True, False, 0, -0.0, 1, -1, 0.5, 5e-324, 1.7976931348623157e308, 2**53 - 1, 2**53, 2**64, 10**400, "",
       "a", "\0", "é", "\U0001f600", "half \ud800", "below", "2026-02-31T00:00:00Z", "sha256:" + "0" * 64, [], [[]], {},
       {"": 0}, math.nan, math.inf]  # fmt: skip
NAMES = ["x-own", "b", "a b", "é", "__proto__", "constructor", "toString", "a" * 101, "", "x-\ud800"]


@settings(max_examples=80, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_changed_fields_are_refused_or_mean_the_same(data: st.DataObject) -> None:
    original = data.draw(st.sampled_from(GOOD))
    document = json.loads(original)
    found = list(places(document))
    holder, key = found[data.draw(st.integers(0, len(found) - 1))]
    how = data.draw(st.sampled_from(["replace", "delete", "rename", "copy", "number"]))
    if how == "delete":
        del holder[key]
    elif how == "rename" and isinstance(holder, dict):
        holder[data.draw(st.text(max_size=3) | st.sampled_from(["x-own", "__proto__"]))] = holder.pop(key)
    elif how == "copy":
        source, other = found[data.draw(st.integers(0, len(found) - 1))]
        holder[key] = copy.deepcopy(source[other])
    elif how == "number" and isinstance(holder[key], float):
        holder[key] = math.nextafter(holder[key], data.draw(st.sampled_from([-math.inf, math.inf])))
    else:
        holder[key] = data.draw(st.sampled_from(ODD))
    # Unsigned: whatever is read must be what was released.
    assert_refused_or_equal(json.dumps(document).encode(), original)


def test_every_single_byte_of_a_file_counts() -> None:
    original = GOOD[0]
    rng = random.Random(0)
    read_anyway = 0
    for place in rng.sample(range(len(original)), 200):
        mutant = original[:place] + bytes([original[place] ^ (1 << rng.randrange(8))]) + original[place + 1 :]
        read_anyway += assert_refused_or_equal(mutant, original)
    assert read_anyway < 20  # a space become another white space


def test_verify_never_raises_either(tmp_path: Path) -> None:
    rng = random.Random(1)
    path = tmp_path / "t.json"
    for number in range(80):
        mutant = mutated(rng, GOOD[number % len(GOOD)])
        path.write_bytes(mutant)
        report = verify(path)
        try:
            read(mutant)
        except BadThresholds:
            assert not report.ok
            assert report.problem
        else:
            assert report.ok


# ------------------------------------------------------------------------------------------------- both readers


def mutated(rng: random.Random, original: bytes) -> bytes:
    """Bytes changed, or fields, unsigned or signed again."""
    if rng.random() < 0.4:
        mutant = bytearray(original)
        for _ in range(rng.choice([1, 1, 2, 5])):
            start = rng.randrange(len(mutant) + 1)
            put = bytes(rng.choice(TELLING) for _ in range(rng.choice([0, 1, 1, 2])))
            mutant[start : start + rng.choice([0, 1, 1, 2, 40])] = put
        return bytes(mutant)
    document = json.loads(original)
    for _ in range(rng.choice([1, 1, 1, 2])):
        holder, key = rng.choice(list(places(document)))
        number = isinstance(holder[key], int | float) and not isinstance(holder[key], bool)
        how = rng.random()
        if how < 0.15:
            del holder[key]
        elif how < 0.25 and isinstance(holder, dict):
            holder[rng.choice(NAMES)] = holder.pop(key)
        elif how < 0.45:
            source, other = rng.choice(list(places(document)))
            holder[key] = copy.deepcopy(source[other])
        elif how < 0.75 and number:
            holder[key] *= rng.choice([-1, 0, 0.5, 2, 1e10, 1 + 2**-52])
        else:
            holder[key] = copy.deepcopy(rng.choice(ODD))
    if rng.random() < 0.8:
        with contextlib.suppress(BadThresholds):  # it has no canonical form
            document["digest"] = digest_of(document)
    return json.dumps(document, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")


HARNESS = """
import { createInterface } from "node:readline";
import { Refused, digestOf, read } from "./touchstone.mjs";
for await (const line of createInterface({ input: process.stdin })) {
  try {
    console.log(JSON.stringify({ digest: digestOf(read(Buffer.from(line, "base64"))) }));
  } catch (error) {
    const what = error instanceof Refused ? { refused: error.message } : { crashed: String(error.stack) };
    console.log(JSON.stringify(what));
  }
}
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="no node here: the JavaScript reader is not asked")
def test_the_other_reader_takes_and_refuses_the_same(tmp_path: Path) -> None:
    rng = random.Random(20_261_121)
    mutants = [mutated(rng, rng.choice(GOOD)) for _ in range(MUTANTS)]
    shutil.copy(ROOT / "docs" / "consumers" / "javascript" / "touchstone.mjs", tmp_path)
    shutil.copy(ROOT / "calibrate" / "thresholds" / "schema.json", tmp_path)
    (tmp_path / "harness.mjs").write_text(HARNESS)
    lines = "".join(base64.b64encode(mutant).decode() + "\n" for mutant in mutants)
    command = ["node", "harness.mjs"]
    done = subprocess.run(command, cwd=tmp_path, input=lines, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    taken = 0
    for mutant, answer in zip(mutants, answers, strict=True):
        ours: dict[str, str]
        try:
            read(mutant)
            ours = {"digest": json.loads(mutant)["digest"]}
            taken += 1
        except BadThresholds as error:
            ours = {"refused": str(error)}
        assert ours.keys() == answer.keys(), (ours, answer, mutant)
        assert ours.get("digest") == answer.get("digest"), mutant
    assert MUTANTS / 20 < taken < MUTANTS / 2
