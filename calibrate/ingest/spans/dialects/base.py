"""What each convention offers the reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from calibrate.ingest.spans.content import SpanContent

Holds = Literal["answer", "sources", "tool"]


class Dialect(Protocol):
    """A convention: a module with these names.

    Attributes
    ----------
    KIND : str or None
        The attribute that says what kind of span it is.
    KINDS : mapping of str to {"answer", "sources", "tool"}
        What spans of those kinds hold: an answer, something that an answer needs, or what a tool returned.
    HEADS : frozenset of str
        What all attributes that it reads begin with, up to their first dot: a span without them says nothing by it.
    ANSWERS, SOURCES : frozenset of str
        Attributes that a span has only if it may hold an answer, or sources, whatever kind it says it is.
    """

    @property
    def KIND(self) -> str: ...  # noqa: N802
    @property
    def KINDS(self) -> Mapping[str, Holds]: ...  # noqa: N802
    @property
    def HEADS(self) -> frozenset[str]: ...  # noqa: N802
    @property
    def ANSWERS(self) -> frozenset[str]: ...  # noqa: N802
    @property
    def SOURCES(self) -> frozenset[str]: ...  # noqa: N802

    def read(self, attributes: Mapping[str, Any]) -> SpanContent:
        """Read what the attributes say by this convention."""
        ...

    def messages_with_results(self, attributes: Mapping[str, Any]) -> Any:
        """The messages that may tell the model what tools returned."""
        ...

    def result_of_tool(self, attributes: Mapping[str, Any]) -> Any:
        """What a tool returned, on its own span."""
        ...
