"""Receivers and joiners are killed under load: everything that was acknowledged is in the store, once."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path

import pytest

from db import open_store
from tests.receiving.commands import running, wait_until
from tests.receiving.making import Address, chat, request, retriever, root, stored, trace_id

CLIENTS, TRACES = 4, 5  # in a request


def load(address: Address, first: int, acknowledged: set[str], ended: Callable[[], bool]) -> None:
    number = first
    while not ended():
        traces = [trace_id(number + n) for n in range(TRACES)]
        number += TRACES
        try:
            answer = address.post(request(*[span(trace) for trace in traces for span in (retriever, chat, root)]))
        except (OSError, HTTPException):
            return
        if answer.status == 200:
            assert answer.body == b"{}"
            acknowledged.update(traces)
        time.sleep(0.1)


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(each) for task in tasks for each in task.read_text().split()]


@pytest.mark.both_databases
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds a process's children in /proc")
def test_what_was_acknowledged_is_stored(store_url: str) -> None:
    acknowledged: set[str] = set()
    for attempt in range(2):
        with running(store_url, "--wait", "0.5") as (process, address):
            process_ended = threading.Event()
            clients = [
                threading.Thread(
                    target=load,
                    args=(address, (attempt * CLIENTS + client) * 10**6, acknowledged, process_ended.is_set),
                )
                for client in range(CLIENTS)
            ]
            for client in clients:
                client.start()
            time.sleep(1.5)
            [joiner] = children(process.pid)
            os.kill(joiner, signal.SIGKILL)
            time.sleep(1.0)
            if attempt == 0:  # the second time it joins what is left
                process.kill()
            process_ended.set()
            for client in clients:
                client.join()
            if attempt == 1:
                wait_until(lambda: _backlog(address) == 0, 90)
    store = open_store(store_url)
    traces = stored(store)
    store.close()
    assert len(acknowledged) > 50
    ids = [trace.id.partition("-")[0] for trace in traces]
    assert len(ids) == len(set(ids))
    assert acknowledged - set(ids) == set()
    assert all(len(trace.sources) == 1 and trace.question for trace in traces)


def _backlog(address: Address) -> int:
    backlog: int = json.loads(address.get("/healthz").body)["backlog"]["requests"]
    return backlog
