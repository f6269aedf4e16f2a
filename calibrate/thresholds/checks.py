"""Check that a JSON document is a complete, unchanged release. Every read and every write passes here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache
from itertools import islice
from typing import Any

from calibrate.errors import BadThresholds
from calibrate.thresholds import ensembles
from calibrate.thresholds.canonical import digest_of

FORMAT = 2
"""The newest format number that this reader knows. It grows when an older reader would decide otherwise, or not read a
file."""

WITH_SEGMENTS = 2
"""The format from which on detectors may have segments. Files without any stay of format 1: every reader takes it."""


def check(document: Any, name: str = "thresholds file") -> None:
    """Raise BadThresholds, with one sentence that starts with `name`, unless the document may be used."""
    problem = format_problem(document) or schema_problem(document) or digest_problem(document)
    if problem:
        raise BadThresholds(f"{name}: {problem}")


def format_problem(document: Any) -> str | None:
    """Check the format number, before anything else: a newer format may break every other rule."""
    if not isinstance(document, Mapping) or "touchstone_thresholds" not in document:
        return 'this is not a thresholds file; one is a JSON object with "touchstone_thresholds": 1'
    number = document["touchstone_thresholds"]
    whole = isinstance(number, int) or (isinstance(number, float) and number.is_integer())  # 1.0 is 1 in JSON
    if isinstance(number, bool) or not whole or number < 1:
        return f"touchstone_thresholds is {_shorten(number)}, which is not a format number"
    if number > FORMAT:
        return f"format {int(number)} is newer than this reader ({FORMAT}): upgrade Touchstone to use it"
    return None


def schema_problem(document: Any) -> str | None:
    """Describe the first violation of the JSON Schema, or of a rule that a schema cannot express."""
    first_errors = islice(_validator().iter_errors(document), 20)  # a file of rubbish can have a million
    errors = sorted(first_errors, key=lambda error: [str(step) for step in error.absolute_path])
    if errors:
        return _describe_schema_error(errors[0])
    return next(_find_contradictions(document), None)


def digest_problem(document: Mapping[str, Any]) -> str | None:
    try:
        expected = digest_of(document)
    except BadThresholds as error:
        return str(error)
    if expected == document["digest"]:
        return None
    return "it was changed after release (its digest does not match its content); take it again from the release page"


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the format."""
    from importlib.resources import files

    text = files("calibrate.thresholds").joinpath("schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@cache
def _validator() -> Any:
    from jsonschema import Draft202012Validator  # slow to import: only who reads or writes a file pays

    return Draft202012Validator(schema())


def _find_contradictions(document: Mapping[str, Any]) -> Iterator[str]:
    data = document["data"]
    window = data["window"] or {"since": None, "until": None}
    times = {
        "released_at": document["released_at"],
        "data.window.since": window["since"],
        "data.window.until": window["until"],
    }
    for where, text in times.items():
        if text is not None and not _is_time(text):
            yield f"{where} is {_shorten(text)}, which is not a time"
    # A time has one spelling, so the order of the texts is the order of the times.
    if window["since"] and window["until"] and window["since"] > window["until"]:
        yield "data.window ends before it begins"
    if document["replaces"] is not None and document["replaces"] >= document["version"]:
        yield f"replaces is {document['replaces']}, but version {document['version']} can only replace an earlier one"
    if data["positives"] > data["n"]:
        yield f"data.positives is {data['positives']}, more than data.n ({data['n']})"
    for name, sample in data.get("samples", {}).items():
        if sample["size"] > sample["pool"] or any(
            drawn > population for population, drawn in sample["strata"].values()
        ):
            yield f"data.samples.{name} drew more traces than it had to draw from"
    if document["touchstone_thresholds"] == WITH_SEGMENTS and not any(
        "segments" in entry for entry in document["detectors"].values()
    ):
        yield f"touchstone_thresholds is {WITH_SEGMENTS}, but no detector has segments: that is format 1"
    for name, entry in document["detectors"].items():
        yield from _contradictions_in_metrics(f"detectors.{name}.metrics", entry["metrics"])
        sampling = entry.get("sampling")
        if sampling is not None and sampling["rate"] == 1 and not sampling["only_when"]:
            yield f"detectors.{name}.sampling is of all traces: leave it out"
        if "guarantee" in entry:
            yield from _contradictions_in_guarantee(f"detectors.{name}.guarantee", entry["guarantee"])
        if "probability_map" in entry:
            yield from _contradictions_in_map(f"detectors.{name}.probability_map", entry)
        if "segments" in entry:
            yield from _contradictions_in_segments(f"detectors.{name}.segments", entry["segments"], document)
    for name, entry in document.get("ensembles", {}).items():
        if name in document["detectors"]:
            yield f"ensembles.{name} has the name of a detector"
        yield from ensembles.find_contradictions(f"ensembles.{name}", entry, document["detectors"])
        yield from _contradictions_in_metrics(f"ensembles.{name}.metrics", entry["metrics"])


def _contradictions_in_metrics(where: str, metrics: Mapping[str, Any]) -> Iterator[str]:
    if metrics["positives"] > metrics["n"]:
        yield f"{where}.positives is {metrics['positives']}, more than {where}.n ({metrics['n']})"
    for name in ("precision", "recall", "fpr", "flag_rate"):  # an ensemble has no fpr
        low, high = (metrics.get(name, {}).get(end) for end in ("low", "high"))
        if low is not None and high is not None and low > high:
            yield f"{where}.{name}.low is {low}, above its high ({high})"


def _contradictions_in_segments(where: str, segments: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[str]:
    if document["touchstone_thresholds"] < WITH_SEGMENTS:
        yield f"{where} changes decisions, and a file of format 1 has none: readers of format 1 would pass it over"
    for name, segment in segments["thresholds"].items():
        yield from _contradictions_in_metrics(f"{where}.thresholds.{name}", segment)
        if "guarantee" in segment:
            yield from _contradictions_in_guarantee(f"{where}.thresholds.{name}.guarantee", segment["guarantee"])


def _contradictions_in_guarantee(where: str, guarantee: Mapping[str, Any]) -> Iterator[str]:
    if guarantee["hallucinated"] > guarantee["labels"]:
        yield f"{where}.hallucinated is {guarantee['hallucinated']}, more than {where}.labels ({guarantee['labels']})"
    if guarantee["bound"] < guarantee["target"]:
        bound, target = guarantee["bound"], guarantee["target"]
        yield f"{where}.bound is {bound}, below its target ({target}): that guarantees nothing"


def _contradictions_in_map(where: str, entry: Mapping[str, Any]) -> Iterator[str]:
    probability_map = entry["probability_map"]
    if probability_map["flag_when"] != entry["flag_when"]:
        yield f"{where}.flag_when is {probability_map['flag_when']}, but the detector flags {entry['flag_when']}"
    if probability_map["positives"] > probability_map["n"]:
        yield f"{where}.positives is {probability_map['positives']}, more than {where}.n ({probability_map['n']})"
    for name in ("brier", "ece"):
        low, high = probability_map[name]["low"], probability_map[name]["high"]
        if low is not None and high is not None and low > high:
            yield f"{where}.{name}.low is {low}, above its high ({high})"


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


_NAMES = {
    "object": "an object",
    "array": "a list",
    "string": "a text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "null",
}


def _describe_schema_error(error: Any) -> str:
    """Put jsonschema's error in one line: the field's path first, and never a page of the file's content."""
    where = ".".join(str(step) for step in error.absolute_path)
    place = where or "the file"
    if error.validator == "required":
        missing = next(key for key in error.validator_value if key not in error.instance)
        return f"{where + '.' if where else ''}{missing} is missing"
    if error.validator == "type":
        kinds = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
        return f"{place} is {_shorten(error.instance)}; it must be {' or '.join(_NAMES[kind] for kind in kinds)}"
    if error.validator == "enum":
        return f"{place} is {_shorten(error.instance)}; it must be one of {', '.join(map(str, error.validator_value))}"
    return f"{place} has an impossible value: {_shorten(error.instance)}"


def _shorten(value: Any) -> str:
    text = json.dumps(value, default=str)  # ASCII: a hostile file cannot send control codes to the terminal
    return text if len(text) <= 60 else text[:57] + "..."
