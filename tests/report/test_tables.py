"""A column is written in one way wherever it stands, and read back from a file as it was."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from datetime import timedelta

import pytest

from calibrate.report.tables import compare, drift, ensembles, scoreboard
from calibrate.report.tables.column import Column, Form, as_csv, cells, record, right
from calibrate.stats.sweep.sweep import sweep
from calibrate.types import Interval, SavedEnsemble
from calibrate.workflow.tuning.compare import Series
from tests.db.make import NOW, ensemble


@dataclass(frozen=True)
class Thing:
    name: str
    value: object


NAME = Column[Thing]("name", "Name", lambda row: row.name)


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        (Form.TEXT, "≥ 0.5", "≥ 0.5"), (Form.TEXT, None, "–"), (Form.TEXT, "", "–"), (Form.COUNT, 1204, "1,204"),
        (Form.COUNT, 0, "0"), (Form.SHARE, 0.05, "5%"), (Form.DIGITS, 12.4, "12"), (Form.AMOUNT, 0.4, "0.40"),
        (Form.FLAG, True, "yes"), (Form.FLAG, False, "no"), (Form.P_VALUE, 0.03, "0.030"),
        (Form.P_VALUE, float("nan"), "–"),
        (Form.FIGURE, Interval(0.94, 0.911, 0.958), "0.94 (0.91–0.96)"), (Form.FIGURE, Interval(None), "–"),
        (Form.FIGURE, Interval(0.94), "0.94 (unknown)"),
        (Form.SHARE_FIGURE, Interval(0.71, 0.58, 0.81), "71% (58–81%)"),
    ],
)  # fmt: skip
def test_a_cell_is_written_by_its_form(form: Form, value: object, text: str) -> None:
    column = Column[Thing]("value", "Value", lambda row: row.value, form)
    assert cells((NAME, column), [Thing("a", value)]) == [("Name", "Value"), ("a", text)]
    assert right((NAME, column)) == ([] if form in (Form.TEXT, Form.FLAG) else [1])


def test_a_figure_takes_three_keys_and_its_bounds_stand_alone() -> None:
    column = Column[Thing]("auroc", "AUROC", lambda row: row.value, Form.FIGURE)
    row = Thing("a", Interval(0.94, 0.911, 0.958))
    assert record((NAME, column), row) == {"name": "a", "auroc": 0.94, "auroc_low": 0.911, "auroc_high": 0.958}
    assert column.bounds(row) == "0.91–0.96"
    assert record((column,), Thing("a", None)) == {"auroc": None, "auroc_low": None, "auroc_high": None}
    assert column.bounds(Thing("a", None)) is None


def test_a_file_reads_back_and_runs_nothing() -> None:
    column = Column[Thing]("share", "Share", lambda row: row.value, Form.SHARE)
    text = as_csv((NAME, column), [Thing("=1+1", 0.123456), Thing("b", None)])
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [float(rows[0]["share"]), rows[1]["share"]] == [0.123456, ""]
    assert not rows[0]["name"].startswith("=")
    assert as_csv((NAME, column), []) == "name\r\n"


def test_a_figure_has_the_decimals_of_its_column() -> None:
    column = Column[Thing]("auroc", "AUROC", lambda row: row.value, Form.FIGURE, places=3)
    row = Thing("a", Interval(0.94, 0.9114, 0.958))
    assert (column.text(row), column.bounds(row)) == ("0.940 (0.911–0.958)", "0.911–0.958")


def test_a_curve_is_shown_with_its_figures_on_one_line() -> None:
    curve = sweep([True, True, False, False], [0.9, 0.4, 0.6, None], flag_when="above")
    area = Interval(0.5, 0.1, 0.9)
    head, row = cells(compare.COLUMNS, [Series("a\nb\x1b", curve, area, Interval(None), area)])
    assert head[1:] == ("AUROC", "Average precision", "Labels", "Hallucinated", "Of traffic", "Coverage")
    assert row == ("a b⟦ESC⟧", "0.500 (0.100–0.900)", "–", "4", "2", "50% (10–90%)", "75%")


def test_saved_ensembles_are_shown_by_what_they_are_called() -> None:
    rows = [
        SavedEnsemble(1, "both\x1b", ensemble(), "ann", NOW - timedelta(days=3)),
        SavedEnsemble(2, "old", ensemble(kind="any", sentence=""), "bob", NOW),
    ]
    head, both, old = cells(ensembles.on_page(NOW), rows)
    assert head == ("Name", "Kind", "Detectors", "What was known", "By", "When")
    assert both == ("both⟦ESC⟧", "At least k flag", "a, b", "Flags 20% of traffic.", "ann", "3 days ago")
    assert old == ("old", "Any flags", "a, b", "–", "bob", "just now")
    assert cells(ensembles.on_terminal(NOW), rows)[2] == ("old", "Any flags", "a, b", "bob", "just now")


def test_headings_and_keys_of_the_scoreboard_are_given_once() -> None:
    for columns in (scoreboard.ON_PAGE, scoreboard.ON_TERMINAL, scoreboard.IN_FILES):
        assert len({column.heading for column in columns}) == len({column.key for column in columns}) == len(columns)
    assert all(column.help for column in scoreboard.ON_PAGE[1:])


def test_the_columns_of_a_drift_report_show_both_windows_or_nothing() -> None:
    from tests.report.test_weekly_html import COMPARED, WAITING

    head, compared, waiting = cells(drift.ON_TERMINAL, (COMPARED, WAITING))
    assert head == ("Detector", "Model", "Median", "Flagged", "Scored", "Compared", "Verdict")
    assert compared == ("word_overlap", "m<1>", "0.61 → 0.53", "3% → 4%", "100% → 100%", "300 / 200", "moved")
    assert waiting == ("word_overlap", "m<1>", "–", "–", "–", "0 / 0", "not scored")
    assert [column.text(COMPARED) for column in drift.ON_PAGE[7:10]] == ["under 0.001", "0.500", "1.000"]
    assert [column.text(WAITING) for column in drift.ON_PAGE[7:10]] == ["–"] * 3
