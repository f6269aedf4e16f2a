"""Read retrieved documents from the forms that spans carry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from calibrate.ingest.spans.content import Document
from calibrate.ingest.spans.fields.values import first_text, is_list, number_or_none, parse_json, unflatten

_SCORES = ("score", "retrieval_score", "relevance_score")


def parse_documents(value: Any) -> list[Document]:
    """Read a list of texts, or of objects with a text or a score. Objects with neither are skipped."""
    decoded = parse_json(value)
    if isinstance(decoded, str):
        decoded = [decoded]
    return list(_iterate_documents(decoded)) if is_list(decoded) else []


def parse_own_documents(value: Any) -> list[Document]:
    """Read the sources of a program's own attribute, with their numbers: the answer cites by them.

    As in a record, that is `{number: text or object}`, or a list of objects that may have a `number`.
    """
    decoded = parse_json(value)
    if isinstance(decoded, Mapping):
        decoded = [
            {**(entry if isinstance(entry, Mapping) else {"text": entry}), "number": str(number)}
            for number, entry in decoded.items()
        ]
    if not is_list(decoded):
        return parse_documents(decoded)
    return [
        document._replace(number=_document_number(entry)) for entry in decoded for document in parse_documents([entry])
    ]


def parse_flat_documents(attributes: Mapping[str, Any], prefix: str) -> list[Document]:
    """Read documents flattened with an index, as OpenInference writes them: `prefix.0.document.content`."""
    flat = (
        {name.removeprefix("document."): value for name, value in entry.items()}
        for entry in unflatten(attributes, prefix)
    )
    return parse_documents(list(flat))


def _document_number(document: Any) -> str | None:
    number = document.get("number") if isinstance(document, Mapping) else None
    return str(number) if isinstance(number, (str, int)) and not isinstance(number, bool) else None


def _iterate_documents(entries: Sequence[Any]) -> Iterator[Document]:
    for entry in entries:
        if isinstance(entry, str) and entry:
            yield Document(None, entry, None)
        elif isinstance(entry, Mapping):
            document = _parse_document(entry)
            if document.text or document.score is not None:
                yield document


def _parse_document(entry: Mapping[str, Any]) -> Document:
    """Read one document. Frameworks keep title and score in its metadata, which is JSON in a span."""
    metadata = parse_json(entry.get("metadata"))
    metadata = metadata if isinstance(metadata, Mapping) else {}
    name = entry.get("id")
    title = first_text(entry, "title") or first_text(metadata, "title")
    scores = (number_or_none(place.get(key)) for place in (entry, metadata) for key in _SCORES)
    return Document(
        id=str(name)[:500] if isinstance(name, (str, int)) and name != "" else first_text(metadata, "source", "id"),
        text=first_text(entry, "content", "text", "page_content", "pageContent") or "",
        score=next((score for score in scores if score is not None), None),
        title=title,
    )
