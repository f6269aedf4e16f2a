"""Append answers to a store: `append` puts a record in a queue and returns; only a thread waits for the database."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from calibrate.runtime.notices import log_once
from calibrate.runtime.tracelog.inserts import Inserts, inserts_of
from calibrate.runtime.tracelog.records import Record, Redact, check_shape, redaction, size_of, to_line
from calibrate.runtime.tracelog.sender import Delivery, Sender
from calibrate.runtime.validation import check_number
from calibrate.types import Source
from calibrate.urls import scrub


@dataclass(frozen=True, slots=True)
class LogCounters:
    """Answers of this process by outcome: offered = written + dropped + failed + left_out + waiting.

    Attributes
    ----------
    written : int
        In the store.
    dropped : int
        The queue was full, or closed.
    failed : int
        No record: an answer that is no text, a field of the wrong type, a timestamp that is no time, a value that JSON
        does not have, a redaction that raised.
    left_out : int
        Not in the share that is logged, or left out by the redaction.
    waiting : int
        In the queue, or being written.
    """

    written: int = 0
    dropped: int = 0
    failed: int = 0
    left_out: int = 0
    waiting: int = 0


class TraceLog(Sender[Record]):
    """Append what a program answered to a store, so that production and workbench share one.

    Nothing is read and nothing else is written: a role of PostgreSQL that may insert into the table `logged` is enough.
    The workbench imports the answers from there (`import --logged`, and `watch`), with the checks, the ids
    and the redaction that a file of them would have.

    Parameters
    ----------
    url : str
        The store: "postgresql://…", which needs psycopg, or "sqlite:///file.db".
    share : float
        The share of the answers that is logged, above 0 and up to 1; which ones is left to chance.
    redact : str or callable, optional
        What is replaced before anything leaves the program: names of kinds ("email,phone,card,key"), or a function that
        takes a record and returns another, or None to leave it out. It runs in the thread. If it raises, the answer is
        not logged.
    max_queue : int
        Most answers that may wait, 1 or more. Further ones are dropped and counted.
    max_bytes : int
        Most memory that they may take, about.
    batch : int
        Most answers that are written in one transaction.
    every : float
        Seconds that an answer may wait for others to be written with it. A program that is killed loses so much.
    timeout : float
        Seconds that a try to write may take to connect, or to wait for a lock.

    Raises
    ------
    BadInput
        For an impossible setting, and a URL of no store. Once constructed, nothing here raises.
    Unavailable
        For a PostgreSQL store without its driver.

    Examples
    --------
    >>> log = TraceLog("postgresql://service@db/touchstone", redact="email,phone")  # doctest: +SKIP
    >>> log.append("Two years [1].", question="How long?", sources=["24 months."], model="m-1")  # doctest: +SKIP
    True
    """

    noun = "the trace log"
    thread_name = "touchstone-log"
    outcomes = ("written", "dropped", "failed", "left_out")

    def __init__(
        self,
        url: str,
        *,
        share: float = 1.0,
        redact: str | Redact | None = None,
        max_queue: int = 10_000,
        max_bytes: int = 64 * 1024 * 1024,
        batch: int = 200,
        every: float = 1.0,
        timeout: float = 10.0,
    ) -> None:
        check_number("share", share, "share")
        for name, count in (("max_queue", max_queue), ("max_bytes", max_bytes), ("batch", batch)):
            check_number(name, count, "count")
        check_number("every", every, "pause")
        check_number("timeout", timeout, "pause")
        self._url, self._timeout = url, timeout
        self._inserts: Inserts = inserts_of(url, timeout=timeout)
        self._redact = redaction(redact)
        self._share = share
        super().__init__(max_queue=max_queue, max_bytes=max_bytes, batch=batch, every=every)

    def append(
        self,
        answer: str,
        *,
        question: str | None = None,
        context: str | None = None,
        sources: Mapping[str, Any] | Sequence[str | Mapping[str, Any] | Source] | None = None,
        model: str | None = None,
        operation: str | None = None,
        trace_id: str | None = None,
        timestamp: datetime | float | str | None = None,
        group: str | None = None,
        tokens: Sequence[Mapping[str, Any]] | None = None,
        alternatives: Sequence[str] | None = None,
        schema: Mapping[str, Any] | bool | None = None,
        attributes: Mapping[str, str | int | float | bool | None] | None = None,
        scores: Mapping[str, float] | None = None,
    ) -> bool:
        """Queue an answer. Never waits for the database, never raises.

        The fields are those of a record of a trace file. What is passed must not be changed afterwards: it is written
        later.

        Parameters
        ----------
        answer : str
            What the model wrote.
        question, context : str, optional
            What was asked; what the answer was given, where it did not come as sources.
        sources : mapping or sequence, optional
            The retrieved passages: texts, Source objects, or mappings with `text`, `title`, `retrieval_score`; as a
            mapping by the number that the answer cites, else numbered from 1.
        model, operation : str, optional
            Which model version answered, in which part of the application.
        trace_id : str, optional
            A name of your own, under which the answer is found again; default: one made from its content.
        timestamp : datetime, float or str, optional
            When; default: now.
        group : str, optional
            Answers of one group share their sources.
        tokens : sequence of mapping, optional
            The answer's tokens with log-probabilities, as OpenAI has them.
        alternatives : sequence of str, optional
            Other answers to the same question.
        schema : mapping or bool, optional
            The JSON Schema that the answer should follow.
        attributes : mapping, optional
            Anything short to filter and group by.
        scores : mapping of str to float, optional
            What your own evaluators say of the answer, by their names.

        Returns
        -------
        bool
            Whether it is in the queue now: False for one that is left out by chance, dropped or failed.
        """
        if self._share < 1.0 and random.random() >= self._share:
            return self.settle("left_out")
        try:
            record: Record = {"answer": answer, "timestamp": datetime.now(UTC) if timestamp is None else timestamp}
            for name, value in (
                ("trace_id", trace_id), ("question", question), ("context", context), ("sources", sources),
                ("model", model), ("operation", operation), ("group", group), ("tokens", tokens),
                ("alternatives", alternatives), ("schema", schema), ("attributes", attributes),
                ("scores", scores),
            ):  # fmt: skip
                if value is not None:
                    record[name] = value
            if not isinstance(answer, str):
                raise TypeError(f"the answer is of type {type(answer).__name__}")
            check_shape(record)
            size = size_of(record)
        except Exception as error:
            log_once("unlogged", f"{error}; it is in no store")
            return self.settle("failed")
        return self.put(record, size)

    @property
    def counters(self) -> LogCounters:
        """The answers offered so far, by outcome."""
        return LogCounters(**self.counts_with_waiting())

    @property
    def target(self) -> str:
        """The store, without its password."""
        return self._inserts.name

    def deliver(self, batch: Sequence[Record]) -> Delivery:
        """Write a batch."""
        lines, failed, left_out, problem = [], 0, 0, None
        for record in batch:
            step = "it was redacted"
            try:
                changed = record if self._redact is None else self._redact(record)
                if changed is None:
                    left_out += 1
                else:
                    step = "it was written as JSON"
                    lines.append(to_line(changed))
            except Exception as error:  # of the program's own function, or of a value
                failed += 1
                log_once("unlogged", f"{type(error).__name__} while {step}; it is in no store")
        try:
            if lines:
                self._inserts.write(lines)
        except Exception as error:
            problem = scrub(f"{type(error).__name__}: {error}".split("\n")[0][:300], [self._url])
        outcome = "written" if problem is None else "dropped"
        return Delivery({outcome: len(lines), "failed": failed, "left_out": left_out}, problem)

    def disconnect(self) -> None:
        """Close the connection."""
        self._inserts.close()

    def _begin_in_child(self) -> None:
        _inherited.append(self._inserts)
        self._inserts = inserts_of(self._url, timeout=self._timeout)
        super()._begin_in_child()


_inherited: list[Inserts] = []  # of the parent: to close its connection in a child would end it there
