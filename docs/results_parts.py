"""Every data set's results, kept one by one in docs/reference/results/: the page is put together from them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from calibrate.report.names import title_of
from calibrate.report.numbers import count, difference
from calibrate.report.tables.column import Column, Form
from calibrate.report.tables.scoreboard import AUROC, RECOGNIZES, SCORED, WITHIN
from calibrate.workflow.tuning.model_identity import MODEL
from calibrate.workflow.tuning.scoreboard import Line, Scoreboard

FOLDER = Path(__file__).resolve().parent / "reference" / "results"
PIECES = (
    "labels", "versions", "table", "speeds", "leader", "identity", "beside", "idle", "thresholds", "ensembles",
    "learned",
)  # fmt: skip
HEAD = "**Which model answered**"
QUICK = "Only the detectors that need no model were run for this table."

SPEEDS = "The speeds are those of an earlier run: this table was remade on a busy machine."

Pieces = Mapping[str, str]


def save(name: str, pieces: Pieces) -> None:
    """Keep the results of one data set."""
    FOLDER.mkdir(exist_ok=True)
    whole = {"set": name, **{piece: pieces[piece] for piece in PIECES if pieces.get(piece)}}
    path = FOLDER / f"{name.replace(' ', '-')}.json"
    path.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def load(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """The results that are kept of these data sets, in this order."""
    files = {name: FOLDER / f"{name.replace(' ', '-')}.json" for name in names}
    return {name: json.loads(path.read_text(encoding="utf-8")) for name, path in files.items() if path.is_file()}


def with_speeds_of(before: Pieces, pieces: Pieces) -> dict[str, str]:
    """The pieces with the speeds of an earlier table, and no speed where that has none."""
    speeds = {row.split(" | ")[0]: row.rsplit("|", 2)[1] for row in before.get("table", "").splitlines()}
    head, line, *rows = pieces["table"].splitlines()
    kept = [f"{row.rsplit('|', 2)[0]}|{speeds.get(row.split(' | ')[0], '  ')}|" for row in rows]
    return {**pieces, "table": "\n".join([head, line, *kept]), "speeds": SPEEDS}


def section(pieces: Pieces) -> str:
    """A data set's section of the page."""
    return "\n\n".join([f"## {pieces['set']}", *(pieces[piece] for piece in PIECES if pieces.get(piece))])


# ------------------------------------------------------------------------------------------ which model answered


def identity(board: Scoreboard, *, quick: bool) -> str:
    """A table of every detector's area among answers of one model; empty where fewer than two models answered, or
    nothing can be ranked."""
    lines = [line for line in board.lines if line.within.auroc.value is not None or line.name == MODEL]
    if board.models < 2 or len(lines) < 2:
        return ""
    columns = (Column[Line]("name", "detector", lambda line: line.name), SCORED, AUROC, WITHIN, FALL, RECOGNIZES)
    rows = ["| detector | n | AUROC | within one model | fall | recognises |", "|---|--:|---|---|---|---|"]
    rows += [f"| {' | '.join(column.text(line) for column in columns)} |" for line in lines]
    logged = "" if board.logged == board.n else f", logged on {board.logged:,} of {board.n:,} labels"
    head = f"{HEAD}: {board.models} models{logged}."
    return "\n\n".join([head, "\n".join(rows), *([" ".join([QUICK, *_over_model(board)])] if quick else [])])


def _over_model(board: Scoreboard) -> Iterator[str]:
    """The leader's difference to the answering model, which a whole table's sentences say already."""
    for against in board.against:
        gap = against.result.auroc
        if against.other == MODEL and gap.low is not None and gap.high is not None:
            figure = difference(gap.value, gap.low, gap.high)
            labels = count(against.result.n, "label")
            yield f"{title_of(board.leader or '')} over the baseline answering model: {figure} ({labels})."


FALL = Column[Line]("fall", "fall", lambda line: line.within.fall, Form.FIGURE)

# ---------------------------------------------------------------------------------------------------- who leads

_LEADS = re.compile(r"^(.+?) leads with an AUROC of ([\d.]+)(?:, 95% ([\d.]+–[\d.]+))?")
_GAP = r": ([+−]?[\d.]+)(?:, 95% | \()([+−]?[\d.]+ to [+−]?[\d.]+)"
_OVER = re.compile(rf"Over (the next best, |the baseline )([^:]+){_GAP}")
_OVER_MODEL = re.compile(rf"^{re.escape(QUICK)} (.+) over the baseline (answering model){_GAP}", re.MULTILINE)
ANSWERING = "answering model"


def leaders(kept: Mapping[str, Pieces]) -> str:
    """Who leads on each data set, and by how much over the next best, words or length, and the answering model."""
    rows = [
        "| data set | leads | AUROC | over the next best | over word overlap or length | over which model answered |",
        "|---|---|---|---|---|---|",
        *(f"| {name} | {' | '.join(_leader(pieces))} |" for name, pieces in kept.items()),
    ]
    head = (
        "## Who leads, and by how much\n\nDifferences of AUROC with their 95% intervals, from each data set's own "
        "sentences below. An interval that holds 0 does not show a leader. Of word overlap and length, the stronger is "
        "shown. Where no or only one model is logged, which model answered is no baseline. Sets without a leader test "
        "the format and say nothing of quality: too few of one verdict are there, or nothing could score."
    )
    return "\n\n".join([head, "\n".join(rows)])


def _leader(pieces: Pieces) -> list[str]:
    text, identity = pieces.get("leader", ""), pieces.get("identity", "")
    leads = _LEADS.match(text)
    if leads is None:
        return ["nobody", "", "", "", ""]
    over = [(other if kind == "the baseline " else "", f"{other}: {gap} ({bounds})", f"{gap} ({bounds})",
             float(gap.replace("−", "-"))) for kind, other, gap, bounds in _OVER.findall(text)]  # fmt: skip
    over += [(other, "", f"{gap} ({bounds})", 0.0) for leader, other, gap, bounds in _OVER_MODEL.findall(identity)
             if leader == leads[1]]  # fmt: skip
    following = next((row[1] for row in over if not row[0]), "")
    words = min((row for row in over if row[0] not in ("", ANSWERING)), key=lambda row: row[3], default=None)
    model = next((row[2] for row in over if row[0] == ANSWERING), "")
    return [leads[1], f"{leads[2]} ({leads[3] or 'unknown'})", following, words[1] if words else "", model]


# ------------------------------------------------------------------------------------------- an older page's text


def split(text: str) -> dict[str, str]:
    """The pieces of a section as an older page has it."""
    title, *blocks = text.strip().split("\n\n")
    pieces: dict[str, list[str]] = {}
    piece = "labels"
    for block in blocks:
        piece = _piece_of(block, piece)
        pieces.setdefault(piece, []).append(block)
    return {"set": title.removeprefix("## "), **{name: "\n\n".join(parts) for name, parts in pieces.items()}}


def _piece_of(block: str, before: str) -> str:
    starts = (
        ("<!-- made with", "versions"), ("| detector | n | coverage", "table"), ("No detector can be ranked", "leader"),
        ("The speeds are", "speeds"),
        (HEAD, "identity"), ("**Beside word overlap**", "beside"), ("Could score nothing here:", "idle"),
        ("**Thresholds**", "thresholds"), ("**Ensembles**", "ensembles"),
        ("**Learned from labels**", "learned"),
    )  # fmt: skip
    if _LEADS.match(block):
        return "leader"
    return next((piece for start, piece in starts if block.startswith(start)), before)
