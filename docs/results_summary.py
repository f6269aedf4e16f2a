"""The part of docs/reference/results.md that says which detectors are worth running, computed from every data set."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from results_points import ENOUGH

from calibrate import registry
from calibrate.orientation import suspicion
from calibrate.report.sentences.detection.worth import WORDS
from calibrate.report.sentences.tuning.ensembles import names
from calibrate.stats.fitting.folds import deal_folds
from calibrate.stats.fitting.ridge import fit_ridge, with_one
from calibrate.stats.intervals.bootstrap import Units
from calibrate.stats.intervals.ranking_differences import compare_rankings
from calibrate.stats.sweep.design import Bools, Floats
from calibrate.types import Interval
from calibrate.workflow.evidence.score_matrix import load_score_matrix
from calibrate.workflow.tuning.worth import Worth
from db import Store

BASE = "token_overlap"
FOLDS, REPEATS = 5, 10
HEAD = "**Beside word overlap** (`token_overlap`)."
COLUMNS = "| detector | n | AUROC over it | AUROC of both together over it |"
WORTH = {
    "worth": Worth.RUN,
    "sometimes": Worth.SOMETIMES,
    "nothing": Worth.NOTHING,
    "unknown": Worth.UNMEASURED,
}
HOLDS = {
    "sources, or the context that was given": ("context", "sources"),
    "alternatives (further answers to the question)": ("alternatives",),
    "log-probabilities of tokens": ("tokens",),
    "a schema of the answer": ("schema",),
}
ALONE = {"schema": "on the JSON-Schema conformance suite alone"}
SETS = 2  # on how many a gain must be shown

RULE = """\
## Which detectors are worth running

Counting words costs nothing, so every other detector must earn its place beside `{base}`. On each data set with sources
(at least {enough} labels of either verdict that both could score) a detector is *better* if the 95% interval of the
difference of AUROC lies above 0, and it *adds* if that of a logistic of both over `{base}` alone does; the logistic is
fitted with each of {folds} folds left out in turn, {repeats} times over. A detector is **worth running** if it is
better or adds on at least {sets} sets, **sometimes worth it** on one, and **adds nothing** where it was compared and
did neither. Where too few labels have a score of `{base}` as well, a detector is **worth running** if the interval of
its AUROC lies above .5. Where a detector is shown to recognise the answering model and not the error, nothing that it
does counts as a gain. Within a verdict, those come first that are better or add on most sets, less those on which they
are worse. The Detect page says the same words, unless a store's own labels say otherwise. These are many
comparisons, each at 95% by itself: one of forty says too much by chance.
"""


@dataclass(frozen=True, slots=True)
class SetResult:
    """What one data set says of a detector: signs of the shown differences, or None where not compared.

    `ranks` is about chance, only where word overlap could not score.
    """

    better: int | None
    adds: int | None
    ranks: int | None
    owed: bool  # it scored there, and is still to be compared


def part(store: Store, seed: int) -> str:
    """A table of every detector that scored with `token_overlap`; empty where that scored too few labels."""
    matrix = load_score_matrix(store)
    if BASE not in matrix.scores:
        return ""
    base = suspicion(matrix.scores[BASE], matrix.flag_when[BASE])
    rows = []
    for name in sorted(matrix.scores):
        other = suspicion(matrix.scores[name], matrix.flag_when[name])
        both = np.isfinite(base) & np.isfinite(other)
        labels = matrix.labels[both]
        if name == BASE or min(labels.sum(), (~labels).sum()) < ENOUGH:
            continue
        units = Units.among([group for group, kept in zip(matrix.groups, both, strict=True) if kept]).of
        together = _together(np.column_stack([base[both], other[both]]), labels, units, seed)
        cells = [
            _difference(
                compare_rankings(labels, base[both], scores, rng=np.random.default_rng(seed), clusters=units).auroc
            )
            for scores in (other[both], together)
        ]
        rows.append(f"| {name} | {len(labels):,} | {' | '.join(cells)} |")
    return "\n\n".join([HEAD, "\n".join([COLUMNS, "|---|--:|---|---|", *rows])]) if rows else ""


def _together(scores: Floats, labels: Bools, units: np.ndarray, seed: int) -> Floats:
    """The log odds that a logistic gives each label out of fold, averaged over the repeats."""
    total = np.zeros(len(labels))
    for repeat in range(REPEATS):
        fold = deal_folds(labels, units, folds=FOLDS, rng=np.random.default_rng([seed, repeat]))
        for left_out in range(FOLDS):
            fitted, judged = fold != left_out, fold == left_out
            scale = scores[fitted].std(axis=0)
            z = (scores - scores[fitted].mean(axis=0)) / np.where(scale > 0, scale, 1.0)
            ridge = fit_ridge(z[fitted], labels[fitted].astype(float))
            total[judged] += with_one(z[judged]) @ ridge.coefficients
    return total / REPEATS


def _difference(interval: Interval | None) -> str:
    if interval is None or interval.value is None or interval.low is None or interval.high is None:
        return "–"
    return f"{_signed(interval.value)} ({_signed(interval.low)} to {_signed(interval.high)})"


def _signed(value: float) -> str:
    if abs(value) < 0.0005:
        return "0"
    return f"{'+' if value > 0 else '−'}{abs(value):.3f}".replace("0.", ".", 1)


# ---------------------------------------------------------------------------------------------- the page's beginning


def top(sections: Mapping[str, str]) -> str:
    """The rule, the verdicts and their table, from the tables of the sections."""
    results = _results(sections)
    verdicts = {name: _verdict(of_sets) for name, of_sets in results.items() if name != BASE}
    rule = RULE.format(base=BASE, enough=ENOUGH, folds=FOLDS, repeats=REPEATS, sets=SETS)
    groups: list[tuple[str, str, bool | None]] = [
        ("Worth running without a model", "worth", False),
        ("Sometimes worth it without a model", "sometimes", False),
        ("Without a model, these add nothing beyond word overlap", "nothing", False),
        ("Worth running with the packaged embedding model", "worth", True),
        ("Sometimes worth it with it", "sometimes", True),
        ("With it, these add nothing beyond word overlap", "nothing", True),
        ("Not compared on every set yet, so nothing is said", "unknown", None),
    ]
    lines = []
    for title, wanted, model in groups:
        members = [name + _only_on(name, results) for name in _those(verdicts, results, wanted, model=model)]
        if wanted == "worth" and not model:
            members = [f"`{BASE}` (the baseline itself)", *members]
        if members:
            lines.append(f"- **{title}:** {names(members)}.")
    return "\n\n".join([rule.rstrip(), "\n".join(lines), _by_fields(verdicts), _table(results, verdicts)])


def measured(sections: Mapping[str, str]) -> dict[str, dict[str, object]]:
    """Each detector's worth, on how many data sets it was compared, on how many of these with chance alone, on how many
    it gained, and its lead: what the Detect page reads."""
    results = _results(sections)
    areas = [ranks[BASE] for ranks in map(_ranks, sections.values()) if BASE in ranks]
    rows: dict[str, dict[str, object]] = {
        BASE: {
            "worth": Worth.RUN.value,
            "gains": sum(side > 0 for side in areas),
            "sets": len(areas),
            "by_chance": len(areas),
            "lead": sum(areas),
        }
    }
    for name in sorted({*results} - {BASE}):
        of_sets = results[name]
        rows[name] = {
            "worth": WORTH[_verdict(of_sets)].value,
            "gains": sum(max(each.better or 0, each.adds or 0, each.ranks or 0) > 0 for each in of_sets),
            "sets": sum(each.better is not None or each.ranks is not None for each in of_sets),
            "by_chance": sum(each.better is None and each.ranks is not None for each in of_sets),
            "lead": _lead(of_sets),
        }
    return rows


def _results(sections: Mapping[str, str]) -> dict[str, list[SetResult]]:
    results: dict[str, list[SetResult]] = defaultdict(list)
    old = outdated(sections)
    for title, text in sections.items():
        for name, result in _read(text, old=title in old):
            results[name].append(result)
    return results


def _by_fields(verdicts: Mapping[str, str]) -> str:
    """What to switch on first, by what traces hold."""
    able = {BASE: "worth", **verdicts}
    lines = ["What to switch on first, by what the traces hold:", ""]
    for words, fields in HOLDS.items():
        readers = [name for name in able if registry.get(name).needs & {*fields}]
        first = sorted(name for name in readers if able[name] == "worth")
        then = sorted(name for name in readers if able[name] == "sometimes")
        items = [names([f"`{name}`" for name in members]) for members in (first, then) if members]
        lines.append(
            f"- **{words[:1].upper()}{words[1:]}:** {', then '.join(items) or 'nothing adds to the baselines'}."
        )
    return "\n".join(lines)


def _those(
    verdicts: Mapping[str, str], results: Mapping[str, Sequence[SetResult]], wanted: str, *, model: bool | None
) -> list[str]:
    """The detectors of a verdict, each as code, the largest lead first."""
    members = [
        name
        for name, verdict in verdicts.items()
        if verdict == wanted and (model is None or bool(registry.make(name, {}).revision()) == model)
    ]
    return [f"`{name}`" for name in sorted(members, key=lambda name: (-_lead(results[name]), name))]


def _lead(results: Sequence[SetResult]) -> int:
    """On how many sets a detector is better, plus on how many it adds, less on how many it is worse; where word overlap
    could not score, chance is what it is held to."""
    held_to = [result.ranks if result.better is None else result.better for result in results]
    return sum(side or 0 for side in held_to) + sum((result.adds or 0) > 0 for result in results)


def _only_on(name: str, results: Mapping[str, Sequence[SetResult]]) -> str:
    """Say on which one set alone a detector was measured, where that tests something else than answers to questions."""
    compared = [result for result in results[name.strip("`")] if result.better is not None or result.ranks is not None]
    return f" ({ALONE[name.strip('`')]})" if len(compared) == 1 and name.strip("`") in ALONE else ""


def _verdict(results: Sequence[SetResult]) -> str:
    gains = sum((result.better or 0) > 0 or (result.adds or 0) > 0 for result in results)
    if gains >= SETS or any((result.ranks or 0) > 0 for result in results if result.better is None):
        return "worth"
    if gains:
        return "sometimes"
    if any(result.owed for result in results):
        return "unknown"
    return "nothing" if any(result.better is not None for result in results) else "unknown"


def _table(results: Mapping[str, Sequence[SetResult]], verdicts: Mapping[str, str]) -> str:
    words = {verdict: WORDS[worth] for verdict, worth in WORTH.items()}
    rows = ["| detector | sets compared | better | worse | adds | without word overlap, above chance | |"]
    rows.append("|---|--:|--:|--:|--:|--:|---|")
    order = list(words)
    for name in sorted(verdicts, key=lambda name: (order.index(verdicts[name]), -_lead(results[name]), name)):
        compared = [result for result in results[name] if result.better is not None]
        alone = [result for result in results[name] if result.better is None and result.ranks is not None]
        better, adds = Counter(result.better for result in compared), Counter(result.adds for result in compared)
        ranks = f"{sum(result.ranks == 1 for result in alone)} of {len(alone)}" if alone else ""
        rows.append(
            f"| {name} | {len(compared)} | {better[1]} | {better[-1]} | {adds[1]} | {ranks} | {words[verdicts[name]]} |"
        )
    return "\n".join(rows)


_AUROC = re.compile(r"\| (\w+) \| [\d,]+ \| \d+% \| [\d.]+ \(([\d.]+)–([\d.]+)\) \|")
_ONLY_MODEL = re.compile(r"^\| (\w+) \| [\d,]+ \| .* \| model \|$", re.MULTILINE)
_BESIDE = re.compile(r"\| (\w+) \| [\d,]+ \| (\S+(?: \(\S+ to \S+\))?) \| (\S+(?: \(\S+ to \S+\))?) \|$", re.MULTILINE)


def _read(section: str, *, old: bool) -> Iterator[tuple[str, SetResult]]:
    """What a section's tables say of each detector."""
    beside = {match[1]: (match[2], match[3]) for match in _BESIDE.finditer(section.partition(HEAD)[2])}
    ranks, models = _ranks(section), {match[1] for match in _ONLY_MODEL.finditer(section)}
    for name in sorted({*beside, *ranks} & {*registry.names()}):
        over, together = beside.get(name, ("–", "–"))
        if name in models:  # it ranks the models, which is no gain
            yield name, SetResult(*((0, 0, None) if BASE in ranks else (None, None, 0)), owed=False)
            continue
        owed = old and BASE in ranks and name in ranks and name not in beside
        yield name, SetResult(_sign(over), _sign(together), None if BASE in ranks else ranks.get(name), owed)


def _ranks(section: str) -> dict[str, int]:
    """On which side of chance the interval of each detector's AUROC lies; 0 if on both."""
    return {match[1]: _side(float(match[2]) - 0.5, float(match[3]) - 0.5) for match in _AUROC.finditer(section)}


def _sign(cell: str) -> int | None:
    """Which side of 0 the interval of a cell lies on; 0 if on both, None without one."""
    bounds = re.search(r"\((\S+) to (\S+)\)", cell)
    if bounds is None:
        return None
    low, high = (float(bound.replace("−", "-")) for bound in bounds.groups())
    return _side(low, high)


def _side(low: float, high: float) -> int:
    return 1 if low > 0 else -1 if high < 0 else 0


def versions(detectors: Iterable[str]) -> str:
    """A comment in a section that names the versions its figures were made with."""
    return f"<!-- made with {', '.join(f'{name} {registry.get(name).version}' for name in detectors)} -->"


def outdated(sections: Mapping[str, str]) -> list[str]:
    """The sections whose figures were made with an earlier version of a detector, or do not say with which."""
    titles = []
    for title, text in sections.items():
        made = re.search(r"<!-- made with (.*) -->", text)
        pairs = re.findall(r"(\w+) (\S+?)(?:,|$)", made[1]) if made else []
        if made is None or any(registry.get(name).version != version for name, version in pairs):
            titles.append(title)
    return titles
