"""Read what a retriever returned, in the forms in which programs hand it to their tracing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from calibrate.ingest.spans.logged.chat import decode

_LISTS = ("documents", "docs", "source_nodes", "nodes", "matches", "results", "hits", "chunks", "output", "outputs")
_TEXTS = ("page_content", "pageContent", "content", "text", "document", "body", "chunk", "passage", "snippet")
_NAMES = ("id", "document_id", "doc_id", "title", "source", "url")
_SCORES = ("score", "relevance_score", "similarity", "retrieval_score")


def documents_of(value: Any) -> list[dict[str, Any]]:
    """Read documents.

    Parameters
    ----------
    value : object
        What a retriever returned: JSON in a text, a list of texts or of documents as LangChain, LlamaIndex, Haystack
        and vector databases make them, or an object around the list.

    Returns
    -------
    list of dict
        Each with `content`, `id` and `score`; without what the document does not have.
    """
    return list(_documents(decode(value), 5))


def _documents(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    if depth == 0:
        return
    if isinstance(value, list):
        for item in value:
            yield from _document(decode(item), depth)
    elif isinstance(value, Mapping):
        held = next((decode(value[key]) for key in _LISTS if value.get(key)), None)
        if isinstance(held, (list, Mapping)):
            yield from _documents(held, depth - 1)
        else:
            yield from _document(value, depth)
    elif isinstance(value, str) and value.strip():
        yield {"content": value}


def _document(item: Any, depth: int) -> Iterator[dict[str, Any]]:
    if isinstance(item, str) and item.strip():
        yield {"content": item}
    elif isinstance(item, list):  # a batch of queries, or LangChain's (document, score)
        if len(item) == 2 and isinstance(item[0], Mapping) and _is_number(item[1]):
            yield from ({**document, "score": float(item[1])} for document in _document(item[0], depth - 1))
        else:
            yield from _documents(item, depth - 1)
    elif isinstance(item, Mapping) and depth > 0:
        yield from _of_mapping(item, depth)


def _of_mapping(item: Mapping[str, Any], depth: int) -> Iterator[dict[str, Any]]:
    for key in ("node", "kwargs", "payload", "document", "metadata"):
        # LlamaIndex's node with a score, LangChain serialized, Qdrant's point, a database's match.
        inner = item.get(key)
        if isinstance(inner, Mapping) and not _text(item) and (key != "metadata" or _text(inner)):
            for document in _document(inner, depth - 1):
                yield {**_details(item), **document}
            return
    if text := _text(item):
        metadata = item.get("metadata")
        yield {"content": text, **_details(metadata if isinstance(metadata, Mapping) else {}), **_details(item)}
    elif details := _details(item):
        yield details


def _text(item: Mapping[str, Any]) -> str | None:
    return next((item[key] for key in _TEXTS if isinstance(item.get(key), str) and item[key].strip()), None)


def _details(item: Mapping[str, Any]) -> dict[str, Any]:
    details: dict[str, Any] = {}
    name = next((item[key] for key in _NAMES if isinstance(item.get(key), (str, int)) and item[key] != ""), None)
    if name is not None:
        details["id"] = str(name)
    score = next((item[key] for key in _SCORES if _is_number(item.get(key))), None)
    if score is not None:
        details["score"] = float(score)
    return details


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
