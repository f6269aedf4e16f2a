"""`probability`: what a score means in percent, and how well that map is calibrated."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass

from calibrate import registry
from calibrate.cli import Answer
from calibrate.cli.common import now, open_store, user
from calibrate.cli.evidence import labels_lines
from calibrate.cli.output import table
from calibrate.cli.pairs import parse_pairs
from calibrate.report import numbers
from calibrate.report.sentences.tuning import probability as sentences
from calibrate.workflow.detection import configurations
from calibrate.workflow.evidence import basis
from calibrate.workflow.evidence.labels_at_hand import LabelsAtHand, labels_at_hand
from calibrate.workflow.tuning import probability as maps


@dataclass(frozen=True, slots=True)
class ProbabilityDocument:
    """The map from scores to probabilities, and how it was judged: out of fold, and on its own labels."""

    detector: str
    params: Mapping[str, object]
    sample: object
    map: Mapping[str, object]
    monotone: bool
    out_of_fold: object
    apparent: object
    saved: bool
    evidence: LabelsAtHand


def run(args: Namespace) -> Answer:
    registry.get(args.detector)
    store = open_store(args)
    params = parse_pairs(args.param, "--param")
    config = configurations.resolve_config(store, args.detector, params)
    mapped = maps.fit(store, args.detector, sample=args.sample, config=config)
    if args.save:
        maps.save(store, mapped, by=user(), now=now())
    fitted = mapped.fitted
    at_hand = labels_at_hand(store, basis.resolve_sample(store, args.sample))
    document = ProbabilityDocument(
        detector=args.detector,
        params=dict(mapped.config.params),
        sample=mapped.sample,
        map=fitted.map.to_json(),
        monotone=fitted.curve.monotone,
        out_of_fold=maps.judged(fitted.reliability),
        apparent=maps.judged(fitted.apparent),
        saved=args.save,
        evidence=at_hand,
    )
    curve = fitted.curve
    rows = [("score", "P(hallucinated)")]
    for i in range(0, len(curve.scores), 12):
        rows.append((numbers.number(curve.scores[i]), numbers.share(curve.probabilities[i])))
    bins = [("predicted", "hallucinated", "95%", "labels")]
    for group in fitted.reliability.bins:
        share = group.hallucinated
        interval = numbers.interval(share.low, share.high)
        bins.append((numbers.share(group.predicted), numbers.share(share.value), interval, numbers.count(group.n)))
    lines = [f"{args.detector}: {sentences.sentence(mapped)}", *labels_lines(at_hand)]
    lines += [] if curve.monotone else [sentences.TURNS]
    lines += [table(rows, right=(0, 1)), "", table(bins, right=range(4))]
    lines += ["saved with the operating point; `release` takes it into the next version"] if args.save else []
    return Answer(document, "\n".join(lines))
