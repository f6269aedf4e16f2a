"""A release of thresholds as frozen dataclasses, and its JSON document: `from_json(to_json(file)) == file`.

The mappings inside are copies. Treat them as read-only: the runtime caches what it computes from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from calibrate.orientation import MEETS, SIGNS
from calibrate.probability import JudgedMap
from calibrate.thresholds.canonical import copy_json, digest_of
from calibrate.thresholds.canonical import label_set_digest as label_set_digest
from calibrate.thresholds.checks import WITH_SEGMENTS, check
from calibrate.thresholds.data import Data as Data
from calibrate.thresholds.data import Drawn as Drawn
from calibrate.thresholds.data import Window as Window
from calibrate.thresholds.ensembles import EnsembleEntry
from calibrate.thresholds.fields import (
    check_extra,
    format_time,
    guarantee_from_json,
    guarantee_to_json,
    interval_to_json,
    intervals_from_json,
    select_extra,
    to_number,
    to_utc,
)
from calibrate.thresholds.ranges import range_in
from calibrate.thresholds.segments import (
    Own,
    describe_segments,
    own_thresholds,
    segments_from_json,
    segments_to_json,
    tidy,
)
from calibrate.types import FlagWhen, Guarantee, Interval, Segmented, Segments, Strength, Tier, segment_of

EXTERNAL = "x-external"
"""The key of an entry whose scores are computed elsewhere: a runtime is given them."""
_FIGURES = ("precision", "recall", "fpr", "flag_rate")


class Rule(NamedTuple):
    """What the runtime needs to decide by one detector.

    `threshold` is in the detector's own units, `meets` the comparison of its `flag_when`. A reason is `before`, the
    score, `after`: "citation_grounding 0.41 ≤ 0.52". With tier `off` it does not flag, but an ensemble reads it.
    `low` and `high` are the ends of what it can score, infinite where the release does not say. `by` tells its segments
    apart, and `own` has their threshold and `after`; both are None without segments.
    """

    detector: str
    threshold: float
    meets: Callable[[float, float], bool]
    tier: Tier
    before: str
    after: str
    low: float
    high: float
    by: str | None = None
    own: Own | None = None


@dataclass(frozen=True)
class Metrics:
    """Shares measured at the threshold, 0 to 1, on `n` labels of which `positives` are hallucinated."""

    precision: Interval
    recall: Interval
    fpr: Interval
    flag_rate: Interval
    n: int
    positives: int
    confidence: float = 0.95


@dataclass(frozen=True)
class Sampling:
    """On which traces production runs a detector.

    `rate` is a share, above 0 and up to 1, of the traces that have all the attributes of `only_when`, compared as text.
    Sampling changes no decision: a score that was not computed is missing.
    """

    rate: float = 1.0
    only_when: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", float(self.rate))
        object.__setattr__(self, "only_when", copy_json(self.only_when, "only_when"))

    def __str__(self) -> str:
        where = ", ".join(f"{name}={value}" for name, value in sorted(self.only_when.items()))
        return f"{100 * self.rate:.10g}% of {where or 'all traces'}"


@dataclass(frozen=True)
class DetectorEntry:
    """One detector's threshold with everything needed to reproduce and to defend it.

    Attributes
    ----------
    version, params, revision
        Of the detector that was calibrated. `revision` names the models behind the score, "" for none.
    flag_when : {"above", "below"}
    threshold : float
        In the detector's own units. A score equal to it flags.
    tier : {"page", "signal", "off"}
    policy : str
        The rule that chose the threshold.
    metrics : Metrics
        Measured at the threshold.
    coverage : float
        Share of labelled traces that it could score, 0 to 1.
    feasible : bool
        Whether the threshold meets the policy's target.
    guarantee : Guarantee or None
        What is proven about its precision beyond the measurement.
    probability_map : JudgedMap or None
        Maps a score to P(hallucinated).
    sampling : Sampling or None
        On which traces production runs it; None means all.
    segments : Segments or None
        Thresholds of their own for parts of the traffic. `threshold` is for all the rest, and the figures are of all
        traffic, each trace decided by the threshold of its segment.
    extra : mapping
        Keys that begin with `x-`. They never change a decision.
    """

    version: str
    params: Mapping[str, Any]
    revision: str
    flag_when: FlagWhen
    threshold: float
    tier: Tier
    policy: str
    metrics: Metrics
    coverage: float
    feasible: bool
    guarantee: Guarantee | None = None
    probability_map: JudgedMap | None = None
    sampling: Sampling | None = None
    segments: Segments | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_external(self) -> bool:
        """Whether its scores are computed elsewhere, and given to a runtime."""
        return self.extra.get(EXTERNAL) is True

    def __post_init__(self) -> None:
        # + 0.0 turns -0.0 into 0.0: JSON readers and the digest do not tell them apart.
        object.__setattr__(self, "threshold", float(self.threshold) + 0.0)
        object.__setattr__(self, "params", copy_json(self.params, "params"))
        if self.sampling == Sampling():  # every trace: the same as no sampling
            object.__setattr__(self, "sampling", None)
        if self.segments is not None:
            object.__setattr__(self, "segments", tidy(self.segments))
        object.__setattr__(self, "extra", check_extra(self.extra))

    @property
    def limit(self) -> str:
        """The threshold as text: "≤ 0.52"; the common one where there are segments."""
        return f"{SIGNS[self.flag_when]} {self.threshold:.4g}"

    @property
    def limits(self) -> str:
        """The common threshold and, where there are segments, theirs: "≤ 0.52 (operation qa 0.47, summary 0.6)"."""
        return self.limit if self.segments is None else f"{self.limit} ({describe_segments(self.segments)})"

    def threshold_in(self, segment: str | None) -> float:
        """The threshold for traces of a segment: its own, or the common one."""
        own = self.segments.thresholds.get(segment) if self.segments is not None and segment is not None else None
        return self.threshold if own is None else own.threshold

    def limit_for(self, trace: Segmented) -> str:
        """The threshold for a trace as text: "≤ 0.47 (operation qa)"."""
        segment = segment_of(trace, self.segments.by) if self.segments else None
        if self.segments is None or segment is None:
            return self.limit
        _, text = own_thresholds(self.segments, SIGNS[self.flag_when]).get(segment, (0.0, self.limit))
        return text.lstrip()

    @property
    def strength(self) -> Strength:
        """How certain its precision is; `measured` without a guarantee."""
        return self.guarantee.strength if self.guarantee else "measured"


@dataclass(frozen=True)
class ThresholdsFile:
    """One release.

    Attributes
    ----------
    version : int
        Its number, 1 or more.
    released_at : datetime
        UTC, whole seconds.
    released_by, note : str
    replaces : int or None
        The version before it.
    detectors : mapping of str to DetectorEntry
    data : Data
        The labels behind the figures.
    baselines : mapping
        Model to detector to the statistics that the detector normalises by.
    ensembles : mapping of str to EnsembleEntry
        Several detectors combined into one decision.
    extra : mapping
        Keys that begin with `x-`.
    """

    version: int
    released_at: datetime
    released_by: str
    note: str
    replaces: int | None
    detectors: Mapping[str, DetectorEntry]
    data: Data
    baselines: Mapping[str, Any] = field(default_factory=dict)
    ensembles: Mapping[str, EnsembleEntry] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "released_at", to_utc(self.released_at))
        object.__setattr__(self, "detectors", dict(self.detectors))
        object.__setattr__(self, "baselines", copy_json(self.baselines, "baselines"))
        object.__setattr__(self, "ensembles", dict(self.ensembles))
        object.__setattr__(self, "extra", check_extra(self.extra))

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The detectors to run, by name: those that can flag, and the members of ensembles that can."""
        members = {name for _, entry in self.live_ensembles for name in entry.members}
        entries = (item for item in sorted(self.detectors.items()) if item[1].tier != "off" or item[0] in members)
        return tuple(
            Rule(
                name,
                entry.threshold,
                MEETS[entry.flag_when],
                entry.tier,
                f"{name} ",
                f" {entry.limit}",
                *range_in(entry.extra),
                entry.segments.by if entry.segments else None,
                own_thresholds(entry.segments, SIGNS[entry.flag_when]) if entry.segments else None,
            )
            for name, entry in entries
        )

    @cached_property
    def segmented_by(self) -> tuple[str, ...]:
        """What tells the segments of its detectors apart, sorted; empty where one threshold is for all."""
        return tuple(sorted({rule.by for rule in self.rules if rule.by is not None}))

    @cached_property
    def live_ensembles(self) -> tuple[tuple[str, EnsembleEntry], ...]:
        """The ensembles that can flag, by name."""
        return tuple((name, entry) for name, entry in sorted(self.ensembles.items()) if entry.live)


def to_json(file: ThresholdsFile) -> dict[str, Any]:
    """Convert to the document, digest included. Does not check it: `checks.check` and every write do."""
    # Left out without ensembles, never empty: one meaning has one spelling and one digest.
    ensembles = {name: entry.to_json() for name, entry in file.ensembles.items()}
    has_segments = any(entry.segments is not None for entry in file.detectors.values())
    document = {
        "touchstone_thresholds": WITH_SEGMENTS if has_segments else 1,
        "version": file.version,
        "released_at": format_time(file.released_at),
        "released_by": file.released_by,
        "note": file.note,
        "replaces": file.replaces,
        "detectors": {name: _entry_to_json(entry) for name, entry in file.detectors.items()},
        **({"ensembles": ensembles} if ensembles else {}),
        "data": file.data.to_json(),
        "baselines": dict(file.baselines),
        **file.extra,
    }
    return {**document, "digest": digest_of(document)}


def from_json(document: Any, name: str = "thresholds file") -> ThresholdsFile:
    """Read a document; keys that this version does not know are left out. Raises BadThresholds, naming it, unless it is
    complete and unchanged."""
    check(document, name)
    return ThresholdsFile(
        version=int(document["version"]),  # 3.0 is an integer in JSON
        released_at=datetime.fromisoformat(document["released_at"]),
        released_by=document["released_by"],
        note=document["note"],
        replaces=None if document["replaces"] is None else int(document["replaces"]),
        detectors={name: _entry_from_json(entry) for name, entry in document["detectors"].items()},
        data=Data.from_json(document["data"]),
        baselines=document["baselines"],
        ensembles={name: EnsembleEntry.from_json(entry) for name, entry in document.get("ensembles", {}).items()},
        extra=select_extra(document),
    )


def _entry_to_json(entry: DetectorEntry) -> dict[str, Any]:
    metrics = entry.metrics
    # Absent fields are left out, never null: one meaning has one spelling and one digest.
    guarantee = {} if entry.guarantee is None else {"guarantee": guarantee_to_json(entry.guarantee)}
    probability_map = {} if entry.probability_map is None else {"probability_map": entry.probability_map.to_json()}
    sampling = {} if entry.sampling is None else {"sampling": asdict(entry.sampling)}
    segments = {} if entry.segments is None else {"segments": segments_to_json(entry.segments)}
    return {
        "version": entry.version,
        "params": dict(entry.params),
        "revision": entry.revision,
        "flag_when": entry.flag_when,
        "threshold": entry.threshold,
        "tier": entry.tier,
        "policy": entry.policy,
        "metrics": {
            **{name: interval_to_json(getattr(metrics, name)) for name in _FIGURES},
            "n": metrics.n,
            "positives": metrics.positives,
            "confidence": to_number(metrics.confidence),
        },
        "coverage": to_number(entry.coverage),
        "feasible": entry.feasible,
        **segments,
        **sampling,
        **guarantee,
        **probability_map,
        **entry.extra,
    }


def _entry_from_json(entry: Mapping[str, Any]) -> DetectorEntry:
    measured = entry["metrics"]
    counts = {"n": int(measured["n"]), "positives": int(measured["positives"])}
    metrics = Metrics(**intervals_from_json(measured, _FIGURES), **counts, confidence=float(measured["confidence"]))  # type: ignore[arg-type]
    names = ("version", "params", "revision", "flag_when", "threshold", "tier", "policy", "feasible")
    fields = {name: entry[name] for name in names}
    guarantee = guarantee_from_json(entry["guarantee"]) if "guarantee" in entry else None
    probability_map = JudgedMap.from_json(entry["probability_map"]) if "probability_map" in entry else None
    sampling = Sampling(entry["sampling"]["rate"], entry["sampling"]["only_when"]) if "sampling" in entry else None
    return DetectorEntry(
        **fields,
        metrics=metrics,
        coverage=float(entry["coverage"]),
        guarantee=guarantee,
        probability_map=probability_map,
        sampling=sampling,
        segments=segments_from_json(entry["segments"]) if "segments" in entry else None,
        extra=select_extra(entry),
    )
