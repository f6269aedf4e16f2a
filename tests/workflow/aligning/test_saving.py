"""What is saved is what was compared: a prompt without a shown gain takes a reason."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from calibrate.backends.chat.guided import HEADING
from calibrate.cli import main
from calibrate.types import Label, Record, Source, Trace
from calibrate.workflow.aligning.side_by_side import shared_remarks, side_by_side
from calibrate.workflow.detection import detect, team_files
from db import Store, open_store
from tests.backends.chat_stub import Asked, Say, stubbed
from tests.workflow.making import NOW

FILE = "prompts/judge_yes_no.txt"
JUDGE = "judge_yes_no"
REMARK = "the endpoint gave no usable log-probabilities, so NO is 1 and YES is 0"

Align = Callable[..., tuple[int, dict[str, Any]]]


def reply(word: str) -> Say:
    choices = [{"index": 0, "message": {"role": "assistant", "content": word}, "finish_reason": "stop"}]
    return Say(body=json.dumps({"id": "1", "model": "stub-1", "choices": choices}).encode())


def learns(asked: Asked) -> Say:
    """Says YES to everything, until its prompt has cases of people: then it is right."""
    system, user = (asked.body["messages"][place]["content"] for place in (0, -1))
    return reply("NO" if HEADING in system and "golden wings" in user else "YES")


def never_learns(asked: Asked) -> Say:
    return reply("YES. Fine.")


@contextmanager
def team(
    folder: Path, judge: Callable[[Asked], Say], capsys: pytest.CaptureFixture[str]
) -> Iterator[tuple[Store, Align]]:
    """A store with 40 labelled answers and their scores, and `align` as a terminal calls it: (exit code, document)."""
    store = open_store(f"sqlite:///{folder}/team.db")
    records = []
    for n in range(40):
        bad = n % 2 == 0
        answer = f"Parcel {n} leaves at {n} o'clock" + (" on golden wings." if bad else ".")
        source = Source("1", f"Parcel {n} leaves the house at {n} o'clock.")
        trace = Trace(f"t{n}", question=f"When does parcel {n} leave?", answer=answer, sources=(source,))
        records.append(Record(n + 1, trace, (Label(trace.id, "", "hallucinated" if bad else "clean"),)))
    store.traces.add(records, labels_as="ann", now=NOW)

    def align(action: str, *words: str) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        code = main(["align", action, JUDGE, "--store", store.url, "--json", *words])
        out = capsys.readouterr().out
        return code, json.loads(out) if out else {}

    with stubbed(judge) as stub, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOUCHSTONE_CHAT_URL", stub.url)
        patch.setenv("TOUCHSTONE_CHAT_MODEL", "stub-1")
        score(store)
        yield store, align
    store.close()


def score(store: Store) -> None:
    detect.work(store, run_id=detect.queue(store, [JUDGE], {"labelled": True}).id)


def test_what_was_compared_is_saved_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with team(tmp_path, learns, capsys) as (store, align):
        _, compared = align("compare")
        assert compared["verdict"] == "better"
        # Another number of examples is another prompt, which nobody compared.
        code, other = align("save", "--examples", "8")
        assert (code, other["saved"], other["compared"], other["verdict"]) == (2, False, False, None)
        assert not store.prompt_examples.set_aside()

        code, saved = align("save")
        assert (code, saved["saved"], saved["verdict"], saved["after"]) == (0, True, "better", compared["after"])
        aside = store.prompt_examples.set_aside()
        code, again = align("save")
        assert (code, again["saved"], again["in_use"]) == (0, False, True)
        assert team_files.get(store, FILE).version == compared["after"]
        assert store.prompt_examples.set_aside() == aside
        [version] = store.prompt_examples.versions(FILE)
        assert (version.version, version.guide) == (compared["after"], compared["guide"])

        # The scores so far are of the prompt before, and the comparison says so until the judge is run again.
        both = side_by_side(store, JUDGE)
        assert (both.scored_with, both.in_use) == (compared["before"], compared["after"])
        main(["align", "differences", JUDGE, "--store", store.url])
        assert f"prompt version {compared['before']}" in capsys.readouterr().out
        score(store)
        both = side_by_side(store, JUDGE)
        assert both.scored_with == both.in_use == compared["after"]
        assert both.wrong == 0


def test_a_prompt_without_a_gain_takes_a_reason_that_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with team(tmp_path, never_learns, capsys) as (store, align):
        assert align("save")[0] == 2
        assert store.files.history(FILE) == []
        _, compared = align("compare")
        assert compared["verdict"] == "open"
        code, refused = align("save", "--reason", "  ")
        assert (code, refused["saved"], refused["verdict"]) == (2, False, "open")
        assert store.files.history(FILE) == []

        code, saved = align("save", "--reason", "auditors ask for our wording")
        assert (code, saved["saved"]) == (0, True)
        [kept] = store.files.history(FILE)
        assert kept.reason == "auditors ask for our wording"
        [changed] = [entry for entry in store.audit.entries() if entry.verb == "file changed"]
        assert changed.after is not None
        assert changed.after["reason"] == kept.reason
        assert align("propose", "--reason", "x")[0] == 2


def test_a_remark_on_every_answer_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with team(tmp_path, never_learns, capsys) as (store, _):
        differences = side_by_side(store, JUDGE).differences
        assert all([reason.text for reason in each.reasons] == ["YES: Fine.", REMARK] for each in differences)
        assert shared_remarks(differences) == (REMARK,)
        assert shared_remarks(differences[:1]) == ()
