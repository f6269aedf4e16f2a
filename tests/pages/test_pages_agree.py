"""Every page opened on one store: a figure that stands on two pages is the same on both."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from calibrate.stats.choosing.policy import parse
from calibrate.types import Label, Record, Score, Source, Trace, TraceFilter
from calibrate.workflow.evidence import loading
from calibrate.workflow.evidence.traffic import counted_traffic
from calibrate.workflow.releasing import release as releasing
from calibrate.workflow.sampling import sample as sampling
from calibrate.workflow.tuning import operating_points
from db import Store, open_store
from db.releases import ReleaseRequest
from pages.shell import navigation

ROOT = Path(__file__).parents[2]
DETECTOR = "token_overlap"
POWERS = {DETECTOR: 1.4, "rouge_l": 2.5, "bleu": 0.3}  # all flag below; rouge_l ranks best and scores few
SAMPLE = "2026-W47"
LABELLED = re.compile(r"\d+ of \d+ labelled(?: · \d+ unsure)?(?: · \d+ disputed)?")
KNOWN = re.compile(r"Known now\s+(\d+%) \((\S+)%\)")
TRAFFIC = re.compile(r"about (\S+ \(\S+\)) of the traffic hallucinated")
ON_LABELS = ("week", "tune", "ensemble", "release", "watch")
# The tabs of Details on the Thresholds page, each opened as a page of its own.
DETAILS = ("scoreboard", "compare")
RANKING = ("tune", *DETAILS, "ensemble", "detectors", "agreement", "recalibrate")
Page = Mapping[str, Any]


def fill(store: Store, *, hallucinated: float) -> None:
    """400 traces, 100 of them drawn and labelled by two, who dispute some; a saved point, released. One trace of a
    model that is in no sample has a label of its own."""
    now = datetime.now(UTC)
    rng = np.random.default_rng(5)
    bad = rng.random(400) < hallucinated
    traces = [
        Trace(
            f"t{place}",
            answer=f"The refund is paid within {place} days. [1]",
            question="When is it paid?",
            sources=(Source("1", f"Refund {place}"),),
            timestamp=now - timedelta(minutes=40 * place),
            model="a" if place else "rare",
        )
        for place in range(400)
    ]
    store.traces.add([Record(line, trace, ()) for line, trace in enumerate(traces, 1)], labels_as=None, now=now)
    for name, power in POWERS.items():
        scores = np.clip(0.5 - (bad - 0.5) * 0.12 * power + rng.normal(0, 0.12, 400), 0, 1)
        config = store.scores.config(name, "1", {}, "", now=now)
        able = [name != "rouge_l" or place % 4 == 0 for place in range(400)]
        pairs = [
            (
                trace.content_hash(),
                Score(trace.id, round(float(v), 3)) if can else Score(trace.id, None, "short", "abstained"),
            )
            for trace, v, can in zip(traces, scores, able, strict=True)
        ]
        store.scores.save(config.id, pairs, now=now)
    before = now - timedelta(hours=2)
    where = TraceFilter(until=now - timedelta(minutes=1), models=("a",))
    drawn = sampling.draw(store, SAMPLE, size=100, design="octave", where=where, seed=3, now=before)
    for place, member in enumerate(store.samples.members(drawn.id)):
        verdict = "hallucinated" if bad[member.trace_pk - 1] else "clean"
        store.labels.add(member.trace_pk, Label("", "ann", verdict), sample_id=drawn.id, now=before)
        if place % 10 == 3:
            other = "clean" if verdict == "hallucinated" else "hallucinated"
            store.labels.add(member.trace_pk, Label("", "ben", other), sample_id=drawn.id, now=before)
        elif place % 20 == 5:
            store.labels.add(
                member.trace_pk, Label("", "lead", "unsure", adjudicates=True), sample_id=drawn.id, now=before
            )
    store.labels.add(1, Label("", "ann", "clean"), sample_id=None, now=before)
    data = loading.load_evidence(store, DETECTOR, sample=SAMPLE)
    point = operating_points.choose_point(data, parse("recall>=0.5"), pool=counted_traffic(store, data))
    operating_points.save_point(store, data, point, reason="to look at", by="ann", now=now)
    releasing.release(store, ReleaseRequest(by="ann"), now=now)


def open_pages(url: str, addresses: Sequence[str]) -> dict[str, Page]:
    """What every page shows, by its address: `text` is all there is to read, `tables` are its tables, `ways` the
    buttons and links."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOUCHSTONE_STORE", url)
        patch.setenv("TOUCHSTONE_USER", "robin")
        app = AppTest.from_file(str(ROOT / "pages" / "shell" / "workbench.py"), default_timeout=60).run()
        shown = {}
        for address in addresses or (*navigation._PAGES, *DETAILS):
            script, *_ = navigation._PAGES["tune" if address in DETAILS else address]
            app.query_params["policy"] = "recall>=0.5"  # that of the saved point, for Tune
            opened = {"watch": "models"}.get(address, "words")
            app.query_params["details"] = address if address in DETAILS else opened
            app.switch_page(str(ROOT / script)).run()
            assert not app.exception, (address, app.exception)
            tables = [table.value for table in app.dataframe]
            ways = [button.label for button in app.button] + [link.proto.label for link in app.get("page_link")]
            shown[address] = {"text": "\n".join(read(app)), "tables": tables, "ways": ways}
        return shown


def read(app: AppTest) -> Iterator[str]:
    for element in (*app.markdown, *app.caption, *app.warning, *app.info, *app.error):
        yield element.value.replace("\\", "").replace("**", "")
    for html in app.get("html"):
        yield re.sub(r"<style>.*?</style>|<[^>]+>", " ", html.proto.body, flags=re.S)
    for metric in app.metric:
        yield f"{metric.label} {metric.value} {metric.delta}"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Page]:
    return opened(tmp_path_factory, hallucinated=0.3)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Page]:
    """A store with fewer than five hallucinated labels."""
    return opened(tmp_path_factory, hallucinated=0.012, addresses=RANKING)


def opened(
    tmp_path_factory: pytest.TempPathFactory, *, hallucinated: float, addresses: Sequence[str] = ()
) -> dict[str, Page]:
    url = f"sqlite:///{tmp_path_factory.mktemp('agree') / 'store.db'}"
    store = open_store(url)
    fill(store, hallucinated=hallucinated)
    store.close()
    return open_pages(url, addresses)


def column(page: Page, name: str, *, of: str = DETECTOR) -> str:
    """The cell of this column in the row of a detector, in whichever table has both."""
    for table in page["tables"]:
        if name in table.columns:
            for _, row in table.iterrows():
                if of in (str(cell) for cell in row) or of.replace("_", " ").capitalize() in (
                    str(cell) for cell in row
                ):
                    return str(row[name])
    raise AssertionError(f"no table has {name} of {of}: {[list(table.columns) for table in page['tables']]}")


def test_labels_are_counted_alike_on_every_page(pages: dict[str, Page]) -> None:
    for address in ON_LABELS:
        assert set(LABELLED.findall(pages[address]["text"])) == {"100 of 100 labelled · 5 unsure · 10 disputed"}, (
            address
        )


def test_the_share_hallucinated_is_the_same_wherever_it_stands(pages: dict[str, Page]) -> None:
    shares = {address: set(TRAFFIC.findall(pages[address]["text"])) for address in ON_LABELS}
    assert len(set.union(*shares.values())) == 1, shares
    assert all(shares.values()), shares
    (share,) = shares["week"]
    assert column(pages["sample"], "Hallucinated", of=SAMPLE) == share
    assert column(pages["compare"], "Of traffic") == share


def test_what_is_open_is_said_alike_wherever_a_figure_stands(pages: dict[str, Page]) -> None:
    said = {
        re.search(r"5 unsure and 10 disputed are in no figure.*", pages[address]["text"]) for address in ON_LABELS[1:]
    }
    assert None not in said
    assert len({match[0] for match in said if match}) == 1


def test_one_way_leads_to_the_disputes(pages: dict[str, Page]) -> None:
    for address in ON_LABELS:
        assert pages[address]["ways"].count("Settle disputes") == 1, address


def test_an_area_is_the_same_on_every_page(pages: dict[str, Page]) -> None:
    areas = {
        "scoreboard": column(pages["scoreboard"], "AUROC"),
        "compare": column(pages["compare"], "AUROC"),
    }
    numbers = {address: round(float(re.findall(r"0\.\d+", text)[0]), 2) for address, text in areas.items()}
    assert len(set(numbers.values())) == 1, areas


def test_a_point_has_the_same_figures_on_every_page(pages: dict[str, Page]) -> None:
    (live,) = re.finditer(KNOWN, pages["week"]["text"])
    assert re.findall(KNOWN, pages["watch"]["text"]) == [live.groups()]
    assert f"{live[1]}  \n:gray[:small[{live[2]}" in pages["release"]["text"]
    figures = {"Precision": live[1], "Recall": f"{100 * float(column(pages['scoreboard'], 'Recall')):.0f}%"}
    for name, value in figures.items():
        assert f"{100 * float(column(pages['scoreboard'], name)):.0f}%" == value


def test_flags_a_day_are_the_same_on_every_page(pages: dict[str, Page]) -> None:
    """In Tune's figures, in its sentence, and in the row of the Release page, which shows bare figures."""
    tune, release = pages["tune"]["text"], pages["release"]["text"]
    (figure,) = re.findall(r"Flags a day\s+([\d.]+)", tune)
    (rounded,) = re.findall(r"about (\d+) a day", tune)
    assert int(rounded) == round(float(figure))
    assert [line for line in release.splitlines() if re.fullmatch(r"[\d.]+", line)] == [figure]


def test_a_list_said_to_be_sorted_is(pages: dict[str, Page]) -> None:
    table = next(table for table in pages["scoreboard"]["tables"] if "AUROC" in table.columns and len(table) > 1)
    areas = [float(re.findall(r"0\.\d+", str(cell))[0]) for cell in table["AUROC"]]
    assert areas == sorted(areas, reverse=True)


def test_no_page_ranks_by_fewer_than_five_hallucinated_labels(few: dict[str, Page]) -> None:
    for address, page in few.items():
        assert not re.search(r"AUROC[^.\n]{0,12}0\.\d", page["text"]), address
        for table in page["tables"]:
            if "AUROC" in table.columns:
                assert not any(re.search(r"0\.\d", str(cell)) for cell in table["AUROC"]), address


def test_a_label_outside_every_sample_is_told_from_none(pages: dict[str, Page]) -> None:
    """The one trace of the model `rare` has a gold verdict, and is in no sample."""
    models = next(table for table in pages["watch"]["tables"] if "Hallucinated" in table.columns)
    assert "is labelled yet" not in pages["watch"]["text"]
    assert set(models["Hallucinated"][models["Model"] == "rare"]) == {"not in these labels"}
