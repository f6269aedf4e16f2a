"""A labeller is blind: whatever detectors, other people or gold say of a trace, the browser is sent the same."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from calibrate import settings
from calibrate.types import Evidence, Label, Member, Record, Score, Source, Span, Trace, TraceFilter
from calibrate.workflow.labelling import flags, repeats
from calibrate.workflow.releasing import release as releasing
from db import Store, audit, open_store
from db.decisions import StoredDecision
from db.releases import ReleaseRequest
from pages.components.labelling import routes
from pages.shell import frame, gate, navigation, roles
from pages.traces.trace_list import routes as list_routes
from tests.workflow.making import DETECTOR, save

ROOT = Path(__file__).resolve().parents[2]
ME = settings.read({}).user
OWN = {"origin": "http://localhost:8501"}
NOW = datetime.now(UTC).replace(microsecond=0)
SIZE, MINE, OPENED = 40, 25, 30
# What no labeller is sent. A calibrator is sent every one of them, or this test would see nothing.
SECRETS = {
    "a score": "0.243",
    "the reason of a detector": "reason-of-a-detector",
    "evidence": "evidence-of-a-detector",
    "a decision of production": "reason-of-a-decision",
    "the name of another": "zoe-the-other",
    "the note of another": "note-of-another",
    "the kind of another": "kindofanother",
    "gold": "Gold: ",
    "a share hallucinated": "of the traffic hallucinated",
    "a precision": "Promised precision",
    "the model": "secret-model",
    "an attribute": "secret-attribute",
    "a retrieval score": "retrieval score 0.424",
}


def score_of(place: int) -> float:
    return round((0.213 if is_bad(place) else 0.713) + place / 1000, 3)


def is_bad(place: int) -> bool:
    return place % 2 == 0


def fill(store: Store, turn: int) -> None:
    """Traces that I and two others labelled, with scores, a live release and what it decided. What others and detectors
    say of a trace is what they say of the trace `turn` places later in a store that is not turned."""
    names = [f"t{n}" for n in range(SIZE)]
    traces = [
        Trace(
            name, f"Answer of {name} [1].", question=f"Question of {name}?",
            sources=(Source("1", f"Source of {name}.", None, 0.4242),), timestamp=NOW - timedelta(days=n % 20),
            model="secret-model", attributes={"truth": "secret-attribute"},
        )
        for n, name in enumerate(names)
    ]  # fmt: skip
    store.traces.add([Record(n, trace, ()) for n, trace in enumerate(traces, 1)], labels_as=None, now=NOW)
    keys = [store.traces.find(name) or 0 for name in names]
    sample = store.samples.add(
        "w47", design="random", by=None, seed=1, pool=SIZE, undated=0, where=TraceFilter(),
        strata={"all": (SIZE, SIZE)}, members=[Member(key, 1.0, "all") for key in keys], now=NOW,
    )  # fmt: skip
    for n in range(MINE):
        label = Label(names[n], ME, "clean", note="my own note", seconds=9.0)
        store.labels.add(keys[n], label, sample_id=sample.id, now=NOW)
    places = [(n + turn) % SIZE for n in range(SIZE)]
    for key, name, place in zip(keys, names, places, strict=True):
        for who, says_bad in (("zoe-the-other", is_bad(place)), ("max-the-other", is_bad(place) and place % 5 != 0)):
            kinds, spans = (("kindofanother",), (Span(0, 6, None),)) if says_bad else ((), ())
            verdict: Any = "hallucinated" if says_bad else "clean"
            label = Label(name, who, verdict, kinds=kinds, spans=spans, note="note-of-another", seconds=9.0)
            store.labels.add(key, label, sample_id=sample.id, now=NOW)
    for n in (OPENED, MINE):
        flags.raise_flag(store, keys[n], "zoe-the-other", note="note-of-another", sample=sample, now=NOW)
    config = store.scores.config(DETECTOR, "1", {"variant": "default"}, "", now=NOW)
    evidence = (Evidence(text="evidence-of-a-detector", start=0, end=6, value=0.5),)
    scores = [
        Score(trace.id, score_of(place), "reason-of-a-detector", evidence=evidence)
        for trace, place in zip(traces, places, strict=True)
    ]
    pairs = [(trace.content_hash(), score) for trace, score in zip(traces, scores, strict=True)]
    store.scores.save(config.id, pairs, now=NOW)
    save(store, "manual:0.55", sample="w47")
    releasing.release(store, ReleaseRequest(by="cal", reason="a test"), now=NOW)
    why = ("reason-of-a-decision",)
    store.decisions.keep(
        [
            StoredDecision(
                key, 1, "REVIEW" if is_bad(place) else "ACCEPT", "signal" if is_bad(place) else "off",
                (DETECTOR,) if is_bad(place) else (), why, {DETECTOR: score_of(place)}, NOW,
            )
            for key, place in zip(keys, places, strict=True)
        ]
    )  # fmt: skip


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Store]]:
    """Two stores that differ in what others, detectors and gold say of each trace, and in nothing that is a labeller's
    to see: how many traces are labelled, disputed and unsure is the same."""
    stores = []
    for turn in (0, 1):
        store = open_store(f"sqlite:///{tmp_path_factory.mktemp('world') / 'store.db'}")
        fill(store, turn)
        stores.append(store)
    yield stores[0], stores[1]
    for store in stores:
        store.close()
    frame._open.clear()  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def nobody() -> Iterator[None]:
    yield
    audit.identify_by(lambda: None)


@pytest.fixture
def take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Take a store and a role."""

    def taking(store: Store, role: str) -> None:
        team = tmp_path / "team.toml"
        team.write_text(f'[{role}]\nusers = ["{ME}"]\n')
        monkeypatch.setenv("TOUCHSTONE_STORE", store.url)
        monkeypatch.setenv("TOUCHSTONE_ROLES", str(team))
        monkeypatch.delenv("TOUCHSTONE_USER", raising=False)

    return taking


def client() -> TestClient:
    every = [*routes.routes(), *list_routes.routes()]
    app = Starlette(routes=every, middleware=gate.middleware())
    return TestClient(app, base_url="http://localhost:8501", client=("127.0.0.1", 50000), headers=OWN)


def page(key: str, **address: str) -> list[Any]:
    """Everything that a session is sent that opens a page at this address."""
    script, *_ = next(tabs[key] for tabs in navigation.SECTIONS.values() if key in tabs)
    session = AppTest.from_file(str(ROOT / "pages" / "shell" / "workbench.py"), default_timeout=60)
    session.run()
    session.query_params.update(address)
    session.switch_page(f"../{script.removeprefix('pages/')}").run()
    assert not session.exception
    protos = (vars(node).get("proto") for node in session._tree)
    return [proto for proto in protos if hasattr(proto, "SerializeToString")]


def as_bytes(sent: list[Any]) -> str:
    return b"\n".join(proto.SerializeToString() for proto in sent).decode("latin-1")


def without_the_store(sent: list[Any], store: Store) -> str:
    """What is not of the store's address, and not the number of its last write."""
    text = "\n".join(map(str, sent)).replace(store.url, "")
    return re.sub(r"scope\W+[0-9a-f]{16}|\b(traces|labels|scores)\W+\d{9,}", "", text)


ADDRESSES: list[tuple[str, dict[str, str]]] = [
    ("week", {}),
    ("traces", {}),
    ("traces", {"trace": f"t{OPENED}"}),
    ("traces", {"trace": "t3", "label": "disputed", "sort": "suspicious", "low": "0.2", "detector": DETECTOR}),
    ("traces", {"trace": f"t{OPENED}", "labelling": f"t{OPENED}"}),
    ("label", {}),
    ("label", {"sample": "w47", "gap": "first"}),
    ("guidelines", {}),
]


def secrets_in(sent: str) -> list[str]:
    """Which secrets it holds; numbers also as a table holds them."""
    packed = {
        what: struct.pack("<d", float(secret)).decode("latin-1")
        for what, secret in SECRETS.items()
        if re.fullmatch(r"0\.\d+", secret)
    }
    return [what for what, secret in SECRETS.items() if secret in sent or packed.get(what, secret) in sent]


def test_every_page_of_a_labeller_is_tried() -> None:
    assert {key for key, _ in ADDRESSES} == roles.PAGES["labeller"]


@pytest.mark.parametrize(("key", "address"), ADDRESSES)
def test_no_page_tells_a_labeller_what_others_say(
    worlds: tuple[Store, Store], take: Any, key: str, address: dict[str, str]
) -> None:
    sent = []
    for store in worlds:
        take(store, "labeller")
        protos = page(key, **address)
        assert secrets_in(as_bytes(protos)) == []
        sent.append(without_the_store(protos, store))
    assert sent[0] == sent[1]


def test_no_page_counts_the_disputes_for_a_labeller(worlds: tuple[Store, Store], take: Any) -> None:
    """A label that makes them one more, or does not, would tell what another said."""
    words = f"{worlds[0].labels.gold_counts()['disputed']} disputed"
    for role in ("labeller", "calibrator"):
        take(worlds[0], role)
        assert any(words in as_bytes(page(key, **address)) for key, address in ADDRESSES) == (role == "calibrator")


def test_a_labeller_with_labels_left_is_led_to_them(worlds: tuple[Store, Store], take: Any) -> None:
    """Disputes come first for the team, and are not theirs."""
    for role, words in (("labeller", "Label what is left of w47"), ("calibrator", "are disputed")):
        take(worlds[0], role)
        session = AppTest.from_file(str(ROOT / "pages" / "shell" / "workbench.py"), default_timeout=60).run()
        assert words in " ".join(markdown.value for markdown in session.markdown)
        (button,) = [button for button in session.button if button.proto.type == "primary"]
        assert (button.label, button.disabled) == ("Label" if role == "labeller" else "Settle disputes", False)


def test_a_calibrator_is_told(worlds: tuple[Store, Store], take: Any) -> None:
    """What the tests above look for is there to be seen."""
    take(worlds[0], "calibrator")
    told = [secrets_in(as_bytes(page(key, **address))) for key, address in ADDRESSES]
    assert {secret for each in told for secret in each} == set(SECRETS)
    assert '"known": "' in ask("/labelling/ahead")[1]
    turned = []
    for store in worlds:
        take(store, "calibrator")
        turned.append(without_the_store(page("traces", trace=f"t{OPENED}"), store))
    assert turned[0] != turned[1]


def ask(path: str, **body: Any) -> tuple[int, str]:
    given = {"sample": "w47", "labeller": ME, "typed": "", "wanted": 20, "behind": True, "seconds": 3.0, "seen": None}
    response = client().post(path, json={**given, **body})
    return response.status_code, response.text


def asked(kind: str, key: int) -> list[tuple[int, str]]:
    """What the routes of a kind of work reply: what comes, going back, and every answer."""
    at = "/" + routes.folder(kind)
    more: dict[str, Any] = {"chosen": [key, key + 1]}
    return [
        ask(f"{at}ahead", **more),
        ask(f"{at}ahead", pks=[key], **more),
        ask(f"{at}answer", pk=key, verdict="flag", note="mine", turn="1", **more),
        ask(f"{at}answer", pk=key, verdict="flag", note=None, turn="2", **more),
        ask(f"{at}answer", pk=key, verdict="unsure", turn="3", **more),
        ask(f"{at}answer", pk=key, verdict="clean", turn="4", **more),  # a conflict, with my own label
        ask(f"{at}ahead", **more),
    ]


@pytest.mark.parametrize("kind", list(routes.PAGES))
def test_no_route_tells_a_labeller_what_others_say(worlds: tuple[Store, Store], take: Any, kind: str) -> None:
    replies = []
    for store in worlds:
        take(store, "labeller")
        key = store.traces.find(f"t{OPENED if kind == 'sample' else OPENED + 5}") or 0
        replies.append(asked(kind, key))
        assert [secrets_in(text) for _, text in replies[-1]] == [[]] * 7
        assert {status for status, _ in replies[-1]} == {200 if kind in ("sample", "traces") else 403}
        assert not any('"known"' in text for _, text in replies[-1]), "what the labels tell of the traffic"
    assert replies[0] == replies[1]


VIEWS: list[dict[str, Any]] = [
    {"order": "newest", "band": None, "where": {}},
    {"order": "newest", "band": None, "where": {"label": "hallucinated"}},
    {"order": "newest", "band": None, "where": {"label": "disputed"}},
    {"order": "lowest", "band": {"config": 1, "low": None, "high": None}, "where": {}},
    {"order": "newest", "band": {"config": 1, "low": 0.2, "high": 0.5}, "where": {}},
    {"order": "newest", "band": None, "where": {"models": ["secret-model"]}},
    {"order": "newest", "band": None, "where": {"attributes": {"truth": "secret-attribute"}}},
]


@pytest.mark.parametrize("view", VIEWS)
def test_the_list_of_traces_tells_a_labeller_nothing(worlds: tuple[Store, Store], take: Any, view: Any) -> None:
    """A forged request that filters or sorts by what is hidden learns nothing either."""
    replies = []
    for role in ("labeller", "calibrator"):
        for store in worlds:
            take(store, role)
            replies.append(ask("/traces-list", view=view, limit=100))
    (status, text), other, *calibrators = replies
    assert status == 200
    assert secrets_in(text) == []
    assert (status, text) == other
    if view["where"].get("label") or view["band"]:
        assert calibrators[0] != calibrators[1], "the two stores do not differ in this"


def test_a_hidden_repeat_looks_like_a_new_trace(
    worlds: tuple[Store, Store], take: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeats, "SHARE", 1.0)
    store = worlds[0]
    take(store, "labeller")
    response = client().post("/labelling/ahead", json={"sample": "w47", "labeller": ME, "typed": "", "wanted": 5})
    *new, again = response.json()["traces"]
    assert again["id"] == "t0", "I labelled it first, and it comes again"
    assert {trace["id"] for trace in new}.isdisjoint(f"t{n}" for n in range(MINE))
    assert [(set(trace), trace["standing"], trace["flag"]) for trace in new] == [(set(again), None, None)] * len(new)
    assert "my own note" not in response.text


def test_what_a_recheck_has_drawn_is_not_for_a_labeller(worlds: tuple[Store, Store], take: Any) -> None:
    """Its traces are there because a threshold flags them."""
    store = worlds[1]
    key, plan = store.traces.find("t0") or 0, {"target": 0.5, "alpha": 0.05}
    sample = store.samples.add(
        "drawn-by-a-recheck", design="flagged", by=DETECTOR, seed=1, pool=1, undated=0, where=TraceFilter(),
        strata={"all": (1, 1)}, members=[Member(key, 1.0, "all")], now=NOW,
    )  # fmt: skip
    store.rechecks.begin(detector=DETECTOR, version=1, config_id=1, sample_id=sample.id, plan=plan, by="cal", now=NOW)
    for role, status in (("labeller", 403), ("calibrator", 200)):
        take(store, role)
        assert ask("/labelling/ahead", sample=sample.name)[0] == status
        assert (sample.name in as_bytes(page("label"))) == (role == "calibrator")
    take(store, "labeller")
    assert ask("/labelling/answer", sample=sample.name, pk=key, verdict="clean", turn="1")[0] == 403
