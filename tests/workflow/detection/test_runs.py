"""Runs that fail: a detector that failed on every trace, and judges whose replies cannot be read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from calibrate import registry
from calibrate.backends.chat import chat
from calibrate.cli import main
from calibrate.report.sentences.detection import detection as sentences
from calibrate.types import Record, Source, Trace
from calibrate.workflow.detection import detect, outcomes
from calibrate.workspace import Workspace, using
from db import Store
from db.runs import Run
from tests.detectors import scripted
from tests.detectors.judges.test_real_model import FEW_SHOT
from tests.detectors.scripted import Endpoint, Said, Script
from tests.llm import Llm

JUDGE = "judge_yes_no"
NOW = datetime(2026, 11, 22, tzinfo=UTC)
MANY = 6
one_database = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)


@pytest.fixture(autouse=True)
def _own_workspace() -> Iterator[None]:
    with using(Workspace()):
        yield


@pytest.fixture
def asks(no_chat: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Script], Endpoint]]:
    """Starts an endpoint that replies by a script, which a test may change."""
    running = []

    def begin(script: Script) -> Endpoint:
        running.append(scripted.endpoint(lambda body: endpoint.script(body)))
        endpoint = running[-1].__enter__()
        endpoint.script = script
        monkeypatch.setenv("TOUCHSTONE_CHAT_URL", endpoint.url)
        monkeypatch.setenv("TOUCHSTONE_CHAT_MODEL", scripted.MODEL)
        return endpoint

    yield begin
    for one in running:
        one.__exit__(None, None, None)


def add(store: Store, numbers: range = range(MANY)) -> None:
    traces = [
        Trace(f"t{n}", f"Parcel {n} leaves at noon.", sources=(Source("1", f"Parcel {n} leaves at noon."),))
        for n in numbers
    ]
    store.traces.add([Record(n, trace, ()) for n, trace in enumerate(traces, 1)], labels_as=None, now=NOW)


def run(store: Store, *names: str, **given: Any) -> Run:
    queued = detect.queue(store, names or (JUDGE,), {"all": True}, **given)
    finished = detect.work(store, run_id=queued.id)
    assert finished is not None
    return finished


def junk(body: dict[str, Any]) -> str:
    return "Well, it depends."


def refused(body: dict[str, Any]) -> Said:
    return Said("no such thing here", status=400)


@pytest.mark.both_databases
def test_a_run_in_which_a_detector_failed_on_every_trace_is_not_done(store: Store, asks: Any) -> None:
    endpoint = asks(refused)
    add(store)
    finished = run(store, JUDGE, "word_overlap")
    assert finished.status == outcomes.state(finished) == "incomplete"
    assert finished.counts["word_overlap"]["scored"] == MANY
    (failure,) = outcomes.failures(finished)
    assert (failure.detector, failure.failed) == (JUDGE, MANY)
    assert sentences.failed(failure).startswith(f"Judge: yes or no failed on all {MANY} traces: ")
    assert "no such thing here" in sentences.failed(failure)
    endpoint.script = scripted.sensible
    again = run(store, JUDGE, "word_overlap")
    assert (again.status, outcomes.failures(again)) == ("done", ())


@one_database
def test_a_failure_is_told_with_its_own_reason_and_not_with_that_of_the_abstentions(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [{"trace_id": f"t{n}", "answer": "ab"} for n in range(4)]
    lines[2]["tokens"] = [{"token": "ab", "logprob": 1e308}]  # type: ignore[assignment]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert main(["import", str(tmp_path / "t.jsonl"), "--store", store.url]) == 0
    assert main(["detect", "token_logprob", "--all", "--store", store.url]) == 1
    text = capsys.readouterr().out
    assert "Token log-probability failed on 1 of 4 traces and scored none: " in text
    assert "1e+308" in text.split("scored none: ")[1].splitlines()[0]


@one_database
def test_what_was_scored_before_counts_and_what_abstained_before_does_not(store: Store, asks: Any) -> None:
    endpoint = asks(scripted.sensible)
    add(store)
    store.traces.add([Record(1, Trace("none", "No source."), ())], labels_as=None, now=NOW)
    assert run(store).status == "done"
    endpoint.script = refused
    add(store, range(MANY, 2 * MANY))
    assert run(store).status == "done"  # it failed on the new ones alone
    plain = {"variant": "plain"}
    assert run(store, params=plain).status == "incomplete"
    finished = run(store, params=plain)  # the abstention of before is reused, and is no score
    assert finished.counts[JUDGE]["reused"] == 1
    assert finished.status == "incomplete"


def test_a_run_of_an_older_version_is_told_by_its_counts() -> None:
    def of(**tally: int) -> Run:
        counts = {"a": {"scored": 0, "abstained": 0, "failed": 0, "reused": 0, "seconds": 0, "why": {}} | tally}
        return Run(2, "done", [], {"all": True}, None, 80, 80, counts, False, None, None, NOW, None, None, None)

    assert outcomes.state(of(failed=80)) == "incomplete"
    assert [
        outcomes.state(of(**tally)) for tally in ({"scored": 1, "failed": 79}, {"abstained": 80}, {"reused": 80})
    ] == ["done"] * 3


@one_database
def test_the_command_says_which_detector_failed_why_and_how_to_retry(
    store: Store, asks: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    endpoint = asks(refused)
    add(store)
    command = ("detect", JUDGE, "--all", "--store", store.url)
    assert main([*command]) == 1
    text = capsys.readouterr().out
    assert f"Judge: yes or no failed on all {MANY} traces: " in text
    retry = f"detect {JUDGE} --all --again failed"
    assert f"run `{retry}`" in text
    assert main([*command, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["status"], document["retry"]) == ("incomplete", retry)
    assert document["detectors"][JUDGE]["failed_on_all"] is True
    endpoint.script = scripted.sensible
    add(store, range(MANY, MANY + 2))
    assert main([*retry.split(), "--store", store.url, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["status"], document["retry"]) == ("done", None)
    assert (document["detectors"][JUDGE]["scored"], document["detectors"][JUDGE]["failed_on_all"]) == (MANY, False)
    assert main(["worker", "--store", store.url]) == 0
    assert main([*command, "--json"]) == 0  # the two new traces, which `--again failed` left alone
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["detectors"][JUDGE]["scored"] == 2


@one_database
def test_again_is_foretold_and_touches_nothing_else(store: Store, asks: Any, capsys: Any) -> None:
    endpoint = asks(lambda body: refused(body) if "Parcel 1 " in scripted.last(body) else scripted.sensible(body))
    add(store)
    assert run(store).counts[JUDGE]["failed"] == 1
    add(store, range(MANY, MANY + 3))
    sent = len(endpoint.asked)
    estimate = ("detect", JUDGE, "--all", "--again", "failed", "--estimate", "--store", store.url, "--json")
    assert main([*estimate]) == 0
    plan = json.loads(capsys.readouterr().out)["estimate"][JUDGE]
    assert (plan["traces"], plan["requests"], len(endpoint.asked)) == (1, 1, sent)
    endpoint.script = scripted.sensible
    finished = run(store, again=True)
    assert finished.status == "done"
    assert (finished.counts[JUDGE]["scored"], finished.counts[JUDGE]["reused"]) == (1, 0)
    assert len(endpoint.asked) == sent + 1


@one_database
def test_again_says_what_it_left_alone_and_why(store: Store, asks: Any, capsys: Any) -> None:
    asks(lambda body: refused(body) if "Parcel 1 " in scripted.last(body) else scripted.sensible(body))
    add(store)
    store.traces.add([Record(1, Trace("none", "No source."), ())], labels_as=None, now=NOW)
    run(store)
    add(store, range(MANY, MANY + 3))
    command = ["detect", JUDGE, "--all", "--again", "failed", "--store", store.url, "--json"]
    assert main(command) == 0
    (note,) = json.loads(capsys.readouterr().out)["notes"]
    assert note.startswith(f"{JUDGE}: 1 trace that had failed was done again; 3 traces have no score yet: ")
    assert f"`detect {JUDGE} --all` scores them; 1 that it could not judge" in note
    asks(scripted.sensible)  # at another address: nothing was ever asked there
    assert main(command) == 0
    (note,) = json.loads(capsys.readouterr().out)["notes"]
    assert "nothing was done again; the 1 that failed did so with revision " in note
    assert "kept apart; 10 traces have no score yet: " in note


# --------------------------------------------------------------------------------------------- what cannot run at all


def write_model(folder: Path, config: str, weights: str) -> str:
    folder.mkdir()
    if config:
        (folder / "config.json").write_text(config)
    if weights:
        (folder / weights).write_bytes(b"\0")
    return str(folder)


CANNOT_RUN = {
    "an empty directory": ("grounded", "", "", "model.safetensors or model.onnx should be there"),
    "a pickle": ("grounded", '{"id2label": {"0": "no", "1": "yes"}}', "pytorch_model.bin", "save them as model"),
    "a configuration that is no JSON": ("grounded", "{", "model.safetensors", "config.json cannot be read"),
    "a configuration that is a list": ("grounded_spans", "[]", "model.safetensors", "config.json is not a JSON object"),
    "another protocol": ("http", "", "", "one looks like http://localhost:9000/score"),
}  # fmt: skip


@one_database
@pytest.mark.parametrize(("name", "config", "weights", "says"), CANNOT_RUN.values(), ids=CANNOT_RUN)
def test_what_cannot_run_is_bad_input_and_leaves_nothing(
    store: Store, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch,
    name: str, config: str, weights: str, says: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("TOUCHSTONE_HTTP_URL", "ftp://x")
    model = write_model(tmp_path / "model", config, weights)
    add(store)
    command = ["detect", name, "--all", "--store", store.url]
    command += ["--param", f"model={model}"] if name != "http" else []
    assert main(command) == 2
    printed = capsys.readouterr()
    assert f"{name} cannot run: " in printed.err
    assert says in printed.err
    assert not printed.out
    assert not store.runs.recent()
    assert main([*command[:2], "word_overlap", *command[2:], "--json"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert (document["status"], document["retry"].split()[:2]) == ("incomplete", ["detect", name])
    assert "--again" not in document["retry"]
    assert document["detectors"]["word_overlap"]["scored"] == MANY
    idle = document["detectors"][name]
    assert says in idle["unavailable"]
    assert (idle["scored"], idle["abstained"], idle["failed"]) == (0, 0, 0)
    assert not store.scores.configs(name)


@one_database
def test_all_leaves_out_what_cannot_run_and_says_what_it_needs(store: Store, no_chat: None, capsys: Any) -> None:
    add(store, range(1))
    assert main(["detect", "all", "--all", "--store", store.url, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert "TOUCHSTONE_CHAT_URL" in document["unavailable"][JUDGE]
    assert JUDGE not in document["detectors"]


@one_database
def test_a_run_without_a_model_is_incomplete_for_the_page_too(store: Store, no_chat: None) -> None:
    add(store)
    specs = [{"name": JUDGE, "params": registry.config_of(registry.make(JUDGE))}]
    queued = store.runs.queue(specs, {"all": True}, now=NOW)  # as where another machine has the endpoint
    finished = detect.work(store, run_id=queued.id)
    assert finished is not None
    assert (finished.status, finished.done, finished.total) == ("incomplete", 0, 0)
    (failure,) = outcomes.failures(finished)
    assert sentences.failed(failure).startswith("Judge: yes or no cannot run: no chat endpoint is set; set TOUCHSTONE_")


# ------------------------------------------------------------------------------------------- replies that are no answer


@one_database
@pytest.mark.parametrize("again", [False, True])
def test_a_reply_that_cannot_be_read_is_asked_for_again(store: Store, asks: Any, again: bool) -> None:
    endpoint = asks(junk)
    add(store)
    first = run(store)
    assert first.status == "incomplete"
    assert next(iter(first.counts[JUDGE]["why"])).startswith("unparsed: ")
    assert len(endpoint.asked) == MANY
    endpoint.script = scripted.sensible
    second = run(store, again=again)
    assert (second.counts[JUDGE]["scored"], len(endpoint.asked)) == (MANY, 2 * MANY)
    assert run(store).counts[JUDGE]["reused"] == MANY
    assert len(endpoint.asked) == 2 * MANY  # what could be read is kept


@one_database
@pytest.mark.parametrize("again", [False, True])
def test_what_an_older_version_kept_unread_is_found_and_asked_for_again(store: Store, asks: Any, again: bool) -> None:
    """Stores of before hold the unparsed reply under the request's digest, and the failed score."""
    endpoint = asks(junk)
    add(store)
    run(store)
    detector: Any = registry.make(JUDGE)
    model = chat()
    for trace in store.traces.load(range(1, MANY + 1)):
        (request,) = detector.requests(trace)
        key = request.digest(model.model, endpoint.url)
        kept = {"choices": [["Well, it depends.", "stop", None]], "model": scripted.MODEL}
        store.replies.put(key, model.model, kept)
    estimate = model.estimate(detector.requests(store.traces.load([1])[0]))
    assert (estimate.requests, estimate.cached) == (1, 0)
    endpoint.script = scripted.sensible
    sent = len(endpoint.asked)
    assert run(store, again=again).counts[JUDGE]["scored"] == MANY
    assert len(endpoint.asked) == sent + MANY


@one_database
def test_a_real_models_unreadable_reply_is_asked_for_at_every_run_and_a_readable_one_once(
    llm_chat: Llm, store: Store
) -> None:
    add(store, range(2))
    store.files.save("prompts/judge_yes_no.txt", FEW_SHOT, by="ann", now=NOW)
    first = run(store).counts[JUDGE]
    sent = llm_chat.counts()["requests"]
    second = run(store).counts[JUDGE]
    assert llm_chat.counts()["requests"] - sent == first["failed"] == second["usage"]["requests"]
    wording = FEW_SHOT.replace("Reply YES or NO", "Reply with the number seven").replace("YES", "7").replace("NO", "7")
    store.files.save("prompts/judge_yes_no.txt", wording, by="ann", now=NOW)
    before = llm_chat.counts()["requests"]
    failed = run(store).counts[JUDGE]["failed"]
    again = run(store, again=True)
    assert failed == 2, "a judge that is told to say 7 says neither YES nor NO"
    assert again.status == "incomplete"
    assert llm_chat.counts()["requests"] - before == 2 * failed
