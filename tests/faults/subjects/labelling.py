"""A labeller as the browser is one: asks for the next trace, and sends an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from db import Store
from pages.components.labelling import turns
from pages.components.labelling.works import Work
from pages.shell.identity import Person

VERDICTS = ("clean", "hallucinated", "unsure")


@dataclass
class Labeller:
    """Somebody at work on the sample `week`."""

    store: Store
    name: str
    answered: int = 0

    def next(self) -> int | None:
        """The key of the trace that comes next, None where the sample is done."""
        coming = turns.ahead(Work, self.store, self._person, self._body(wanted=1))["traces"]
        return coming[0]["pk"] if coming else None

    def answer(self, pk: int) -> str:
        """Sends a verdict and returns it once it is saved."""
        verdict = VERDICTS[pk % 3]
        self.answered += 1
        body = self._body(turn=f"{self.name} {self.answered}", pk=pk, verdict=verdict, seconds=1.0, seen=None)
        reply = turns.take(Work, self.store, self._person, body)
        assert reply["status"] == "saved", reply
        return verdict

    @property
    def _person(self) -> Person:
        return Person(self.name, "set")

    def _body(self, **more: Any) -> dict[str, Any]:
        return {"sample": "week", "labeller": self.name, **more}
