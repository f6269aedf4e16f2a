"""JSON Schema: does an answer that must be JSON keep to its schema?"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, ClassVar, Literal

from calibrate.backends.schema.json_schema import Unsafe, budget, locate, parse, validator
from calibrate.detectors.base import abstained, failed, scored
from calibrate.detectors.shared.scoring import limit_evidence, score_each
from calibrate.types import Evidence, FlagWhen, Score, Trace

MAX_VIOLATIONS = 1000  # violations counted
MAX_LOCATED = 20  # violations whose place in the answer is looked up
_OPENING = re.compile(r"^[^\S\n]*```[\w-]*[^\S\n]*\n", re.MULTILINE)
_CLOSING = re.compile(r"^[^\S\n]*```[^\S\n]*$", re.MULTILINE)


@dataclass(frozen=True)
class Schema:
    """Measures in how many places an answer that must be JSON breaks the JSON Schema that came with its trace. Anything
    above 0 means that whoever parses the answer gets something else than was promised.

    Needs an answer and its schema. Value: the violations JSON Schema finds (Draft 2020-12 and older), up to 1,000; 1
    for an answer that is no JSON. A `$ref` to elsewhere is never fetched: such a trace fails and says so. A check that
    takes over 5 seconds is stopped, and abstains.
    """

    name: ClassVar[str] = "schema"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "JSON Schema"
    unit: ClassVar[str] = "violations of the trace's JSON Schema"
    needs: ClassVar[frozenset[str]] = frozenset({"answer", "schema"})
    flag_when: ClassVar[FlagWhen] = "above"
    bounds: ClassVar[tuple[float, float]] = (0.0, float(MAX_VIOLATIONS))
    usual_threshold: ClassVar[float] = 0.0
    scores_refusals: ClassVar[bool] = True  # who parses the answer gets no JSON, however politely

    variant: Literal["default", "plain"] = field(
        default="default",
        metadata={
            "help": "`plain` is json.loads and a bare validator: NaN and repeated keys pass, a ```json fence breaks, "
            "`format` and the schema itself go unchecked. Here to compare."
        },
    )
    reading: Literal["lenient", "strict"] = field(
        default="lenient",
        metadata={"help": "`lenient` unwraps an answer that has its JSON in one ``` fence; `strict` does not."},
    )
    formats: bool = field(default=True, metadata={"help": "Check `format` (date-time, email, uri, …) as well."})
    draft: Literal["auto", "2020-12", "2019-09", "7", "6", "4"] = field(
        default="auto",
        metadata={"help": "The draft of a schema that has no $schema; `auto` goes by the keywords it uses."},
    )

    def revision(self) -> str:
        return ""

    def unavailable(self) -> str | None:
        return None

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        return score_each(self.needs, traces, self._plain if self.variant == "plain" else self._default)

    def _default(self, trace: Trace) -> Score:
        from jsonschema.exceptions import SchemaError

        assert trace.schema is not None
        budget.reset()
        try:
            rules = validator(trace.schema, self.draft, formats=self.formats)
        except Unsafe as error:
            return abstained(trace, str(error))
        except SchemaError as error:
            return failed(trace, f"the schema itself is invalid: {error.message[:200]}")
        except RecursionError:
            return failed(trace, "the schema is nested too deeply to be checked")
        start, body = self._body(trace.answer)
        try:
            value = parse(body)
        except json.JSONDecodeError as error:
            at = min(start + error.pos, len(trace.answer) - 1)
            return scored(trace, 1, [Evidence(f"not JSON: {error.msg}", 1.0, at, at + 1)])
        except ValueError as error:
            return scored(trace, 1, [Evidence(f"not JSON: {error}", 1.0)])
        except RecursionError:
            return failed(trace, "the answer is nested too deeply to be read")
        return _count_violations(trace, rules, value, body, start)

    def _body(self, answer: str) -> tuple[int, str]:
        """Extract the JSON of the answer and its offset: the whole answer, or the content of its only fence."""
        if self.reading == "lenient":
            fences = list(islice(find_fences(answer), 2))
            if len(fences) == 1:
                start, end = fences[0]
                return start, answer[start:end]
        # A byte order mark does not come from the model.
        return (1, answer[1:]) if answer.startswith("\ufeff") else (0, answer)

    def _plain(self, trace: Trace) -> Score:
        """The common recipe, except that it fetches nothing and no pattern can hang the worker."""
        assert trace.schema is not None
        budget.reset()
        try:
            value = json.loads(trace.answer)
        except ValueError as error:
            return scored(trace, 1, [Evidence(f"not JSON: {str(error)[:200]}", 1.0)])
        except RecursionError:
            return failed(trace, "the answer is nested too deeply to be read")
        rules = validator(trace.schema, "2020-12", formats=False, checked=False)
        return _count_violations(trace, rules, value, "", 0)


def find_fences(answer: str) -> Iterator[tuple[int, int]]:
    """Find what lies between ``` fences, as start and end.

    In two searches: one expression for both fences would look for the end of each opening one through the whole text.
    """
    at = 0
    while (opening := _OPENING.search(answer, at)) and (closing := _CLOSING.search(answer, opening.end())):
        yield opening.end(), closing.start()
        at = closing.end()


def _count_violations(trace: Trace, rules: Any, value: Any, body: str, start: int) -> Score:
    from referencing.exceptions import Unresolvable

    try:
        errors = list(islice(rules.iter_errors(value), MAX_VIOLATIONS))
    except Unresolvable as error:
        return failed(trace, f"the schema refers to {str(error.ref)[:200]!r}, which is not in it and is never fetched")
    except RecursionError:
        return failed(trace, "the schema refers to itself without end, or the answer is nested too deeply")
    except Unsafe as error:
        return abstained(trace, str(error))
    except ArithmeticError:  # jsonschema divides a number of the answer by one of the schema
        return abstained(trace, "a number of the answer is too large to be held to the schema's `multipleOf`")
    evidence = [_remark(error, body if number < MAX_LOCATED else "", start) for number, error in enumerate(errors[:50])]
    return scored(trace, len(errors), limit_evidence(evidence))


def _remark(error: Any, body: str, start: int) -> Evidence:
    text = f"{error.json_path[:120]}: {error.message[:200]}"
    place = locate(body, list(error.absolute_path)) if body else None
    return Evidence(text, 1.0, start + place[0], start + place[1]) if place else Evidence(text, 1.0)
