"""The columns of the saved ensembles: one row for each name."""

from __future__ import annotations

from datetime import datetime

from calibrate.report.names import title_of
from calibrate.report.numbers import ago
from calibrate.report.tables.column import Column
from calibrate.sanitize import one_line
from calibrate.stats.ensembles.combine import Kind
from calibrate.types import SavedEnsemble

KIND_WORDS: dict[Kind, str] = {"logistic": "Logistic", "k_of_n": "At least k flag", "cascade": "Cascade"}
# With the kinds that older versions saved and nobody can choose any more.
_SAVED_KINDS: dict[str, str] = dict(KIND_WORDS.items()) | {"weighted": "Weighted ranks", "any": "Any flags"}

NAME = Column[SavedEnsemble]("name", "Name", lambda saved: one_line(saved.name, 100))
KIND = Column[SavedEnsemble]("kind", "Kind", lambda saved: _SAVED_KINDS.get(saved.ensemble.kind, saved.ensemble.kind))
DETECTORS = Column[SavedEnsemble]("detectors", "Detectors", lambda saved: ", ".join(saved.ensemble.detectors))
TITLES = Column[SavedEnsemble](
    "detectors", "Detectors", lambda saved: ", ".join(map(title_of, saved.ensemble.detectors))
)
SENTENCE = Column[SavedEnsemble]("sentence", "What was known", lambda saved: saved.ensemble.sentence)
BY = Column[SavedEnsemble]("saved_by", "By", lambda saved: one_line(saved.saved_by, 60))


def on_page(now: datetime) -> tuple[Column[SavedEnsemble], ...]:
    """The columns of the Combine page."""
    return (NAME, KIND, TITLES, SENTENCE, BY, _when(now))


def on_terminal(now: datetime) -> tuple[Column[SavedEnsemble], ...]:
    """The columns of `ensemble list`; the sentence would take the whole width."""
    return (NAME, KIND, DETECTORS, BY, _when(now))


def _when(now: datetime) -> Column[SavedEnsemble]:
    return Column("saved_at", "When", lambda saved: ago(saved.saved_at, now))
