"""What a reader refuses, and that it says so in a sentence and in no other way."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrate.errors import BadThresholds
from calibrate.thresholds import encode, read, to_json, verify
from calibrate.thresholds.canonical import digest_of
from tests.thresholds.make import CERTIFIED, entry, release

GOOD = encode(release({"rouge_l": entry(0.3), "entropy_z": entry(2.5, "above", guarantee=CERTIFIED)}))


def refused(content: bytes | str | Path) -> str:
    with pytest.raises(BadThresholds) as caught:
        read(content.encode() if isinstance(content, str) else content)
    return str(caught.value)


def changed(*path: str, to: Any = None, delete: bool = False, sign: bool = True) -> bytes:
    """GOOD with one field changed, and by default signed again as a careless writer would."""
    document = json.loads(GOOD)
    place = document
    for step in path[:-1]:
        place = place[step]
    if delete:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    if sign and path != ("digest",):
        document["digest"] = digest_of(document)
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (b"{\n  hello", "not JSON: .* (line 2, column 3)"),
        (GOOD[: len(GOOD) // 2], "not JSON"),
        (b"\x1f\x8b\x08\x00", "not UTF-8 text (at byte 1)"),
        (b"\xef\xbb\xbf" + GOOD, "not JSON"),
        (GOOD.decode().encode("utf-16"), "not UTF-8 text"),
        (b"[]", "this is not a thresholds file"),
        (b"null", "this is not a thresholds file"),
        (b'{"threshold": 0.5}', "this is not a thresholds file"),
        (GOOD.replace(b"2.5", b"NaN"), "NaN is not JSON"),
        (GOOD.replace(b"2.5", b"-Infinity"), "-Infinity is not JSON"),
        (GOOD.replace(b"2.5", b"1e999"), "the number 1e999 is too large"),
        (GOOD.replace(b"2.5", b"9" * 5000), "is too large"),
        (GOOD.replace(b'"tier": "signal"', b'"tier": "off", "tier": "signal"'), 'the key "tier" is there twice'),
        (b"[" * 100_000, "nested too deeply"),
        (changed("x-deep", to=0, sign=False).replace(b": 0}", b": " + b"[" * 980 + b"]" * 980 + b"}"), "nested too"),
        (changed("touchstone_thresholds", to=3), "format 3 is newer than this reader (2): upgrade"),
        (changed("touchstone_thresholds", to=2), "is 2, but no detector has segments: that is format 1"),
        (changed("touchstone_thresholds", to=0), "not a format number"),
        (changed("touchstone_thresholds", to=True), "not a format number"),
        (changed("touchstone_thresholds", to="1"), "not a format number"),
        (changed("digest", delete=True), "digest is missing"),
        (changed("digest", to="sha256:" + "0" * 64), "changed after release"),
        (changed("digest", to="md5:0"), "digest has an impossible value"),
        (changed("version", to=3, sign=False), "changed after release"),
        (changed("version", to=0), "version has an impossible value: 0"),
        (changed("version", to=1.5), "version is 1.5; it must be a whole number"),
        (changed("replaces", to=2), "replaces is 2, but version 2 can only replace an earlier one"),
        (changed("released_at", to="2026-02-31T00:00:00Z"), "released_at is .* not a time"),
        (changed("released_at", to="2026-02-01 00:00"), "released_at has an impossible value"),
        (changed("released_at", to="2026-02-01T00:00:00Z\n"), "released_at has an impossible value"),
        (changed("note", to="\ud800", sign=False), "not JSON that every reader understands"),
        (changed("detectors", "rouge_l", "threshold", delete=True), "detectors.rouge_l.threshold is missing"),
        (
            changed("detectors", "rouge_l", "threshold", to="0.3"),
            'detectors.rouge_l.threshold is "0.3"; it must be a n',
        ),
        (changed("detectors", "rouge_l", "threshold", to=None), "detectors.rouge_l.threshold is null"),
        (changed("detectors", "rouge_l", "tier", to="loud"), "must be one of page, signal, off"),
        (
            changed("detectors", "rouge_l", "coverage", to=1.5),
            "detectors.rouge_l.coverage has an impossible value: 1.5",
        ),
        (changed("detectors", "rouge_l", "metrics", "fpr", "low", to=0.9), "metrics.fpr.low is 0.9, above its high"),
        (changed("detectors", "rouge_l", "metrics", "positives", to=301), "more than detectors.rouge_l.metrics.n"),
        (changed("detectors", "rou\nge", to={}), "detectors"),
        (
            changed("data", "window", to={"since": "2027-01-01T00:00:00Z", "until": "2026-01-01T00:00:00Z"}),
            "ends before",
        ),
        (changed("detectors", "rouge_l", "guarantee", to=None), "detectors.rouge_l.guarantee is null"),
        (
            changed("detectors", "entropy_z", "guarantee", "hallucinated", to=85),
            "guarantee.hallucinated is 85, more than detectors.entropy_z.guarantee.labels (84)",
        ),
        (
            changed("detectors", "entropy_z", "guarantee", "target", to=0.8),
            "guarantee.bound is 0.733, below its target (0.8)",
        ),
        (
            changed("detectors", "entropy_z", "guarantee", "strength", to="measured"),
            "must be one of bounded, certified",
        ),
        (changed("data", "n", to=3), "data.positives is 41, more than data.n (3)"),
        (changed("data", "models", to=[1] * 100_000), "data.models.0 is 1; it must be a text"),
    ],
)
def test_refusals(content: bytes, sentence: str) -> None:
    message = refused(content)
    assert message.startswith("thresholds file: ")
    assert "\n" not in message
    assert len(message) < 300
    for part in sentence.split(" .* "):
        assert part in message


def test_the_missing_field_is_named_for_every_field() -> None:
    document = json.loads(GOOD)
    for path in [*([key] for key in document), *(["data", key] for key in document["data"])]:
        if path[0] != "touchstone_thresholds":
            assert f"{'.'.join(path)} is missing" in refused(changed(*path, delete=True, sign=False))
    for key in document["detectors"]["rouge_l"]:
        assert f"detectors.rouge_l.{key} is missing" in refused(changed("detectors", "rouge_l", key, delete=True))


def test_paths_that_hold_no_file(tmp_path: Path) -> None:
    assert "no such file; take one from the release page" in refused(tmp_path / "none.json")
    assert "this is a directory" in refused(tmp_path)
    assert "cannot be read" in refused(Path("a\0b"))
    big = tmp_path / "big.json"
    with big.open("wb") as stream:
        stream.truncate(16 * 2**20 + 1)
    assert "larger than 16 MB" in refused(big)
    if os.path.exists("/dev/zero"):
        assert "larger than 16 MB" in refused(Path("/dev/zero"))
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    assert refused(bad).startswith(f"{bad}: this is not")


def test_other_spellings_of_the_same_content_are_read_alike() -> None:
    document = json.loads(GOOD)
    compact = (
        json.dumps(document, separators=(",", ":")).replace("2.5", "25e-1").replace('"version":2,', '"version":2.0,')
    )
    back = read(compact.encode())
    assert back == read(GOOD)
    assert type(back.version) is int
    assert encode(back) == GOOD


def test_keys_of_a_later_version_are_ignored_and_not_kept() -> None:
    later = read(changed("surprise", to={"a": [1]}))
    assert later == read(GOOD)
    assert encode(later) == GOOD


def test_long_integer_literals_mean_the_nearest_double() -> None:
    # What JavaScript writes for 1e20; Python would keep it as an integer that RFC 8785 cannot express.
    file = release({"d": entry(1e20)})
    assert read(encode(file).replace(b"1e+20", b"100000000000000000000")) == file


@settings(max_examples=250)
@given(st.integers(0, len(GOOD) - 1), st.integers(0, 255), st.sampled_from(["replace", "insert", "delete"]))
def test_a_changed_byte_is_refused_or_means_the_same(place: int, byte: int, how: str) -> None:
    insert = b"" if how == "delete" else bytes([byte])
    mutant = GOOD[:place] + insert + GOOD[place + (how != "insert") :]
    try:
        back = read(mutant)
    except BadThresholds:
        return
    assert back == read(GOOD)  # white space, or another spelling of the same number


@settings(max_examples=60)
@given(st.binary(max_size=200) | st.text().map(str.encode))
def test_rubbish_is_refused(content: bytes) -> None:
    refused(content)


JSON_VALUES = [None, True, False, 0, -1, 1.5, 1e300, "", "x", [], {}, [[]], {"a": {}}, "2026-11-16T09:30:00Z"]


@pytest.mark.parametrize("seed", range(4))
def test_any_field_replaced_by_anything_and_signed_again_is_refused_or_read(seed: int) -> None:
    rng = random.Random(seed)

    def mutate(part: Any) -> Any:
        if isinstance(part, dict) and part and rng.random() < 0.9:
            key = rng.choice(sorted(part))
            return {**part, key: mutate(part[key])}
        return rng.choice(JSON_VALUES)

    for _ in range(100):
        document = mutate(json.loads(GOOD))
        if isinstance(document, dict):
            document["digest"] = digest_of(document)
        try:
            back = read(json.dumps(document).encode())
        except BadThresholds:
            continue
        assert to_json(back) == document


def test_verify_reports(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(GOOD)
    good = verify(path)
    assert good.ok
    assert (good.problem, good.format, good.version, good.released_by) == (None, 1, 2, "mara")
    assert (good.schema_ok, good.digest_ok, good.detectors) == (True, True, ("entropy_z", "rouge_l"))
    assert good.digest == json.loads(GOOD)["digest"]

    path.write_bytes(GOOD.replace(b"2.5", b"2.4"))
    edited = verify(path)
    assert not edited.ok
    assert (edited.schema_ok, edited.digest_ok, edited.version) == (True, False, 2)
    assert edited.problem is not None
    assert edited.problem.startswith("it was changed after release")

    path.write_bytes(changed("detectors", "rouge_l", "threshold", delete=True))
    assert (verify(path).ok, verify(path).schema_ok, verify(path).digest_ok) == (False, False, None)
    path.write_bytes(changed("touchstone_thresholds", to=9))
    assert (verify(path).ok, verify(path).format, verify(path).schema_ok) == (False, None, None)
    assert verify(tmp_path / "none").problem == "no such file; take one from the release page"
