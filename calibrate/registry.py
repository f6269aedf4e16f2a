"""Find detectors by name: those in `calibrate/detectors/`, other packages' entry points `touchstone.detectors`, and
those of the workspace whose scores are imported.

Finding a detector imports its module, which is light; its models load when it first scores.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import logging
import math
import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import calibrate.detectors
from calibrate import workspace
from calibrate.detectors.base import Detector
from calibrate.detectors.shared.external import make_class, undefined
from calibrate.errors import BadInput, UnknownDetector

log = logging.getLogger("touchstone")

GROUP = "touchstone.detectors"
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


class Parameter(NamedTuple):
    """One field of a detector, as a form or a command line needs it.

    `choices` is empty if any value is allowed; `low` and `high` bound a number.
    """

    name: str
    type: type
    default: Any
    choices: tuple[Any, ...]
    help: str
    low: float | None = None
    high: float | None = None


def names() -> list[str]:
    """List the names of all detectors, sorted; external ones once their direction is known."""
    external = (detector.name for detector in workspace.current().external.values() if detector.flag_when)
    return sorted({*installed(), *external})


def installed() -> list[str]:
    """List the names of the detectors that can compute scores."""
    return [name for name, cls in _load_classes().items() if not isinstance(cls, str)]


def get(name: str) -> type[Detector]:
    """Get a detector's class. Raises UnknownDetector with the nearest names, BadInput for one that cannot be loaded."""
    cls = _load_classes().get(name)
    if isinstance(cls, str):
        raise BadInput(cls)
    if cls is not None:
        return cls
    if (external := workspace.current().external.get(name)) is not None:
        if external.flag_when is None:
            raise BadInput(undefined(name))
        return make_class(external)
    near = difflib.get_close_matches(name, names(), n=3, cutoff=0.6)
    hint = f"did you mean {', '.join(near)}?" if near else f"there are: {', '.join(names())}"
    raise UnknownDetector(f"no detector {name!r}; {hint}")


def how_to_score(name: str, options: str = "--all") -> str:
    """The command by which a detector gets scores: of those computed elsewhere an import, else a run with `options`."""
    if name in workspace.current().external:
        return f"scores import FILE --detector {name}"
    return f"detect {name} {options}".rstrip()


def make(name: str, params: Mapping[str, Any] | None = None) -> Detector:
    """Construct a detector with these parameters, the rest at their defaults.

    Texts, as a command line passes them, are converted to the parameter's type. Raises UnknownDetector, or BadInput for
    an unknown parameter or an impossible value.
    """
    cls = get(name)
    declared = {parameter.name: parameter for parameter in parameters(cls)}
    values = {}
    for key, value in (params or {}).items():
        if key not in declared:
            offered = ", ".join(declared) or "none"
            raise BadInput(f"{name} has no parameter {key!r}; it has: {offered}")
        values[key] = _convert_or_refuse(name, declared[key], value)
    try:
        return cls(**values)
    except ValueError as error:  # a detector's own check in __post_init__
        raise BadInput(f"{name}: {error}") from error


def parameters(cls: type[Detector]) -> list[Parameter]:
    """List a detector's parameters in order."""
    hints = get_type_hints(cls)
    return [_parameter(field, hints[field.name]) for field in dataclasses.fields(cls)]  # type: ignore[arg-type]


def config_of(detector: Detector) -> dict[str, Any]:
    """A detector's parameters as JSON; part of the cache key."""
    return dataclasses.asdict(detector)  # type: ignore[call-overload,no-any-return]


@cache
def _load_classes() -> dict[str, type[Detector] | str]:
    """Load every detector. For one of another package that cannot be loaded, the reason stands in its place."""
    classes: dict[str, type[Detector] | str] = {}
    for module in pkgutil.iter_modules(calibrate.detectors.__path__):
        if module.name != "base" and not module.ispkg:
            loaded = importlib.import_module(f"calibrate.detectors.{module.name}")
            for cls in vars(loaded).values():
                if isinstance(cls, type) and cls.__module__ == loaded.__name__ and hasattr(cls, "flag_when"):
                    classes[cls.name] = cls  # type: ignore[attr-defined]
    for entry in entry_points(group=GROUP):
        try:
            offered: type[Detector] = entry.load()
            name = offered.name
        except Exception as error:  # another package's module may raise anything when it is imported
            why = f"the detector {entry.name!r} of {entry.value} cannot be loaded: {error}; mend or remove it"
            log.warning(why)
            classes.setdefault(entry.name, why)
            continue
        if isinstance(existing := classes.get(name), type):
            place = f"{existing.__module__}.{existing.__name__}"
            log.warning(f"two detectors are called {name!r}: {place}, which is taken, and {entry.value}: remove one")
            continue
        classes[name] = offered
    return classes


def _parameter(field: dataclasses.Field[Any], hint: Any) -> Parameter:
    choices = tuple(get_args(hint)) if get_origin(hint) is Literal else ()
    kind = type(choices[0]) if choices else hint
    bounds = (field.metadata.get("low"), field.metadata.get("high"))
    return Parameter(field.name, kind, field.default, choices, str(field.metadata.get("help", "")), *bounds)


def _convert_or_refuse(name: str, parameter: Parameter, value: Any) -> Any:
    """Convert a value to the parameter's type. Raises BadInput that says what the parameter takes."""
    try:
        converted = _convert(parameter.type, value)
    except (TypeError, ValueError, OverflowError):
        converted = None
    inside = (
        isinstance(converted, (str, bool)) or converted is None or _within(converted, parameter.low, parameter.high)
    )
    if converted is None or not inside or (parameter.choices and converted not in parameter.choices):
        raise BadInput(f"{name}: {parameter.name} cannot be {value!r}; it is {_describe_domain(parameter)}")
    return converted


def _convert(kind: type, value: Any) -> Any:
    """Convert to str, bool, int or float. Texts are parsed, nothing is rounded, and a bool is not a number."""
    if kind is bool:
        return (
            value
            if isinstance(value, bool)
            else {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}.get(str(value).strip().lower())
        )
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    if kind is int and isinstance(value, float) and not value.is_integer():
        return None
    converted = kind(value)
    return None if isinstance(converted, float) and not math.isfinite(converted) else converted


def _within(value: float, low: float | None, high: float | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


def _describe_domain(parameter: Parameter) -> str:
    if parameter.choices:
        return f"one of {', '.join(map(str, parameter.choices))}"
    kinds = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
    kind = kinds.get(parameter.type, parameter.type.__name__)
    if parameter.low is not None and parameter.high is not None:
        return f"{kind} from {parameter.low:g} to {parameter.high:g}"
    if parameter.low is not None:
        return f"{kind}, {parameter.low:g} or more"
    return kind if parameter.high is None else f"{kind}, {parameter.high:g} or less"
