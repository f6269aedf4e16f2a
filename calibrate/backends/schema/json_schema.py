"""JSON and JSON Schema for untrusted input: strict parsing, no network access, and a limit on the work of a check.

A check ends by steps, which are counted, and by the clock, which every step and every pattern reads. Patterns run in
`regex`, which can stop in the middle of a match and lets other threads run meanwhile. RE2 would need no clock, but
knows no look-around, which schemas use; a process for each check would cost 50 ms.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from calibrate import deadlines
from calibrate.backends.schema.json_formats import CHECKS

STEPS = 1_000_000  # keyword evaluations for one answer, a few seconds; schemas that branch endlessly stop there
SECONDS = 5.0  # for the check of one answer, or less where somebody waits for it
PATTERN_SECONDS = 0.5  # of computing: `regex` counts processor time
DRAFTS = ("2020-12", "2019-09", "7", "6", "4")
# Keywords that mean nothing to drafts 2019-09 and later (or, an array of `items`, to 2020-12).
_OLD_KEYWORDS = frozenset(("definitions", "dependencies", "additionalItems"))

_NAMED = frozenset(("properties", "patternProperties", "$defs", "dependentSchemas"))


class Unsafe(Exception):
    """A check that was aborted because it might never end."""


# ------------------------------------------------------------------------------------------------------ parsing


def parse(text: str) -> Any:
    """Parse standard JSON: no NaN or Infinity, no repeated key, no number beyond a double. Raises ValueError."""
    return json.loads(
        text, parse_constant=_refuse_constant, parse_float=_in_range, object_pairs_hook=_refuse_duplicates
    )


def _in_range(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"{digits[:20]} is larger than any number JSON readers agree on")
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in pairs:
        if key in fields:
            raise ValueError(f"the key {key[:80]!r} occurs twice in one object")
        fields[key] = value
    return fields


_BLANK = re.compile(r"[ \t\n\r]*")


def locate(text: str, path: Sequence[str | int]) -> tuple[int, int] | None:
    """Locate the value at `path` in a valid JSON text: text[start:end]."""
    decoder = json.JSONDecoder()
    start = _skip(text, 0)
    for step in path:
        member = _find_member(text, start, step, decoder)
        if member is None:
            return None
        start = member
    return start, decoder.raw_decode(text, start)[1]


def _find_member(text: str, start: int, step: str | int, decoder: json.JSONDecoder) -> int | None:
    """Find the offset of one member of the object or array that starts at `start`."""
    if text[start : start + 1] not in ("{", "["):
        return None
    at, index = _skip(text, start + 1), 0
    while text[at : at + 1] not in ("}", "]", ""):
        key: Any = index
        if text[start] == "{":
            key, at = decoder.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        if key == step:
            return at
        at = _skip(text, decoder.raw_decode(text, at)[1])
        at = _skip(text, at + 1) if text[at : at + 1] == "," else at
        index += 1
    return None


def _skip(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at


# --------------------------------------------------------------------------------------------------- validating


def validator(schema: Mapping[str, Any] | bool, draft: str, *, formats: bool, checked: bool = True) -> Any:
    """Make a validator with bounded work. Raises jsonschema's SchemaError if the schema itself is invalid.

    `draft` is one of DRAFTS, or "auto": the newest draft that knows the schema's keywords. `$schema` outranks it.
    """
    return _build(json.dumps(schema), draft, formats, checked)


@lru_cache(maxsize=64)
def _build(schema_text: str, draft: str, formats: bool, checked: bool) -> Any:
    """Build a validator, once per schema: an application's traces share one."""
    from jsonschema_specifications import REGISTRY

    schema = json.loads(schema_text)
    cls = _choose_validator(schema, draft)
    if checked:
        _check_schema(cls, schema)
    # The registry holds the metaschemas and retrieves nothing.
    return _make_safe(cls)(schema, registry=REGISTRY, format_checker=_format_checker(cls) if formats else None)


def _check_schema(cls: Any, schema: Any) -> None:
    """Raise SchemaError for an invalid schema, as `cls.check_schema` does, but with bounded work."""
    from jsonschema.exceptions import SchemaError, best_match
    from jsonschema_specifications import REGISTRY

    safe = _make_safe(cls)(cls.META_SCHEMA, registry=REGISTRY, format_checker=cls.FORMAT_CHECKER)
    if (error := best_match(safe.iter_errors(schema))) is not None:
        raise SchemaError.create_from(error)


def _choose_validator(schema: Mapping[str, Any] | bool, draft: str) -> Any:
    import jsonschema
    from jsonschema.validators import validator_for

    classes = {
        "2020-12": jsonschema.Draft202012Validator,
        "2019-09": jsonschema.Draft201909Validator,
        "7": jsonschema.Draft7Validator,
        "6": jsonschema.Draft6Validator,
        "4": jsonschema.Draft4Validator,
    }
    if isinstance(schema, Mapping) and isinstance(schema.get("$schema"), str):
        named = validator_for(schema, default=None)
        if named is not None:
            return named
    if draft == "auto":
        draft = "7" if _looks_old(schema) else "2020-12"
    return classes[draft]


def _looks_old(schema: Any) -> bool:
    """Tell whether the schema has a keyword that newer drafts ignore or refuse."""
    todo = [schema]
    while todo:
        node = todo.pop()
        if isinstance(node, Mapping):
            if not _OLD_KEYWORDS.isdisjoint(node) or isinstance(node.get("items"), list):
                return True
            for key, value in node.items():
                if key in _NAMED and isinstance(value, Mapping):
                    todo += value.values()  # its keys are names, not keywords
                elif key not in ("const", "enum", "default", "examples"):
                    todo.append(value)
        elif isinstance(node, list):
            todo += node
    return False


@cache
def _format_checker(cls: Any) -> Any:
    """jsonschema's own format checks of this draft, and those that it needs other packages for."""
    from jsonschema import FormatChecker

    checker = FormatChecker(formats=())
    checker.checkers = {**cls.FORMAT_CHECKER.checkers, **{name: (check, ()) for name, check in CHECKS.items()}}
    return checker


def search(pattern: str, text: str) -> bool:
    """Search a pattern with a time limit: `(a+)+$` could take forever."""
    import regex

    try:
        return regex.search(pattern, text, timeout=min(PATTERN_SECONDS, budget.seconds_left())) is not None
    except TimeoutError:
        budget.spend()  # if all the time is spent, that is the reason
        raise Unsafe(f"the schema's pattern {pattern[:80]!r} took over {PATTERN_SECONDS:g} s") from None
    except regex.error as error:
        raise Unsafe(f"the schema's pattern {pattern[:80]!r} cannot be read: {error}") from None


@cache
def _make_safe(cls: Any) -> Any:
    """The draft's validator with safe versions of keywords that could run endlessly, and every evaluation counted."""
    from jsonschema.validators import extend

    safe = {**cls.VALIDATORS, "pattern": _pattern, "uniqueItems": _unique_items}
    safe |= {"patternProperties": _pattern_properties, "additionalProperties": _additional_properties}
    if "unevaluatedProperties" in safe:
        safe["unevaluatedProperties"] = _with_timed_patterns(safe["unevaluatedProperties"])
    return extend(cls, {keyword: _count_steps(rule) for keyword, rule in safe.items()})


Rule = Callable[[Any, Any, Any, Any], Any]


def _count_steps(rule: Rule) -> Rule:
    def count(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        budget.spend()
        return rule(validator, value, instance, schema)

    return count


class _Budget:
    """Steps and time left for the current answer, per thread."""

    def __init__(self) -> None:
        import threading

        self._local = threading.local()

    def reset(self) -> None:
        """Begin with an answer."""
        self._local.left = STEPS
        self._local.seconds = min(SECONDS, max(0.0, deadlines.left()))
        self._local.until = time.monotonic() + self._local.seconds

    def spend(self) -> None:
        """Count one step. Raises Unsafe when there are none left, or no time."""
        remaining = getattr(self._local, "left", STEPS) - 1
        self._local.left = remaining
        if remaining < 0:
            raise Unsafe(f"the check was stopped after {STEPS:,} steps; the schema or the answer is too large")
        if time.monotonic() > getattr(self._local, "until", math.inf):
            raise Unsafe(f"the check was stopped after {self._local.seconds:.2g} s; the schema is too expensive")

    def seconds_left(self) -> float:
        """Seconds for the next pattern: a little at least, because 0 would mean no limit."""
        return max(0.001, getattr(self._local, "until", math.inf) - time.monotonic())


budget = _Budget()


def _pattern(validator: Any, value: str, instance: Any, _: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if validator.is_type(instance, "string") and not search(value, instance):
        yield ValidationError(f"{instance[:100]!r} does not match {value[:100]!r}")


def _pattern_properties(validator: Any, value: Mapping[str, Any], instance: Any, _: Any) -> Iterator[Any]:
    if validator.is_type(instance, "object"):
        for expression, subschema in value.items():
            for key, item in instance.items():
                if search(expression, key):
                    yield from validator.descend(item, subschema, path=key, schema_path=expression)


def _additional_properties(validator: Any, value: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if not validator.is_type(instance, "object"):
        return
    named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    extras = [
        key for key in instance if key not in named and not any(search(expression, key) for expression in patterns)
    ]
    if validator.is_type(value, "object"):
        for key in extras:
            yield from validator.descend(instance[key], value, path=key)
    elif not value and extras:
        listed = ", ".join(repr(key[:60]) for key in extras[:5]) + (", …" if len(extras) > 5 else "")
        yield ValidationError(f"properties that the schema does not allow: {listed}")


def _with_timed_patterns(rule: Rule) -> Rule:
    """A copy of a rule of the library that searches with our `search`: its own matches without a time limit.

    The library itself stays as it is, for the program that this runs in.
    """
    from types import FunctionType, SimpleNamespace

    from jsonschema import _utils

    namespace: dict[str, Any] = {
        **vars(_utils),
        **getattr(rule, "__globals__", {}),
        "re": SimpleNamespace(search=lambda pattern, text: search(pattern, text)),
    }
    for name, value in list(namespace.items()):
        if isinstance(value, FunctionType):
            copy = FunctionType(value.__code__, namespace, name, value.__defaults__, value.__closure__)
            copy.__kwdefaults__ = value.__kwdefaults__
            namespace[name] = copy
    copied: Rule = namespace[getattr(rule, "__name__", "")]
    return copied


def _unique_items(validator: Any, value: bool, instance: Any, _: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if not value or not validator.is_type(instance, "array"):
        return
    identities: set[Any] = set()
    for place, item in enumerate(instance):
        key = _identity(item)
        if key in identities:
            yield ValidationError(f"item {place} repeats an earlier one")
            return
        identities.add(key)


def _identity(value: Any) -> Any:
    """Make a hashable value that is equal exactly if the JSON values are: 1 is 1.0, but not true."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, list):
        return ("list", tuple(_identity(item) for item in value))
    if isinstance(value, dict):
        return ("dict", frozenset((key, _identity(item)) for key, item in value.items()))
    return value
