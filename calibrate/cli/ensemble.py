"""The verb about ensembles."""

from __future__ import annotations

from argparse import Namespace

from calibrate.cli import Answer
from calibrate.cli.common import now, open_store, user
from calibrate.cli.output import table
from calibrate.report.numbers import share
from calibrate.report.sentences import ensembles as wording
from calibrate.report.sentences.figures import interval
from calibrate.stats.ensembles.combine import Recipe
from calibrate.types import Interval
from calibrate.workflow.tuning import ensemble as step


def run(args: Namespace) -> Answer:
    if args.kind == "list":
        return _list(args)
    found = open_store(args)
    report = step.build(
        found,
        Recipe(args.kind, k=args.k, expensive=args.last or "", pass_share=args.pass_share),
        args.detectors or step.best_names(found, sample=args.sample),
        sample=args.sample,
        budget=args.budget,
        saved_thresholds=args.thresholds == "saved",
    )
    if args.save is not None:
        step.save(found, args.save, wording.document(report), by=user(), now=now())
    document = {
        **wording.document(report),
        "compared": [
            {"name": one.name, "single": one.single, "recall": _json(one.figures.recall),
             "precision": _json(one.figures.precision), "difference": _json(one.apart) if one.apart else None}
            for one in report.compared
        ],
        "joint": [{"k": j.k, "measured": _json(j.measured), "assumed": None} for j in report.joint],
        "saved": args.save,
    }  # fmt: skip
    return Answer(document, "\n".join(_lines(report, args.save)))


def _list(args: Namespace) -> Answer:
    saved = step.saved(open_store(args))
    if not saved:
        return Answer({"ensembles": []}, "no ensemble is saved yet: `ensemble logistic --save NAME` makes one")
    rows = [("name", "kind", "detectors", "by", "on")]
    rows += [
        (one.name, one.document["kind"], " ".join(one.document["detectors"]), one.saved_by, f"{one.saved_at:%Y-%m-%d}")
        for one in saved
    ]
    documents = [{"name": one.name, "saved_by": one.saved_by, **one.document} for one in saved]
    return Answer({"ensembles": documents}, table(rows))


def _lines(report: step.Report, name: str | None) -> list[str]:
    rows = [("at the same budget", "recall", "95%", "precision", "95%", "against the best single, points")]
    for one in report.compared:
        recall, precision = one.figures.recall, one.figures.precision
        apart = wording.difference_words(one.apart) if one.apart else ""
        known = (_share(recall), interval(recall, unit=""), _share(precision), interval(precision, unit=""))
        rows.append((one.name, *known, apart))
    lines = [
        f"{report.recipe.kind} of {wording.names(report.rule.detectors)}; {report.n} labels, "
        f"{report.positives} hallucinated",
        " ".join(wording.sentences(report)),
        wording.page_cut(report),
        *wording.notes(report),
        table(rows, right=(1, 3)),
        *(wording.joint_sentence(one, report.able, report.budget) for one in report.joint[:2]),
        "Figures are out of fold (10 times 5 folds), the choice of the best single detector among them.",
    ]
    return [*lines, f"saved as {name}"] if name else lines


def _share(figure: Interval) -> str:
    return "–" if figure.value is None else share(figure.value)


def _json(figure: Interval) -> dict[str, float | None]:
    return {"value": figure.value, "low": figure.low, "high": figure.high}
