"""Writes calibrate/thresholds/vectors: `python -m tests.thresholds.make_vectors`.

The decisions are worked out by hand, the arithmetic beside them; nothing here asks the runtime.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from scipy.special import expit

from calibrate.probability import JudgedMap, ProbabilityMap
from calibrate.thresholds import (
    Cuts,
    Data,
    DetectorEntry,
    Drawn,
    EnsembleEntry,
    EnsembleMetrics,
    Metrics,
    Sampling,
    ThresholdsFile,
    Window,
    to_json,
)
from calibrate.thresholds.canonical import digest_of
from calibrate.thresholds.signing import sign
from calibrate.types import Guarantee, Interval, Segments, SegmentThreshold
from tests.thresholds.make import CERTIFIED, DIGEST, entry, release

# The key pair of RFC 8032, 7.1, test 1, and the one of a seed of nothing but zeros.
OURS = Ed25519PrivateKey.from_private_bytes(
    bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
)
TRUSTED = """-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
-----END PUBLIC KEY-----
"""
ANOTHER = Ed25519PrivateKey.from_private_bytes(bytes(32))
FOLDER = Path(__file__).parents[2] / "calibrate" / "thresholds" / "vectors"
METRICS = EnsembleMetrics(Interval(0.8, 0.7, 0.9), Interval(0.5, 0.4, 0.6), Interval(0.05, 0.04, 0.06), 300, 41)

KNOWN_BAD = {"x-state": {
    "verdict": "do not release", "why": "few flagged", "value": 1.0, "low": 0.4, "high": 1.0, "flagged": 4, "hits": 4,
    "reason": "a pilot of one week",
}}  # fmt: skip

# Halfway between two knots a score is halfway between their heights: a at 0.5 has above 0.7, normal -0.75.
A = {"flag_when": "above", "knots": [0, 1, 2], "above": [0.9, 0.5, 0.1], "normals": [-1.5, 0, 1.5]}
# b is negated first: at 0.25 it is halfway from -0.5 to 0, above 0.25, normal 1.1.
B = {"flag_when": "below", "knots": [-1, -0.5, 0], "above": [0.8, 0.4, 0.1], "normals": [-1, 0.2, 2]}
C = {"flag_when": "above", "knots": [4, 6], "above": [0.75, 0.25], "normals": [-1, 1]}
MAP_ABOVE = JudgedMap(
    ProbabilityMap(0.6, 0.2, (-1.0, 1.5, 0.5), "above"), 300, 41, Interval(0.1, 0.0, 0.2), Interval(0.0, None, None)
)
NOTHING = {"flag_when": "above", "knots": [], "above": [], "normals": []}
MEMBERS = {"a": entry(1, "above", "off"), "b": entry(0.25, "below", "off"), "c": entry(5, "above", "off")}
PAIR = {name: MEMBERS[name] for name in "ab"}


def ensemble(rule: dict[str, Any], members: str, *, page: float | None = None, signal: float | None = None) -> Any:
    return EnsembleEntry(rule, tuple(members.split()), Cuts(page, signal), METRICS, 0.05)


def file(detectors: dict[str, DetectorEntry], **ensembles: EnsembleEntry) -> ThresholdsFile:
    return release(detectors, ensembles=ensembles)


def case(
    about: str,
    scores: dict[str, float | None],
    flags: str = "",
    tier: str = "off",
    *,
    missing: str = "",
    unknown: str = "",
    off: str = "",
    probabilities: dict[str, float] | None = None,
    on_missing: str = "",
    skipped: str = "",
    segments: dict[str, str | None] | None = None,
) -> dict[str, Any]:
    """A decision; scored is what is neither missing, unknown nor `off`."""
    aside = {*missing.split(), *unknown.split(), *off.split()}
    unscored = not {*scores} - aside and bool({*missing.split()} - {*skipped.split()})
    by_flags = ["ACCEPT", "REVIEW", "REJECT"][min(2, len(flags.split()))]
    decision = {
        "flags": flags.split(),
        "tier": tier,
        "verdict": (on_missing or "review").upper() if unscored else by_flags,
        "version": 2,
        "scored": sorted({*scores} - aside),
        "missing": missing.split(),
        "unknown": unknown.split(),
        "unscored": unscored,
    }
    how = {key: value for key, value in (("on_missing", on_missing), ("skipped", skipped.split())) if value}
    how |= {} if segments is None else {"segments": segments}
    extra = {"probabilities": probabilities} if probabilities else {}
    return {"about": about, "scores": scores, **how, "decision": decision, **extra}


def detectors() -> dict[str, Any]:
    two = {"entropy_z": entry(2.5, "above"), "rouge_l": entry(0.3, "below")}
    tiers = {"loud": entry(0.5, "above", "page"), "soft": entry(0.5, "above"), "mute": entry(0.5, "above", "off")}
    known = JudgedMap(
        ProbabilityMap(0.6, 0.2, (-1.0, 1.5, 0.5), "below"), 300, 41, Interval(0.1, 0.0, 0.2), Interval(0.0, 0.0, 0.1)
    )
    sampled = entry(0.5, "above", sampling=Sampling(0.01, {"stakes": "high"}))
    return {
        "equal_to_the_threshold": (
            file(two),
            case("above: equal flags", {"entropy_z": 2.5, "rouge_l": 1}, "entropy_z", "signal"),
            case("above: the next number below does not", {"entropy_z": 2.4999999999999996, "rouge_l": 1}),
            case("below: equal flags", {"entropy_z": 0, "rouge_l": 0.3}, "rouge_l", "signal"),
            case("below: the next number above does not", {"entropy_z": 0, "rouge_l": 0.30000000000000004}),
            case("both", {"entropy_z": 2.5, "rouge_l": 0.3}, "entropy_z rouge_l", "signal"),
            case("a whole number is a number", {"entropy_z": 3, "rouge_l": 1}, "entropy_z", "signal"),
        ),
        "missing_scores": (
            file(two),
            case("no entry", {"entropy_z": 9}, "entropy_z", "signal", missing="rouge_l"),
            case("null: abstained or failed", {"entropy_z": 0, "rouge_l": None}, missing="rouge_l"),
            case("nothing at all", {}, missing="entropy_z rouge_l"),
            case("nothing but null", {"entropy_z": None, "rouge_l": None}, missing="entropy_z rouge_l"),
            case("accepted, because the caller says so", {}, missing="entropy_z rouge_l", on_missing="accept"),
            case("rejected, because the caller says so", {}, missing="entropy_z rouge_l", on_missing="reject"),
            case("one score is enough", {"rouge_l": 1}, missing="entropy_z", on_missing="reject"),
            case(
                "a flag is one, whatever is missing",
                {"rouge_l": 0},
                "rouge_l",
                "signal",
                missing="entropy_z",
                on_missing="reject",
            ),
            case(
                "one of them was not to be run, the other could not score",
                {},
                missing="entropy_z rouge_l",
                skipped="rouge_l",
            ),
            case("neither was to be run", {}, missing="entropy_z rouge_l", skipped="entropy_z rouge_l"),
        ),
        "unknown_detector": (
            file(two),
            case("ignored and listed", {"entropy_z": 0, "rouge_l": 1, "zeta": 1e9, "alpha": 0}, unknown="alpha zeta"),
            case("a name that objects inherit", {"constructor": 1}, missing="entropy_z rouge_l", unknown="constructor"),
        ),
        "tiers": (
            file(tiers),
            case("page", {"loud": 1, "soft": 0}, "loud", "page"),
            case("signal", {"loud": 0, "soft": 1}, "soft", "signal"),
            case("page is over signal", {"loud": 1, "soft": 1}, "loud soft", "page"),
            case("off never flags and is not asked", {"loud": 0, "soft": 0, "mute": 1}, off="mute"),
        ),
        "known_bad": (
            file({"rouge_l": entry(0.3, "below", extra=KNOWN_BAD)}),
            case("what is known of a point changes no decision", {"rouge_l": 0.3}, "rouge_l", "signal"),
            case("nor does its reason", {"rouge_l": 0.31}),
        ),
        "no_detectors": (file({}), case("nothing is asked", {}), case("all is unknown", {"a": 1}, unknown="a")),
        # z = 1: -1 + 1.5 + 0.25 = 0.75. z = -1: -1 - 1.5 = -2.5. z = 0: -1. z is held at a million.
        "probability_map": (
            file({"grounding": entry(0.52, "below", probability_map=known)}),
            case("suspicious", {"grounding": 0.4}, "grounding", "signal", probabilities={"grounding": expit(0.75)}),
            case("not suspicious", {"grounding": 0.8}, probabilities={"grounding": expit(-2.5)}),
            case("at its centre", {"grounding": 0.6}, probabilities={"grounding": expit(-1)}),
            case("far out", {"grounding": -1e300}, "grounding", "signal", probabilities={"grounding": 1}),
        ),
        "sampling": (
            file({"self_consistency": sampled}),
            case("it says what to run and changes no decision", {"self_consistency": 1}, "self_consistency", "signal"),
            case("not run is missing", {}, missing="self_consistency"),
            case("not run because of its sampling", {}, missing="self_consistency", skipped="self_consistency"),
        ),
    }


def segment(threshold: float, guarantee: Guarantee | None = None) -> SegmentThreshold:
    return SegmentThreshold(threshold, 120, 30, Interval(0.8, 0.6, 0.9), Interval(None), guarantee)


def segmented() -> dict[str, Any]:
    by_operation = Segments("operation", {"qa": segment(0.5, CERTIFIED), "summary": segment(0.9)})
    by_tier = Segments("attributes.tier", {"gold": segment(0.1), "__proto__": segment(0.2), "true": segment(0.3)})
    two = {"nli": entry(0.7, "above", "page", segments=by_operation), "rouge_l": entry(0.4, "below", segments=by_tier)}
    pair = {"form": "fixed", "k": 1, "thresholds": {"nli": ["above", 0.7]}}
    alone = {"nli": two["nli"]}
    off = {"nli": entry(0.7, "above", "off", segments=by_operation)}
    qa: dict[str, str | None] = {"operation": "qa"}
    gold: dict[str, str | None] = {"attributes.tier": "gold"}
    return {
        "segments": (
            file(two),
            case("above: qa flags from 0.5 on", {"nli": 0.6, "rouge_l": 1}, "nli", "page", segments=qa),
            case("above: summary flags from 0.9 on", {"nli": 0.8, "rouge_l": 1}, segments={"operation": "summary"}),
            case("equal to the segment's threshold flags", {"nli": 0.5, "rouge_l": 1}, "nli", "page", segments=qa),
            case("the next number below does not", {"nli": 0.49999999999999994, "rouge_l": 1}, segments=qa),
            case("below: gold flags from 0.1 down", {"nli": 0, "rouge_l": 0.2}, segments=gold),
            case("below: equal flags", {"nli": 0, "rouge_l": 0.1}, "rouge_l", "signal", segments=gold),
            case("below: the next number above does not", {"nli": 0, "rouge_l": 0.10000000000000002}, segments=gold),
            case("each by its own segment", {"nli": 0.6, "rouge_l": 0.2}, "nli", "page", segments={**qa, **gold}),
            case("unknown: the common threshold", {"nli": 0.6, "rouge_l": 1}, segments={"operation": "chat"}),
            case("and it flags", {"nli": 0.7, "rouge_l": 0.4}, "nli rouge_l", "page", segments={"operation": "chat"}),
            case("no segment: the common threshold", {"nli": 0.6, "rouge_l": 0.4}, "rouge_l", "signal"),
            case(
                "null is no segment",
                {"nli": 0.6, "rouge_l": 0.4},
                "rouge_l",
                "signal",
                segments={"operation": None, "attributes.tier": None},
            ),
            case("an empty text is none that it has", {"nli": 0.6, "rouge_l": 1}, segments={"operation": ""}),
            case("by something else", {"nli": 0.6, "rouge_l": 1}, segments={"model": "qa", "tier": "gold"}),
            case("segments are spelled exactly so", {"nli": 0.6, "rouge_l": 1}, segments={"operation": "QA"}),
            case("a name that objects inherit", {"nli": 0.6, "rouge_l": 1}, segments={"operation": "constructor"}),
            case("a segment of such a name", {"nli": 0, "rouge_l": 0.3}, segments={"attributes.tier": "__proto__"}),
            case("a text like another type's", {"nli": 0, "rouge_l": 0.35}, segments={"attributes.tier": "true"}),
            case("no score is missing in any segment", {"nli": None, "rouge_l": 1}, missing="nli", segments=qa),
        ),
        "segments_and_members": (
            file(alone, g=ensemble(pair, "nli", signal=1)),
            case("an ensemble's own thresholds stay: the detector flags", {"nli": 0.6}, "nli", "page", segments=qa),
            case("and the ensemble alone", {"nli": 0.8}, "g", "signal", segments={"operation": "summary"}),
        ),
        "segments_of_tier_off": (
            file(off, g=ensemble(pair, "nli", signal=1)),
            case("it flags in no segment", {"nli": 0.6}, segments=qa),
        ),
    }


def votes() -> dict[str, Any]:
    either = {"form": "vote", "k": 1, "standings": {"a": A, "b": B}}
    two = {"form": "vote", "k": 2, "standings": {"a": A, "b": B, "c": C}}
    own = {"a": ["above", 1], "b": ["below", 0.25], "c": ["above", 5]}
    on = {"a": entry(1, "above"), "b": MEMBERS["b"]}
    return {
        "any": (
            file(PAIR, g=ensemble(either, "a b", page=0.9, signal=0.75)),
            # suspicion = 1 - above
            case("0.3 and 0.2", {"a": 0.5, "b": 1}),
            case("0.1 and 0.75, equal to the cut", {"a": 0, "b": 0.25}, "g", "signal"),
            case("0.9, equal to the cut", {"a": 2, "b": 1}, "g", "page"),
            case("level beyond the last knot: 0.9", {"a": 50, "b": 1}, "g", "page"),
            case("level before the first: 0.1", {"a": -50, "b": 1}),
            case("0.9 and none", {"a": 2, "b": None}, "g", "page", missing="b"),
            case("none and 0.2", {"b": 1}, missing="a"),
            case("none at all", {}, missing="a b"),
        ),
        "k_of_n": (
            file(MEMBERS, g=ensemble(two, "a b c", signal=0.5)),
            case("0.9, 0.2, 0.5: the second is 0.5", {"a": 2, "b": 1, "c": 5}, "g", "signal"),
            case("0.9, none, 0.5", {"a": 2, "c": 5}, "g", "signal", missing="b"),
            case("0.9, 0.2, none", {"a": 2, "b": 1, "c": None}, missing="c"),
            case("0.9 alone: the second is 0", {"a": 2}, missing="b c"),
        ),
        "k_of_n_own_thresholds": (
            file(MEMBERS, g=ensemble({"form": "fixed", "k": 2, "thresholds": own}, "a b c", page=3, signal=2)),
            case("two, equal to their thresholds", {"a": 1, "b": 0.25, "c": 4}, "g", "signal"),
            case("three", {"a": 9, "b": 0, "c": 5}, "g", "page"),
            case("one, and two that are missing", {"a": 1}, missing="b c"),
        ),
        "members_flag_too": (
            file(on, g=ensemble(either, "a b", signal=0.75)),
            case("both: two flags", {"a": 2, "b": 1}, "a g", "signal"),
            case("the ensemble by itself", {"a": 0, "b": 0.25}, "g", "signal"),
            case("the detector by itself: 1 has 0.5", {"a": 1, "b": 1}, "a", "signal"),
        ),
        "ensemble_without_cuts": (
            file(on, g=ensemble(either, "a b")),
            case("it is not asked, nor a member of tier off for it", {"a": 2, "b": 0}, "a", "signal", off="b"),
        ),
    }


def scores() -> dict[str, Any]:
    mean = {"form": "weighted", "weights": {"a": 2, "b": 1, "c": -1}, "standings": {"a": A, "b": B, "c": C}}
    blind = {"form": "weighted", "weights": {"a": 1, "b": 1}, "standings": {"a": NOTHING, "b": B}}
    inputs = {
        "a": {"flag_when": "above", "centre": 1, "spread": 0.5, "slope": 0.8, "missing": -0.3},
        "b": {"flag_when": "below", "centre": 0.5, "spread": 0.25, "slope": 1.2, "missing": 0.6},
    }
    logistic = {"form": "logistic", "intercept": -2, "inputs": inputs}
    first = {"form": "weighted", "weights": {"a": 1}, "standings": {"a": A}}
    judge = {"flag_when": "above", "knots": [0, 1], "above": [0.6, 0.1], "normals": [-1, 1]}
    cascade = {"form": "cascade", "filter": first, "pass_at": 0, "expensive": "judge", "standing": judge}
    asked = {"a": MEMBERS["a"], "judge": entry(0.5, "above", "off")}
    return {
        # (2 a + b - c) / (2 + 1 + 1) of normals
        "weighted": (
            file(MEMBERS, g=ensemble(mean, "a b c", page=1.25, signal=0.75)),
            case("(3 + 2 - 0) / 4 = 1.25", {"a": 2, "b": 0, "c": 5}, "g", "page"),
            case("(3 + 2 - 1) / 4 = 1", {"a": 2, "b": 0, "c": 6}, "g", "signal"),
            case("(3 + 0 - 0) / 4 = 0.75: missing is the middle", {"a": 2}, "g", "signal", missing="b c"),
            case("(-1.5 + 1.1 - 0) / 4 = -0.1", {"a": 0.5, "b": 0.25, "c": 5}),
        ),
        "no_member_scored": (
            file(PAIR, g=ensemble(blind, "a b", signal=-1)),
            case("(0 + 2) / 2: a standing without knots says nothing", {"a": 5, "b": 0}, "g", "signal"),
            case("0 reaches -1", {"a": 5}, "g", "signal", missing="b"),
            case("without any score it does not flag", {"a": None}, missing="a b"),
        ),
        # a at 2: z = 2, 1.6. b at 0: z = 2, 2.4.
        "logistic": (
            file(PAIR, g=ensemble(logistic, "a b", page=float(expit(2)), signal=float(expit(0.2)))),
            case("-2 + 1.6 + 2.4 = 2", {"a": 2, "b": 0}, "g", "page"),
            case("-2 + 1.6 + 0.6 = 0.2: b is missing", {"a": 2, "b": None}, "g", "signal", missing="b"),
            case("-2 - 0.3 + 2.4 = 0.1: a is missing", {"b": 0}, missing="a"),
            case("-2 - 1.6 + 2.4 = -1.2", {"a": 0, "b": 0}),
            case("without any score it does not flag", {}, missing="a b"),
        ),
        "cascade": (
            file(
                asked,
                strict=ensemble(cascade, "a judge", page=1.9, signal=1.8),
                wide=ensemble(cascade, "a judge", signal=0.8),
            ),
            case("1.5 passes: 1 + 0.9", {"a": 2, "judge": 1}, "strict wide", "page"),
            case("1.5 passes: 1 + 0.8", {"a": 2, "judge": 0.8}, "strict wide", "signal"),
            case("0 just passes: 1 + 0.9", {"a": 1, "judge": 1}, "strict wide", "page"),
            case("-0.75 is stopped, whatever the last says: 0.32", {"a": 0.5, "judge": 1}),
            case("the last is missing: expit(1.5) = 0.82", {"a": 2}, "wide", "signal", missing="judge"),
            case("the first is missing: 0 passes, 1 + 0.9", {"judge": 1}, "strict wide", "page", missing="a"),
        ),
        "cascade_that_passes_all": (
            file(asked, g=ensemble({**cascade, "pass_at": None}, "a judge", signal=1.8)),
            case("1 + 0.9", {"a": 0, "judge": 1}, "g", "signal"),
            case("1 + 0.4", {"a": 2, "judge": 0}),
        ),
    }


def changed(document: dict[str, Any], *path: str | int, to: Any, sign: bool = True) -> dict[str, Any]:
    made = copy.deepcopy(document)
    place: Any = made
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return {**made, "digest": digest_of(made)} if sign else made


def real() -> dict[str, Any]:
    """What real releases hold and a plain example does not: nothing known, and keys of a later version."""
    nothing = Interval(None, None, None)
    unknown = Metrics(nothing, nothing, nothing, nothing, 0, 0)
    unjudged = JudgedMap(ProbabilityMap(0.6, 0.2, (-1.0, 1.5, 0.5), "below"), 300, 41, nothing, nothing)
    bare = entry(
        0.5, "below", metrics=unknown, coverage=0, feasible=False, probability_map=unjudged,
        guarantee=Guarantee("bounded", 0.7, 0.95, 0.7, 9, 9, None),
    )  # fmt: skip
    statistics = {"entropy/mean/top5/centre": 0.31, "entropy/mean/top5/spread": None,
                  "entropy/mean/top5/fitted_at": "2026-11-02T00:00:00Z"}  # fmt: skip
    little = {
        "replaces": None,
        "data": Data(None, None, DIGEST, 0, 0, None, (), {"w": Drawn("random", None, 9, 4, {})}),
        "baselines": {"gpt-4o": {"entropy_z": statistics}},
        "ensembles": {"g": EnsembleEntry(
            {"form": "vote", "k": 1, "standings": {"a": NOTHING}}, ("a",), Cuts(None, None),
            EnsembleMetrics(nothing, nothing, nothing, 0, 0), 0.05)},
    }  # fmt: skip
    window = {"data": Data("w", "random", DIGEST, 9, 1, Window(None, None))}
    return {
        "null": (release({"a": MEMBERS["a"], "d": bare}, **little), case("d flags as ever", {"d": 0.5}, "d", "signal")),
        "null_in_a_window": (release({"d": bare}, **window), case("and so does this", {"d": 0.6})),
    }


def later() -> dict[str, Any]:
    """A file that a later version wrote, with keys that nobody knows yet, in every object that has fields."""
    rule = {"form": "weighted", "weights": {"a": 1, "b": 1}, "standings": {"a": A, "b": B}}
    detectors = {"loud": entry(0.5, "above", "page", guarantee=CERTIFIED, probability_map=MAP_ABOVE,
                               sampling=Sampling(0.5)), **PAIR}  # fmt: skip
    samples = Data("w", "random", DIGEST, 9, 1, Window(None, None), (), {"w": Drawn("random", None, 9, 4, {})})
    document = to_json(release(detectors, ensembles={"g": ensemble(rule, "a b", signal=0.75)}, data=samples))
    loud, group = document["detectors"]["loud"], document["ensembles"]["g"]
    places = [
        document, document["data"], document["data"]["window"], document["data"]["samples"]["w"],
        loud, loud["metrics"], loud["metrics"]["precision"], loud["guarantee"], loud["sampling"],
        loud["probability_map"], loud["probability_map"]["brier"],
        group, group["cuts"], group["metrics"], group["rule"], group["rule"]["standings"]["a"],
    ]  # fmt: skip
    for place in places:
        place.update({"later": {"than": [1, None]}, "x-own": "a remark"})
    return {**document, "digest": digest_of(document)}


def signatures() -> dict[str, Any]:
    """Each is to be read with `verify_key`: only what that key signed is taken."""
    plain = file({"a": entry(1, "above")})
    good = to_json(sign(plain, OURS))
    about = "a reader that checks signatures must refuse this"
    documents = {
        "unsigned": to_json(plain),
        "signature_of_another_key": to_json(sign(plain, ANOTHER)),
        "signature_of_other_thresholds": changed(good, "detectors", "a", "threshold", to=-1e9),
        "signature_of_another_version": changed(good, "version", to=3),
        "signature_cut": changed(good, "x-signature", "value", to=good["x-signature"]["value"][:-4]),
        "signature_of_no_kind": changed(good, "x-signature", "algorithm", to="none"),
        "signature_null": changed(good, "x-signature", to=None),
    }
    cases = [case("a signature changes no decision", {"a": 1}, "a", "signal")]
    return {
        "signed": {"about": "signed", "document": good, "verify_key": TRUSTED, "cases": cases},
        **{
            f"refused_{name}": {"about": about, "document": one, "verify_key": TRUSTED, "refused": True}
            for name, one in documents.items()
        },
    }


def refusals() -> dict[str, Any]:
    """Signed again, but for the first: the digest alone does not refuse them."""
    rule = {"form": "vote", "k": 1, "standings": {"a": A, "b": B}}
    good = to_json(file(PAIR, g=ensemble(rule, "a b", page=0.9, signal=0.75)))
    text = json.dumps(good)
    of = ("ensembles", "g")
    apart = to_json(file({"a": entry(1, "above", segments=Segments("operation", {"qa": segment(2, CERTIFIED)}))}))
    own = ("detectors", "a", "segments")
    qa = (*own, "thresholds", "qa")
    nameless = apart["detectors"]["a"]["segments"]["thresholds"]["qa"]
    documents = {
        "digest_of_another": changed(good, "detectors", "a", "threshold", to=1.5, sign=False),
        "format_too_new": changed(good, "touchstone_thresholds", to=3),
        "detector_unknown": changed(good, "detectors", to={"a": good["detectors"]["a"]}),
        "ensemble_named_as_a_detector": changed(good, "ensembles", to={"a": good["ensembles"]["g"]}),
        "null_for_a_threshold": changed(good, "detectors", "a", "threshold", to=None),
        "null_for_an_interval": changed(good, "detectors", "a", "metrics", "precision", to=None),
        "null_for_what_is_left_out": changed(good, "detectors", "a", "guarantee", to=None),
        "form_unknown": changed(good, *of, "rule", "form", to="stacked"),
        "members_not_sorted": changed(good, *of, "members", to=["b", "a"]),
        "member_flags_otherwise": changed(good, *of, "rule", "standings", "a", "flag_when", to="below"),
        "more_votes_than_members": changed(good, *of, "rule", "k", to=3),
        "knots_descend": changed(good, *of, "rule", "standings", "a", "knots", to=[0, 2, 1]),
        "page_below_signal": changed(good, *of, "cuts", "page", to=0.7),
        "sampling_of_none": changed(good, "detectors", "a", "sampling", to={"rate": 0, "only_when": {}}),
        "format_2_without_segments": changed(good, "touchstone_thresholds", to=2),
        "segments_in_format_1": changed(apart, "touchstone_thresholds", to=1),
        "segments_empty": changed(apart, *own, "thresholds", to={}),
        "segments_null": changed(apart, *own, to=None),
        "segments_by_nothing_known": changed(apart, *own, "by", to="week"),
        "segments_by_an_attribute_without_a_name": changed(apart, *own, "by", to="attributes."),
        "segment_without_a_name": changed(apart, *own, "thresholds", to={"": nameless}),
        "segment_without_a_threshold": changed(apart, *qa, "threshold", to=None),
        "segment_with_more_positives_than_labels": changed(apart, *qa, "positives", to=121),
        "segment_with_a_precision_of_null": changed(apart, *qa, "precision", to=None),
        "segment_with_a_guarantee_that_cannot_be": changed(apart, *qa, "guarantee", "bound", to=0.6),
        "drawn_more_than_there_is": changed(
            good, "data", "samples", to={"w": {"design": "random", "by": None, "pool": 1, "size": 2, "strata": {}}}
        ),
    }
    texts = {
        "key_twice": text.replace('"tier": "off"', '"tier": "page", "tier": "off"', 1),
        "number_too_large": text.replace('"coverage": 0.97', '"coverage": 1e999', 1),
        "byte_order_mark": "\ufeff" + text,
    }
    about = "a reader must refuse this"
    return {
        **{name: {"about": about, "document": one, "refused": True} for name, one in documents.items()},
        **{name: {"about": about, "text": one, "refused": True} for name, one in texts.items()},
    }


def vectors() -> dict[str, str]:
    """File name -> text."""
    made = {
        name: {"about": name.replace("_", " "), "document": to_json(one), "cases": cases}
        for name, (one, *cases) in {**detectors(), **votes(), **scores(), **segmented(), **real()}.items()
    }
    made["unknown_keys"] = {
        "about": "keys of a later version are ignored, and count into the digest",
        "document": later(),
        "cases": [
            case("(0 + 2) / 2 = 1", {"loud": 0.5, "a": 1, "b": 0}, "loud g", "page"),
            case("(0 + 0.2) / 2 = 0.1", {"loud": 0, "a": 1, "b": 0.5}),
        ],
    }
    made |= signatures()
    made |= {f"refused_{name}": one for name, one in refusals().items()}
    return {f"{name}.json": json.dumps(one, indent=1, ensure_ascii=False) + "\n" for name, one in made.items()}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.json"):
        old.unlink()
    for name, text in vectors().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
