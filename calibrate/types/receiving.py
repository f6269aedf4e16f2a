"""What a receiver of spans hands to the store before it acknowledges, and what a joiner reads there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

BodyKind = Literal["protobuf", "protobuf+gzip", "json", "json+gzip"]


@dataclass(frozen=True, slots=True)
class Arrival:
    """The body of a request as it came.

    Attributes
    ----------
    kind : str
        How the body is written and packed.
    body : bytes
    spans : int
        Those in it that can be used.
    unpacked : int
        Bytes of the body when it is not packed.
    at : datetime
        When it came, by the receiver's clock.
    """

    kind: BodyKind
    body: bytes
    spans: int
    unpacked: int
    at: datetime


@dataclass(frozen=True, slots=True)
class StoredArrival:
    """An arrival with its key. Keys grow in the order of the commits."""

    key: int
    arrival: Arrival


@dataclass(frozen=True, slots=True)
class Backlog:
    """What was acknowledged and not joined yet. `oldest` is when the first of it came, `joining` whether a joiner works
    on it now."""

    requests: int
    bytes: int
    oldest: datetime | None
    joining: bool
