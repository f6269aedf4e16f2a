"""`probability`."""

from __future__ import annotations

from argparse import Namespace

from calibrate import registry
from calibrate.cli import Answer
from calibrate.cli.common import now, open_store, parse_pairs, user
from calibrate.cli.output import table
from calibrate.report import numbers
from calibrate.report.sentences import probability as sentences
from calibrate.workflow.detection import configurations
from calibrate.workflow.tuning import probability as maps


def run(args: Namespace) -> Answer:
    registry.get(args.detector)
    found = open_store(args)
    params = parse_pairs(args.param, "--param")
    config = configurations.resolve_config(found, args.detector, params)
    mapped = maps.fit(found, args.detector, sample=args.sample, config=config)
    if args.save:
        maps.save(found, mapped, by=user(), now=now())
    fitted = mapped.fitted
    document = {
        "detector": args.detector,
        "params": dict(mapped.config.params),
        "sample": mapped.sample,
        "map": fitted.map.to_json(),
        "monotone": fitted.curve.monotone,
        "out_of_fold": maps.judged(fitted.reliability),
        "apparent": maps.judged(fitted.apparent),
        "saved": bool(args.save),
    }
    rows = [("score", "P(hallucinated)")]
    places = range(0, len(fitted.curve.scores), 12)
    rows += [(f"{fitted.curve.scores[i]:.4g}", f"{fitted.curve.probabilities[i]:.1%}") for i in places]
    bins = [("predicted", "hallucinated", "95%", "labels")]
    bins += [
        (
            f"{one.predicted:.1%}",
            f"{one.hallucinated.value:.1%}",
            numbers.decimal_interval(one.hallucinated.low, one.hallucinated.high, 2),
            str(one.n),
        )
        for one in fitted.reliability.bins
    ]
    turns = [] if fitted.curve.monotone else [sentences.TURNS]
    kept = ["saved with the operating point; `release` takes it into the next version"] if args.save else []
    said = [f"{args.detector}: {sentences.sentence(mapped)}", *turns]
    return Answer(document, "\n".join([*said, table(rows, right=(0, 1)), "", table(bins, right=range(4)), *kept]))
