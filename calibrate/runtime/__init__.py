"""Load a thresholds file, score an answer and turn scores into a decision, in a production process. Light to import.

>>> thresholds = load("thresholds.json", reload_every=30)  # doctest: +SKIP
>>> decide(thresholds, {"citation_grounding": 0.41, "rouge_l": None}).verdict  # doctest: +SKIP
'REVIEW'
>>> Guard(thresholds, alerts=Alerts(url)).check(trace).flags  # doctest: +SKIP
('citation_grounding',)
"""

from __future__ import annotations

from calibrate.runtime.alerts import Alerts
from calibrate.runtime.decision import Decision, OnMissing, Outcome, decide, probability, segments_of
from calibrate.runtime.guard import Guard
from calibrate.runtime.live import Live, load
from calibrate.runtime.scoring import Scored, Scorer
from calibrate.runtime.tracelog import TraceLog
from calibrate.thresholds.model import ThresholdsFile

__all__ = [
    "Alerts",
    "Decision",
    "Guard",
    "Live",
    "OnMissing",
    "Outcome",
    "Scored",
    "Scorer",
    "ThresholdsFile",
    "TraceLog",
    "decide",
    "load",
    "probability",
    "segments_of",
]
