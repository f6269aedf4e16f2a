"""What the calls of a workbench return besides frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from calibrate.thresholds.model import ThresholdsFile
from calibrate.workflow.traces.external_scores import TakenScores

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class AddedTraces:
    """What became of a frame of traces.

    Attributes
    ----------
    imported, duplicates, purged : int
        Traces that are new, that the store had already, and that were purged before and stayed out.
    labels, labels_left_out : int
        Labels that came with the traces: those that are new, and those that were not taken.
    rejected : pandas.DataFrame
        A row for each one that was rejected, under its index in your frame: its `row`, counted from 0, and the
        `reason`. It holds the first thousand; `rejections` counts them all.
    rejections : int
    sample : str or None
        The sample that the labels became, where a design was stated.
    left_out : mapping of str to int
        How many rows had a field that was not imported, by field.
    redacted : mapping of str to int
        How often each kind of personal data or secret was replaced.
    scores : sequence of TakenScores
        What became of the scores that came along, a detector each: `name`, and how many are `new`, `changed`, the
        `same` as before, and `left_out`.
    scores_left_out : mapping of str to str
        The names under which no score was taken, and why.
    """

    imported: int
    duplicates: int
    purged: int
    labels: int
    labels_left_out: int
    rejected: pd.DataFrame
    rejections: int
    sample: str | None
    left_out: Mapping[str, int]
    redacted: Mapping[str, int]
    scores: Sequence[TakenScores] = ()
    scores_left_out: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class AddedLabels:
    """What became of a frame of labels.

    Attributes
    ----------
    added, unchanged : int
        Labels that are new, and those that their labeller's latest verdict says already.
    rejected : pandas.DataFrame
        A row for each one that was rejected, under its index in your frame: its `row`, counted from 0, and the
        `reason`.
    sample : str or None
        The sample that the labels became, where a design was stated.
    """

    added: int
    unchanged: int
    rejected: pd.DataFrame
    sample: str | None


@dataclass(frozen=True)
class Released:
    """A release, or where a second person must approve it, the proposal of one.

    Attributes
    ----------
    version : int or None
        None for a proposal.
    file : ThresholdsFile or None
        What was released: None for a proposal.
    sha256 : str or None
        The digest of the file's text.
    path : str or None
        Where the file is, without a password. None for a proposal.
    proposal : int or None
        The number under which a second person approves it: `release --approve NUMBER`.
    problems : sequence of str
        What failed after the release: a commit, or a message to the team's webhook.
    """

    version: int | None
    file: ThresholdsFile | None
    sha256: str | None
    path: str | None
    proposal: int | None = None
    problems: Sequence[str] = ()
