"""Citation validity: does every citation mark point to a source that was given?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from calibrate.backends.text.citations import citations
from calibrate.detectors.base import abstained, scored
from calibrate.detectors.shared.scoring import by_number, limit_evidence, score_each
from calibrate.types import Evidence, FlagWhen, Score, Trace


@dataclass(frozen=True)
class CitationValidity:
    """Measures how many of the answer's citations point to no source that was given. Anything above 0 means the answer
    cites something that does not exist.

    Needs an answer and sources. Value: cited numbers without a source / cited numbers, each mark's numbers counted
    singly. An answer that cites nothing is uncited, not valid: it abstains.
    """

    name: ClassVar[str] = "citation_validity"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Citation validity"
    unit: ClassVar[str] = "share of citations that point to no given source"
    needs: ClassVar[frozenset[str]] = frozenset({"answer", "sources"})
    flag_when: ClassVar[FlagWhen] = "above"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    usual_threshold: ClassVar[float] = 0.0

    variant: Literal["default", "plain"] = field(
        default="default",
        metadata={
            "help": "`plain` is the usual pattern: only [n], valid up to the number of sources. It passes [0], misses "
            "[1, 2], [1-3] and 【1】, takes [2024] and arr[0] for citations, and calls an uncited answer valid."
        },
    )
    parentheses: bool = field(default=False, metadata={"help": "Read (1) as a citation too."})

    def revision(self) -> str:
        return ""

    def unavailable(self) -> str | None:
        return None

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        return score_each(self.needs, traces, self._plain if self.variant == "plain" else self._default)

    def _default(self, trace: Trace) -> Score:
        sources = by_number(trace.sources)
        total = invalid = 0
        evidence = []
        for mark in citations(trace.answer, sources=sources, parentheses=self.parentheses):
            unmatched = [number for number in mark.numbers if number not in sources]
            total += len(mark.numbers)
            invalid += len(unmatched)
            if unmatched:
                text = f"cites {_list_numbers(unmatched)}, but {_describe_sources(list(sources))}"
                evidence.append(Evidence(text, len(unmatched) / len(mark.numbers), mark.start, mark.end))
        if not total:
            return abstained(trace, "uncited: the answer cites nothing")
        return scored(trace, invalid / total, limit_evidence(evidence))

    def _plain(self, trace: Trace) -> Score:
        """The common recipe: `int(n) <= len(sources) for n in re.findall(r"\\[(\\d+)\\]", answer)`, as a share."""
        cited = list(re.finditer(r"\[(\d{1,80})\]", trace.answer))
        wrong = [mark for mark in cited if int(mark[1]) > len(trace.sources)]
        evidence = [Evidence(f"cites {mark[1]} of {len(trace.sources)}", 1.0, *mark.span()) for mark in wrong]
        return scored(trace, len(wrong) / len(cited) if cited else 0.0, limit_evidence(evidence))


def _list_numbers(numbers: list[str]) -> str:
    shown = ", ".join(f"[{number[:20]}]" for number in numbers[:5])
    return shown + (f" and {len(numbers) - 5} more" if len(numbers) > 5 else "")


def _describe_sources(numbers: list[str]) -> str:
    if len(numbers) == 1:
        return f"the only source is [{numbers[0][:20]}]"
    if len(numbers) <= 5:
        return f"the sources are {_list_numbers(numbers)}"
    return f"there are {len(numbers)} sources, [{numbers[0][:20]}] to [{numbers[-1][:20]}]"
