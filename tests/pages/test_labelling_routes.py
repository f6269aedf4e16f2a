"""The routes of the labelling surface: what comes next, what an answer does, and who may ask."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from calibrate import settings
from calibrate.types import Label, Member, Record, Source, Span, Trace, TraceFilter
from calibrate.workflow.labelling import assignment
from db import Store, open_store
from pages.components.labelling import routes
from pages.components.labels_line import sample_with_gap
from pages.shell import frame, gate
from tests.workflow.making import NOW

ANSWER = "Grill 👩‍👩‍👧 it [1]. שלום e\u0301 end."
OWN = {"origin": "http://localhost:8501"}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    monkeypatch.setenv("TOUCHSTONE_STORE", url)
    monkeypatch.delenv("TOUCHSTONE_USER", raising=False)
    store = open_store(url)
    traces = [
        Trace(f"t{n}", ANSWER, question=f"q{n}", sources=(Source("1", "s", None, 0.7),), model="secret")
        for n in range(4)
    ]
    store.traces.add([Record(n, trace, ()) for n, trace in enumerate(traces, 1)], labels_as=None, now=NOW)
    keys = [store.traces.find(trace.id) for trace in traces]
    store.samples.add(
        "w47", design="random", by=None, seed=1, pool=4, undated=0, where=TraceFilter(), strata={"all": (4, 4)},
        members=[Member(key, 1.0, "all") for key in keys[:3] if key is not None], now=NOW,
    )  # fmt: skip
    yield store
    store.close()
    frame._open.clear()  # type: ignore[attr-defined]


@pytest.fixture
def client(store: Store) -> TestClient:
    app = Starlette(routes=routes.routes(), middleware=gate.middleware())
    return TestClient(app, base_url="http://localhost:8501", client=("127.0.0.1", 50000), headers=OWN)


def body(**more: Any) -> dict[str, Any]:
    me = str(more.get("typed") or settings.read().user)
    return {"sample": "w47", "labeller": me, "typed": "", **more}


def ahead(client: TestClient, **more: Any) -> dict[str, Any]:
    response = client.post("/labelling/ahead", json=body(wanted=5, **more))
    assert response.status_code == 200, response.text
    return dict(response.json())


def answer(client: TestClient, pk: int, verdict: str = "clean", **more: Any) -> dict[str, Any]:
    response = client.post(
        "/labelling/answer",
        json=body(**{"turn": "t1", "pk": pk, "verdict": verdict, "seconds": 3.217, "seen": None, **more}),
    )
    assert response.status_code == 200, response.text
    return dict(response.json())


def test_what_comes_next_is_blind_in_order_and_not_what_the_browser_holds(store: Store, client: TestClient) -> None:
    reply = ahead(client, behind=True)
    first, second, third = reply["traces"]
    assert [trace["id"] for trace in (first, second, third)] == ["t0", "t1", "t2"]
    assert reply["place"] == {"size": 3, "labelled": 0, "left": 3, "skipped": 0, "seconds_each": None, "hint": ""}
    assert reply["behind"] == []
    assert "secret" not in str(first)
    assert "0.7" not in str(first)
    (start, end, numbers), *_ = first["cites"]
    assert (ANSWER[start:end], numbers) == ("[1]", ["1"])
    assert "".join(ANSWER[start:end] for start, end in first["sentences"]).replace(" ", "") == ANSWER.replace(" ", "")
    assert [trace["id"] for trace in ahead(client, held=[first["pk"], second["pk"]])["traces"]] == ["t2"]
    # Back: by key, with what stands; but no trace that is not of the sample.
    answer(client, first["pk"], "unsure")
    reply = ahead(client, pks=[first["pk"], store.traces.find("t3")], behind=True)
    assert [trace["standing"]["verdict"] for trace in reply["traces"]] == ["unsure"]
    assert reply["behind"] == [first["pk"]]


def test_a_split_sample_is_handed_out_once_and_counts_what_is_open(store: Store, client: TestClient) -> None:
    sample = store.samples.get("w47")
    assert sample is not None
    assignment.assign(store, sample, "split", overlap=0.0, by="lead", now=NOW)

    def hands_out(who: str, wanted: int) -> tuple[list[str], dict[str, Any]]:
        given = body(wanted=wanted, typed=who, labeller=who)
        reply = client.post("/labelling/ahead", json=given).json()
        return [trace["id"] for trace in reply["traces"]], reply["place"]

    ids, place = hands_out("ann", 2)
    assert (ids, place["size"], place["left"]) == (["t0", "t1"], 3, 3)
    ids, place = hands_out("bob", 5)
    assert (ids, place["size"], place["left"]) == (["t2"], 1, 1)
    assert hands_out("cleo", 5)[0] == []
    assert hands_out("ann", 2)[0] == ["t0", "t1"]


def test_an_answer_counts_once_with_its_spans(store: Store, client: TestClient) -> None:
    pk = ahead(client)["traces"][0]["pk"]
    start = ANSWER.index("שלום")
    given = {"spans": [[start, start + 4, "fabrication"]], "kinds": ["other"], "note": " why "}
    reply = answer(client, pk, "hallucinated", **given)
    assert (reply["turn"], reply["status"]) == ("t1", "saved")
    assert answer(client, pk, "hallucinated", **given) == reply, "sent again after a lost reply"
    (label,) = store.labels.of_trace(pk)
    assert (label.verdict, label.kinds, label.note, label.seconds, label.sample) == (
        "hallucinated", ("other", "fabrication"), "why", 3.217, "w47",
    )  # fmt: skip
    assert label.spans == (Span(start, start + 4, "fabrication"),)
    assert ANSWER[label.spans[0].start : label.spans[0].end] == "שלום"
    # A change of mind that has seen the label is a new row; the first one, sent once more by a slow tab, adds nothing.
    seen = reply["standing"]["key"]
    assert answer(client, pk, "clean", seen=seen, turn="t2")["status"] == "saved"
    assert answer(client, pk, "hallucinated", **given)["status"] == "saved"
    assert [label.verdict for label in store.labels.of_trace(pk)] == ["hallucinated", "clean"]


def test_a_label_of_another_tab_is_a_conflict_and_stays(store: Store, client: TestClient) -> None:
    pk = ahead(client)["traces"][0]["pk"]
    answer(client, pk, "clean", turn="tab one")
    reply = answer(client, pk, "hallucinated", turn="tab two", seconds=9.5)
    assert (reply["status"], reply["standing"]["verdict"]) == ("conflict", "clean")
    assert [label.verdict for label in store.labels.of_trace(pk)] == ["clean"]
    # Another person's label is no conflict, and nobody sees it.
    store.labels.add(pk, Label("t0", "bea", "unsure"), sample_id=None, now=NOW)
    assert answer(client, pk, "hallucinated", seen=reply["standing"]["key"], turn="mine")["status"] == "saved"


def test_a_flag_says_nothing_of_the_verdict(store: Store, client: TestClient) -> None:
    pk = ahead(client)["traces"][0]["pk"]
    assert answer(client, pk, "flag", note="look here")["status"] == "saved"
    first = ahead(client)["traces"][0]
    assert (first["pk"], first["flag"]) == (pk, "look here")
    assert store.labels.of_trace(pk) == []


def test_a_skipped_trace_comes_last(store: Store, client: TestClient) -> None:
    pk = ahead(client)["traces"][0]["pk"]
    assert answer(client, pk, "skip")["status"] == "saved"
    assert [trace["id"] for trace in ahead(client)["traces"]] == ["t1", "t2", "t0"]
    for pk in (store.traces.find("t1"), store.traces.find("t2")):
        answer(client, pk or 0, turn=f"t{pk}")
    reply = ahead(client)
    assert ([trace["id"] for trace in reply["traces"]], reply["place"]["hint"]) == (
        ["t0"],
        "the 1 you skipped, once more",
    )


def test_the_link_to_a_gap_leads_to_the_trace_that_holds_back_labels(store: Store, client: TestClient) -> None:
    first, second, third = (store.traces.find(f"t{n}") or 0 for n in range(3))
    assert sample_with_gap(store, ("w47",)) is None
    for pk in (first, third):
        store.labels.add(pk, Label("", "file", "clean"), sample_id=None, now=NOW)
    assert sample_with_gap(store, ("w47",)) == "w47"
    assert sample_with_gap(store, ()) == "w47"
    assert [trace["pk"] for trace in ahead(client)["traces"]] == [first, second, third]
    reply = ahead(client, gap_first=True)
    assert (reply["traces"][0]["pk"], reply["place"]["hint"]) == (second, "1 skipped trace holds back 1 label")
    answer(client, second)
    reply = ahead(client, gap_first=True)
    assert (reply["traces"][0]["pk"], reply["place"]["hint"]) == (first, ""), "then the queue as ever"


def test_a_dispute_is_decided_once_for_all(store: Store, client: TestClient) -> None:
    pk = store.traces.find("t1") or 0
    for who, verdict, note in (("ann", "clean", None), ("bob", "hallucinated", "<b>why</b>")):
        store.labels.add(pk, Label("t1", who, verdict, note=note, spans=()), sample_id=None, now=NOW)  # type: ignore[arg-type]

    def post(path: str, **more: Any) -> dict[str, Any]:
        given = {**body(), "sample": None, "seen": None, "turn": "t", "seconds": 2.0, **more}
        return dict(client.post(f"/labelling/disputes/{path}", json=given).json())

    reply = post("ahead", wanted=5, behind=True)
    (trace,) = reply["traces"]
    assert (trace["id"], trace["standing"], reply["behind"]) == ("t1", None, [])
    said = [(voice["who"], voice["verdict"], voice["note"]) for voice in trace["voices"]]
    assert said == [("ann", "clean", ""), ("bob", "hallucinated", "<b>why</b>")]
    assert (reply["place"]["size"], reply["place"]["labelled"]) == (1, 0)
    assert "has no trace" in post("answer", pk=store.traces.find("t0"), verdict="clean")["error"]
    decided = post("answer", pk=pk, verdict="clean", note="source 1", typed="lead", labeller="lead")
    assert decided["status"] == "saved"
    assert post("answer", pk=pk, verdict="clean", note="source 1", typed="lead", labeller="lead") == decided
    assert store.labels.gold_counts() == {"clean": 1}
    # Somebody else who has not seen that decision does not overrule it.
    late = post("answer", pk=pk, verdict="hallucinated")
    assert (late["status"], late["standing"]["verdict"], late["standing"]["who"]) == ("conflict", "clean", "lead")
    assert post("answer", pk=pk, verdict="hallucinated", seen=late["standing"]["key"])["status"] == "saved"
    assert store.labels.gold_counts() == {"hallucinated": 1}
    assert [entry.verb for entry in store.audit.entries()].count("dispute settled") == 2
    place = post("ahead", wanted=5)["place"]
    assert (place["labelled"], place["left"]) == (1, 0)


def test_a_second_look_is_at_the_chosen_labels_in_their_order(store: Store, client: TestClient) -> None:
    keys = [store.traces.find(name) or 0 for name in ("t2", "t0", "t1")]
    for pk in keys:
        store.labels.add(pk, Label("", "ann", "clean"), sample_id=None, now=NOW)

    def post(path: str, **more: Any) -> dict[str, Any]:
        given = {**body(), "sample": None, "chosen": keys[:2], "seen": None, "turn": "t", "seconds": 2.0, **more}
        return dict(client.post(f"/labelling/disputes/{path}", json=given).json())

    reply = post("ahead", wanted=5)
    assert [trace["id"] for trace in reply["traces"]] == ["t2", "t0"]
    assert [voice["who"] for voice in reply["traces"][0]["voices"]] == ["ann"]
    assert post("answer", pk=keys[0], verdict="hallucinated")["status"] == "saved"
    reply = post("ahead", wanted=5, behind=True)
    assert ([trace["id"] for trace in reply["traces"]], reply["behind"]) == (["t0"], [keys[0]])
    assert (reply["place"]["size"], reply["place"]["labelled"]) == (2, 1)
    assert store.labels.gold_counts() == {"clean": 2, "hallucinated": 1}
    # What an earlier choice left unsent is of a labelled trace all the same.
    assert post("answer", pk=keys[2], verdict="hallucinated")["status"] == "saved"


def test_labels_of_chosen_traces_belong_to_no_sample(store: Store, client: TestClient) -> None:
    keys = [store.traces.find(name) for name in ("t3", "t0")]

    def post(path: str, **more: Any) -> dict[str, Any]:
        given = {**body(), "chosen": keys, "seen": None, "turn": "t", "seconds": 2.0, **more}
        return dict(client.post(f"/labelling/traces/{path}", json=given).json())

    assert [trace["id"] for trace in post("ahead", wanted=5)["traces"]] == ["t3", "t0"]
    assert post("answer", pk=keys[0], verdict="clean")["status"] == "saved"
    assert "has no trace" in post("answer", pk=store.traces.find("t1"), verdict="clean")["error"]
    (label,) = store.labels.of_trace(keys[0] or 0)
    assert label.sample is None
    reply = post("ahead", wanted=5, behind=True)
    assert ([trace["id"] for trace in reply["traces"]], reply["behind"]) == (["t0"], [keys[0]])
    # Opened again: the label is shown to whoever gave it, and may be changed.
    (standing,) = store.answers.standing([keys[0] or 0], settings.read().user).values()
    first, _ = post("ahead", wanted=5, since=standing.key)["traces"]
    assert (first["id"], first["standing"]["verdict"]) == ("t3", "clean")
    assert post("answer", pk=keys[0], verdict="unsure", seen=standing.key, since=standing.key)["status"] == "saved"
    assert [trace["id"] for trace in post("ahead", wanted=5, since=standing.key)["traces"]] == ["t0"]
    assert "whole number" in post("ahead", wanted=5, since="1")["error"]


def test_a_session_learns_what_its_labels_did(store: Store, client: TestClient) -> None:
    def known(folder: str = "", **more: Any) -> Any:
        reply = client.post(f"/labelling/{folder}ahead", json=body(wanted=5, behind=True, **more)).json()
        return reply.get("known", "not said")

    assert known() == "", "nothing is labelled yet"
    keys = [trace["pk"] for trace in ahead(client)["traces"]]
    for pk, verdict in zip(keys, ("hallucinated", "clean", "clean"), strict=True):
        answer(client, pk, verdict)
    assert re.fullmatch(r"33% \(\d+–\d+%\)", known())
    assert known() == known("disputes/"), "deciding does to it what labelling does"
    assert known("traces/", chosen=keys) is None, "these labels stand for no traffic"
    assert "known" not in client.post("/labelling/ahead", json=body(wanted=5)).json(), "not with every fetch"
    store.samples.add(
        "picked", design="flagged-only", by=None, seed=1, pool=3, undated=0, where=TraceFilter(),
        strata={"all": (3, 3)}, members=[Member(pk, 1.0, "all") for pk in keys], now=NOW,
    )  # fmt: skip
    assert known(sample="picked") is None


def test_only_who_may_open_its_page_does_a_kind_of_work(
    client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = tmp_path / "team.toml"
    team.write_text(f"[labeller]\nusers = ['{settings.read().user}']\n")
    monkeypatch.setenv("TOUCHSTONE_ROLES", str(team))
    for kind, status in (("disputes", 403), ("recheck", 403), ("traces", 200)):
        given = body(wanted=1, chosen=[])
        assert client.post(f"/labelling/{kind}/ahead", json=given).status_code == status, kind


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"verdict": "wrong"}, "a verdict is one of"),
        ({"pk": 999}, "has no trace 999"),
        ({"pk": True}, "pk cannot be"),
        ({"sample": "none"}, "no sample 'none'"),
        ({"verdict": "hallucinated", "spans": [[0, 999, None]]}, "within the answer"),
        ({"verdict": "hallucinated", "spans": [[3, 3, None]]}, "within the answer"),
        ({"verdict": "hallucinated", "kinds": ["<script>"]}, "no kind of error"),
        ({"note": "x" * 2001}, "at most 2000"),
        ({"seconds": "long"}, "seconds"),
        ({"verdict": "hallucinated", "spans": 5}, "spans are a list"),
        ({"verdict": "hallucinated", "spans": {"a": 1}}, "spans are a list"),
        ({"seen": 0}, "seen cannot be"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(client: TestClient, more: dict[str, Any], words: str) -> None:
    pk = ahead(client)["traces"][0]["pk"]
    given = body(**{"turn": "t", "pk": pk, "verdict": "clean", "seconds": 1.0, "seen": None, **more})
    response = client.post("/labelling/answer", json=given)
    assert response.status_code == 400
    assert words in response.json()["error"]


@pytest.mark.parametrize("sent", [b'{"sample": "\\ud800"}', b'{"chosen": [1000000000000000000000000000000]}', b"[1]"])
def test_a_body_that_no_store_takes_is_refused(client: TestClient, sent: bytes) -> None:
    given = {**body(), **json.loads(sent)} if sent.startswith(b"{") else None
    content = json.dumps(given).encode() if given else sent
    headers = {"content-type": "application/json"}
    response = client.post("/labelling/traces/ahead", content=content, headers=headers)
    assert response.status_code == 400, response.text


def test_another_page_gets_nothing(store: Store, client: TestClient) -> None:
    pk = ahead(client)["traces"][0]["pk"]
    given = body(turn="t", pk=pk, verdict="clean", seconds=1.0, seen=None)
    for headers in ({"origin": "https://evil.example"}, {"origin": "null"}, {"origin": ""}, {"origin": "http://[bad"}):
        assert client.post("/labelling/answer", json=given, headers=headers).status_code == 403
    plain = {"content-type": "text/plain"}  # what a form may send without asking
    assert client.post("/labelling/answer", content='{"a": 1}', headers=plain).status_code == 403
    assert client.get("/labelling/ahead").status_code == 405
    assert client.options("/labelling/answer").status_code == 405
    assert client.post("/labelling/answer", json=given, headers={"host": "evil.example"}).status_code == 403
    bare = TestClient(client.app, base_url="http://localhost:8501", client=("127.0.0.1", 50000))
    assert bare.post("/labelling/answer", json=given).status_code == 403
    assert store.labels.of_trace(pk) == []


def test_the_person_is_who_the_pages_say(
    store: Store, client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pk = ahead(client)["traces"][0]["pk"]
    # A name that was typed, as on the page; what another left unsent is not sent under it.
    given = {"turn": "t", "pk": pk, "verdict": "clean", "seconds": 1.0, "seen": None}
    assert answer(client, pk, typed="ann", labeller="ann")["status"] == "saved"
    assert client.post("/labelling/answer", json=body(**given, labeller="ann")).status_code == 403
    # With roles a typed name is nobody's, and who has no role for the page is refused and noted.
    team = tmp_path / "team.toml"
    team.write_text("[labeller]\nusers = ['somebody else']\n")
    monkeypatch.setenv("TOUCHSTONE_ROLES", str(team))
    response = client.post("/labelling/answer", json=body(**given, typed="somebody else", labeller="somebody else"))
    assert response.status_code == 403
    response = client.post("/labelling/answer", json=body(**given))
    assert response.status_code == 403
    assert "not open to their role" in response.json()["error"]
    assert store.audit.entries()[0].verb == "refused"
    team.write_text(f"[labeller]\nusers = ['{settings.read().user}']\n")
    assert client.post("/labelling/answer", json=body(**given)).status_code == 200
    # A proxy's header counts from the proxy alone.
    monkeypatch.delenv("TOUCHSTONE_ROLES")
    monkeypatch.setenv("TOUCHSTONE_USER_HEADER", "X-Forwarded-User")
    monkeypatch.setenv("TOUCHSTONE_TRUSTED_PROXIES", "10.0.0.7")
    response = client.post("/labelling/answer", json=body(**given), headers={"X-Forwarded-User": "ada"})
    assert response.status_code == 401


def test_only_the_scripts_of_the_surface_are_served(client: TestClient) -> None:
    response = client.get(f"/labelling/surface/{routes.digest()}/queue.js")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/javascript")
    for name in ("package.json", "..%2froutes.py", "none.js"):
        assert client.get(f"/labelling/surface/{routes.digest()}/{name}").status_code == 404
    assert client.get("/labelling/surface/0/queue.js").status_code == 404
