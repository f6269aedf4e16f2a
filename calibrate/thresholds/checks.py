"""Whether a JSON document is a whole, unchanged release. Every way in and out of the format passes here."""

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

FORMAT = 1
"""The format number this reader knows. It grows when an older reader would misunderstand a file."""


def check(document: Any, name: str = "thresholds file") -> None:
    """Raise BadThresholds, with one sentence that starts with `name`, unless the document may be used."""
    problem = format_problem(document) or schema_problem(document) or digest_problem(document)
    if problem:
        raise BadThresholds(f"{name}: {problem}")


def format_problem(document: Any) -> str | None:
    """Asked first: a newer format may break every other rule."""
    if not isinstance(document, Mapping) or "touchstone_thresholds" not in document:
        return 'this is not a thresholds file; one is a JSON object with "touchstone_thresholds": 1'
    number = document["touchstone_thresholds"]
    whole = isinstance(number, int) or (isinstance(number, float) and number.is_integer())  # 1.0 is 1 in JSON
    if isinstance(number, bool) or not whole or number < 1:
        return f"touchstone_thresholds is {_short(number)}, which is no format number"
    if number > FORMAT:
        return f"format {int(number)} is newer than this reader ({FORMAT}): upgrade Touchstone to use it"
    return None


def schema_problem(document: Any) -> str | None:
    """The first thing the JSON Schema, or a rule that a schema cannot express, has against the document."""
    some = islice(_validator().iter_errors(document), 20)  # a file of rubbish can have a million
    errors = sorted(some, key=lambda error: [str(step) for step in error.absolute_path])
    if errors:
        return _sentence(errors[0])
    return next(_impossible(document), None)


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


def _impossible(document: Mapping[str, Any]) -> Iterator[str]:
    data = document["data"]
    window = data["window"] or {"since": None, "until": None}
    times = {
        "released_at": document["released_at"],
        "data.window.since": window["since"],
        "data.window.until": window["until"],
    }
    for where, text in times.items():
        if text is not None and not _is_time(text):
            yield f"{where} is {_short(text)}, which is no time"
    # A time has one spelling, so the order of the texts is the order of the times.
    if window["since"] and window["until"] and window["since"] > window["until"]:
        yield "data.window ends before it begins"
    if document["replaces"] is not None and document["replaces"] >= document["version"]:
        yield f"replaces is {document['replaces']}, but version {document['version']} can only replace an earlier one"
    if data["positives"] > data["n"]:
        yield f"data.positives is {data['positives']}, more than data.n ({data['n']})"
    for name, one in data.get("samples", {}).items():
        if one["size"] > one["pool"] or any(drawn > population for population, drawn in one["strata"].values()):
            yield f"data.samples.{name} drew more traces than there were"
    for name, entry in document["detectors"].items():
        yield from _impossible_metrics(f"detectors.{name}.metrics", entry["metrics"])
        if entry.get("sampling") == {"rate": 1, "only_when": {}}:
            yield f"detectors.{name}.sampling is of all traces: leave it out"
        if "guarantee" in entry:
            yield from _impossible_guarantee(f"detectors.{name}.guarantee", entry["guarantee"])
        if "probability_map" in entry:
            yield from _impossible_map(f"detectors.{name}.probability_map", entry)
    for name, entry in document.get("ensembles", {}).items():
        if name in document["detectors"]:
            yield f"ensembles.{name} has the name of a detector"
        yield from ensembles.impossible(f"ensembles.{name}", entry, document["detectors"])
        yield from _impossible_metrics(f"ensembles.{name}.metrics", entry["metrics"])


def _impossible_metrics(where: str, metrics: Mapping[str, Any]) -> Iterator[str]:
    if metrics["positives"] > metrics["n"]:
        yield f"{where}.positives is {metrics['positives']}, more than {where}.n ({metrics['n']})"
    for name in ("precision", "recall", "fpr", "flag_rate"):  # an ensemble has no fpr
        low, high = (metrics.get(name, {}).get(end) for end in ("low", "high"))
        if low is not None and high is not None and low > high:
            yield f"{where}.{name}.low is {low}, above its high ({high})"


def _impossible_guarantee(where: str, given: Mapping[str, Any]) -> Iterator[str]:
    if given["hallucinated"] > given["labels"]:
        yield f"{where}.hallucinated is {given['hallucinated']}, more than {where}.labels ({given['labels']})"
    if given["bound"] < given["target"]:
        yield f"{where}.bound is {given['bound']}, below its target ({given['target']}): that guarantees nothing"


def _impossible_map(where: str, entry: Mapping[str, Any]) -> Iterator[str]:
    given = entry["probability_map"]
    if given["flag_when"] != entry["flag_when"]:
        yield f"{where}.flag_when is {given['flag_when']}, but the detector flags {entry['flag_when']}"
    if given["positives"] > given["n"]:
        yield f"{where}.positives is {given['positives']}, more than {where}.n ({given['n']})"
    for name in ("brier", "ece"):
        low, high = given[name]["low"], given[name]["high"]
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


def _sentence(error: Any) -> str:
    """jsonschema's finding in one line: the path of the field first, and never a page of the file's content."""
    where = ".".join(str(step) for step in error.absolute_path)
    here = where or "the file"
    if error.validator == "required":
        gone = next(key for key in error.validator_value if key not in error.instance)
        return f"{where + '.' if where else ''}{gone} is missing"
    if error.validator == "additionalProperties":
        known, own = error.schema.get("properties", {}), "patternProperties" in error.schema
        odd = next(key for key in error.instance if key not in known and not (own and key.startswith("x-")))
        return f"{here} has {_short(odd)}, which format {FORMAT} does not know (own keys begin with x-, where allowed)"
    if error.validator == "type":
        kinds = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
        return f"{here} is {_short(error.instance)}; it must be {' or '.join(_NAMES[kind] for kind in kinds)}"
    if error.validator == "enum":
        return f"{here} is {_short(error.instance)}; it must be one of {', '.join(map(str, error.validator_value))}"
    return f"{here} has an impossible value: {_short(error.instance)}"


def _short(value: Any) -> str:
    text = json.dumps(
        value, default=str
    )  # ASCII, so that nothing in a hostile file reaches the terminal as a control code
    return text if len(text) <= 60 else text[:57] + "..."
