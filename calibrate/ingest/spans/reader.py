"""Read what one span says about an answer, by a convention or by the program's own attribute names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from calibrate.ingest.spans.content import OWN_FIELDS, SILENT, Document, Evaluation, SpanContent, fill
from calibrate.ingest.spans.dialects import DIALECTS, dialects_of, genai
from calibrate.ingest.spans.dialects.base import Dialect, Holds
from calibrate.ingest.spans.fields.attributes import parse_own_attributes, select_attributes, select_of_process
from calibrate.ingest.spans.fields.documents import parse_own_documents
from calibrate.ingest.spans.fields.logprobs import parse_tokens
from calibrate.ingest.spans.fields.messages import result_text, tool_results
from calibrate.ingest.spans.fields.schema import parse_schema
from calibrate.ingest.spans.fields.values import first_text, number_or_none, parse_texts, text_or_none
from calibrate.ingest.spans.record import SpanRecord

SCORE = "touchstone.score."
"""Begins the attributes by which a program gives scores of an answer: `touchstone.score.ragas_faithfulness`."""
IsLlm = Callable[[SpanRecord], bool]
Read = Callable[[SpanRecord], Mapping[str, Any]]


def _kinds() -> dict[str, dict[str, Holds]]:
    """What spans hold, by the attributes that say of what kind they are, in the order in which these are believed."""
    kinds: dict[str, dict[str, Holds]] = {}
    for dialect in DIALECTS:
        kinds.setdefault(dialect.KIND, {}).update(dialect.KINDS)
    return kinds


_KINDS = _kinds()
_ANSWERS = frozenset[str]().union(*(dialect.ANSWERS for dialect in DIALECTS))
_SOURCES = frozenset[str]().union(*(dialect.SOURCES for dialect in DIALECTS))


class Reader:
    """Reads spans.

    Parameters
    ----------
    is_llm : callable, optional
        Tells whether a span holds an answer, in place of the conventions.
    names : mapping of str to str
        Fields of `OWN_FIELDS` to the attributes that hold them, in place of `touchstone.answer` and so on.
    read : callable, optional
        Returns fields of `OWN_FIELDS` that it reads from a span itself: they outrank all else. A span from which it
        reads an answer holds one. It may be called twice for a span.
    tool_results : bool
        Take what tools returned as sources.

    Raises
    ------
    ValueError
        For an unknown field.
    """

    def __init__(
        self,
        is_llm: IsLlm | None = None,
        names: Mapping[str, str] | None = None,
        read: Read | None = None,
        tool_results: bool = False,
    ) -> None:
        names = {} if names is None else names
        if not isinstance(names, Mapping) or not all(isinstance(name, str) for name in names.values()):
            raise ValueError(f"it cannot be {names!r}; give {{field: name of an attribute}}")
        _refuse_unknown(names)
        self.is_llm, self.tool_results, self.hook = is_llm, tool_results, read
        self.names: Mapping[str, str] = {name: f"touchstone.{name}" for name in OWN_FIELDS} | dict(names)
        self._own = frozenset(self.names.values())
        self._answers = _ANSWERS | {self.names["answer"]}
        self._sources = _SOURCES | self._own
        self._marks = self._answers | self._sources | set(_KINDS)

    def holds(self, span: SpanRecord) -> Holds | None:
        """Classify a span: it holds an answer, or something that an answer of its trace needs, or nothing.

        Parameters
        ----------
        span : SpanRecord

        Returns
        -------
        {"answer", "sources", "tool"} or None
            "tool" only where results of tools are wanted.
        """
        if self.is_llm is not None and self.is_llm(span):
            return "answer"
        fields = self._read_by_hook(span)
        if fields.get("answer") is not None:
            return "answer"
        holds = self.classify(span.attributes)
        if holds is None and (fields or any(event.name == genai.EVALUATION for event in span.events)):
            return "sources"
        return holds

    def classify(self, attributes: Mapping[str, Any]) -> Holds | None:
        """Classify a span by the names of its attributes, in one pass over them.

        Parameters
        ----------
        attributes : mapping
            Of the span.

        Returns
        -------
        {"answer", "sources", "tool"} or None
            Never "answer" where the program has a rule of its own for that.
        """
        marks = self._marks.intersection(attributes)
        if not marks:
            return None
        kinds = [key for key in _KINDS if key in marks]
        declared = [holds for key in kinds if (holds := _KINDS[key].get(_hashable(attributes[key])))]
        # A span's declared kind outranks the attributes it has, but for an answer that the program itself gave.
        if self.names["answer"] in marks or (not kinds and not marks.isdisjoint(self._answers)):
            declared = ["answer"]
        if self.is_llm is None and declared[:1] == ["answer"]:
            return "answer"
        if self.tool_results and declared[:1] == ["tool"]:
            return "tool"
        return "sources" if "sources" in declared or not marks.isdisjoint(self._sources) else None

    def read(self, span: SpanRecord) -> SpanContent:
        """Read everything that the span says, of whatever kind it is.

        Parameters
        ----------
        span : SpanRecord

        Returns
        -------
        SpanContent
        """
        attributes = genai.with_events(span.attributes, span.events)
        dialects = dialects_of(attributes)
        own = self._own_fields(attributes, self._read_by_hook(span))
        content = _read_own_fields(own) if own else SILENT
        filled = fill(content, [dialect.read(attributes) for dialect in dialects])
        answers = content.answers if content.declared else filled.answers
        others = parse_texts(own.get("alternatives"))
        return replace(
            filled,
            answers=(*answers[:1], *others) if answers and others else answers,
            results=self._read_results(attributes, dialects),
            attributes=select_of_process(span.resource)
            | select_attributes(attributes, self._own)
            | parse_own_attributes(own.get("attributes")),
            evaluations=genai.evaluations(span.events) + _read_scores(span.attributes),
        )

    def _read_by_hook(self, span: SpanRecord) -> dict[str, Any]:
        if self.hook is None:
            return {}
        fields = {name: value for name, value in self.hook(span).items() if value is not None}
        _refuse_unknown(fields)
        return fields

    def _own_fields(self, attributes: Mapping[str, Any], hooked: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that the program itself gives: all of them, or none where it gives nothing."""
        if not hooked and self._own.isdisjoint(attributes):
            return {}
        return {name: attributes.get(key) for name, key in self.names.items()} | dict(hooked)

    def _read_results(self, attributes: Mapping[str, Any], dialects: Sequence[Dialect]) -> tuple[Document, ...]:
        """Read what tools returned: as the model was told, or on the span of one tool."""
        if not self.tool_results:
            return ()
        for dialect in dialects:
            if results := tool_results(dialect.messages_with_results(attributes)):
                return tuple(results)
        if self.classify(attributes) != "tool":
            return ()
        values = [dialect.result_of_tool(attributes) for dialect in dialects]
        text = next((text for value in values if (text := result_text(value))), None)
        name = first_text(attributes, "gen_ai.tool.name", "tool.name", "ai.toolCall.name", "traceloop.entity.name")
        return () if text is None else (Document(name, text, None),)


def _read_own_fields(own: Mapping[str, Any]) -> SpanContent:
    """Read the fields that the program itself gives. An answer that it gives is the answer, even where it is none."""
    answer = own["answer"]
    content = SpanContent(
        trace_id=text_or_none(own["trace_id"]),
        question=text_or_none(own["question"]),
        answers=(answer,) if text_or_none(answer) else (),
        context=text_or_none(own["context"]),
        documents=tuple(parse_own_documents(own["sources"])),
        tokens=parse_tokens(own["tokens"]),
        schema=parse_schema(own["schema"]),
        model=text_or_none(own["model"]),
        operation=text_or_none(own["operation"]),
    )
    return replace(content, own=frozenset(name for name, value in own.items() if value is not None))


def _refuse_unknown(fields: Mapping[str, Any]) -> None:
    if unknown := sorted(set(fields) - set(OWN_FIELDS)):
        raise ValueError(f"no field {', '.join(unknown)}; there are: {', '.join(OWN_FIELDS)}")


def _hashable(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _read_scores(attributes: Mapping[str, Any]) -> tuple[Evaluation, ...]:
    """Read the scores that the program itself gave: not those on Touchstone's own spans."""
    if genai.OURS in attributes:
        return ()
    scores = {key.removeprefix(SCORE): value for key, value in attributes.items() if key.startswith(SCORE)}
    numbers = {name: number_or_none(value) for name, value in scores.items() if name}
    return tuple([Evaluation(name, number) for name, number in numbers.items() if number is not None])
