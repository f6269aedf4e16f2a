"""`align`: make a judge's prompt from guidelines and labels, compare it with the one in use, save it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from calibrate import settings
from calibrate.cli import Answer
from calibrate.cli.common import now, open_store, user
from calibrate.cli.output import table
from calibrate.cli.progress import progress
from calibrate.errors import BadInput
from calibrate.report import numbers
from calibrate.report.sentences.detection import aligning as sentences
from calibrate.sanitize import one_line, visible
from calibrate.types import Interval
from calibrate.workflow.aligning import comparison, proposal, saving
from calibrate.workflow.aligning.judges import load_judge
from calibrate.workflow.aligning.side_by_side import side_by_side
from db import Store

WIDEST = 70  # characters of a reason or a note on a terminal; --json has all


@dataclass(frozen=True, slots=True)
class ExampleDocument:
    """`off`: how far the present judge is from people's verdict, 0 to 1; None where it has no score."""

    trace_id: str
    gold: str
    off: float | None


@dataclass(frozen=True, slots=True)
class ProposalDocument:
    """A prompt made from labels. Saving it sets `set_aside` labels aside, of which `newly` count until then.

    `compared` says whether it ever was with the one in use, and `verdict` what that showed: better, worse or open.
    `in_use`: it is the judge's already, or what was compared last is. `reason` is why it was saved without a gain.
    """

    detector: str
    file: str
    before: str
    after: str
    guide: int
    examples: Sequence[ExampleDocument]
    set_aside: int
    newly: int
    labels: int
    too_long: int
    saved: bool
    compared: bool
    verdict: str | None
    in_use: bool
    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class ComparisonDocument:
    """The new prompt against the present one: `auroc` and `precision` are gains with their 95% intervals."""

    detector: str
    before: str
    after: str
    guide: int
    verdict: str
    labels: int
    n: int
    positives: int
    sources: int
    first_scored: int
    second_scored: int
    auroc: Interval
    precision: Interval
    recall: float
    released: bool
    looks: int
    why: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class AskDocument:
    """What a comparison would ask of the chat endpoint."""

    requests: int
    cached: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


@dataclass(frozen=True, slots=True)
class DifferenceDocument:
    trace_id: str
    score: float
    reasons: Sequence[str]
    gold: str
    kinds: Sequence[str]
    note: str | None
    labeller: str | None
    off: float
    quoted: bool


@dataclass(frozen=True, slots=True)
class DifferencesDocument:
    """`scored_with` is the version of the prompt that the scores are of, `in_use` that of the judge's prompt now."""

    labels: int
    wrong: int
    scored_with: str | None
    in_use: str | None
    differences: Sequence[DifferenceDocument]


def run(args: Namespace) -> Answer:
    for option, action in (("recall", "compare"), ("budget", "compare"), ("out", "propose")):
        if getattr(args, option) is not None and args.action != action:
            raise BadInput(f"--{option} is for {action}, not for {args.action}")
    if args.estimate and args.action != "compare":
        raise BadInput(f"--estimate is for compare, not for {args.action}")
    if args.reason and args.action != "save":
        raise BadInput(f"--reason is for save, not for {args.action}")
    if args.recall is not None and not 0 < args.recall <= 1:
        raise BadInput(f"--recall {args.recall:g} is no recall: give a share above 0 and up to 1, like 0.6")
    if args.budget is not None and not args.budget >= 0:
        raise BadInput(f"--budget {args.budget:g} is no sum of money: give dollars, like 2.50")
    store = open_store(args)
    if args.action == "differences":
        return _differences(store, args)
    return {"propose": _propose, "compare": _compare, "save": _propose}[args.action](store, args)


def _propose(store: Store, args: Namespace) -> Answer:
    judge = load_judge(store, args.detector, sample=args.sample)
    proposed = proposal.propose(store, judge, examples=args.examples)
    standing = saving.find_standing(store, proposed)
    reason = args.reason.strip()
    is_answered = standing.in_use or (standing.answered and not standing.gains and not reason)
    is_save = args.action == "save"
    saved = is_save and not is_answered and bool(standing.gains or reason)
    if saved:
        saving.save(store, proposed, reason=reason, by=user(), now=now())
    document = ProposalDocument(
        proposed.detector, proposed.file, proposed.before, proposed.after, proposed.guide.version,
        [ExampleDocument(each.trace_id, each.gold, each.off) for each in proposed.examples],
        len(proposed.pool), proposed.newly, proposed.labels, proposed.too_long, saved, standing.compared is not None,
        None if standing.compared is None else str(standing.compared.gain.verdict), is_answered,
        reason if saved else "",
        proposed.text,
    )  # fmt: skip
    if is_save and is_answered:
        say = sentences.stands if standing.in_use else sentences.answered
        return Answer(document, f"nothing to save: {say(proposed, standing)}")
    lines = [f"{proposed.file}: {sentences.holds(proposed)}"]
    if examples := proposed.examples:
        rows = [(one_line(each.trace_id, 60), each.gold, _off(each.off)) for each in examples]
        lines += [table([("example", "people say", "the judge is off by"), *rows], right=(2,))]
    lines += filter(None, [sentences.too_long(proposed)])
    if is_save:
        lines += [sentences.stands(proposed, standing), *_saved_or_not(proposed, saved, args.examples)]
        return Answer(document, "\n".join(lines), exit_code=0 if saved else 2)
    lines += [sentences.costs_labels(proposed)]
    if args.out is not None:
        try:
            Path(args.out).write_text(proposed.text, encoding="utf-8")
        except OSError as error:
            raise BadInput(f"--out {args.out}: {error.strerror or error}; name a file that can be written") from None
        lines += [f"the prompt is in {args.out}"]
    else:
        lines += ["", visible(proposed.text)]
    return Answer(document, "\n".join(lines))


def _saved_or_not(proposed: proposal.Proposal, saved: bool, examples: int) -> list[str]:
    if saved:
        return [
            f"saved as version {proposed.after}, in place of {proposed.before}",
            sentences.costs_labels(proposed, saved=True),
            f"Score the labels anew under it: `detect {proposed.detector} --labelled`",
        ]
    compare = f"align compare {proposed.detector} --examples {examples}"
    return [f"not saved: to save it all the same, say why with --reason TEXT; `{compare}` measures what it gains"]


def _off(off: float | None) -> str:
    return "no score" if off is None else numbers.decimals(off, 2)


def _compare(store: Store, args: Namespace) -> Answer:
    settings.chat()  # raises for a setting that is wrong
    judge = load_judge(store, args.detector, sample=args.sample)
    if args.estimate:
        ask = comparison.estimate(store, judge, examples=args.examples)
        document = AskDocument(ask.requests, ask.cached, ask.prompt_tokens, ask.completion_tokens, ask.cost)
        return Answer(document, f"the comparison would ask {sentences.asks(ask)}")
    done = total = 0
    with progress(args, "judging", "answer") as advance:

        def show(now_done: int, now_total: int) -> None:
            nonlocal done, total
            done, total = now_done, now_total
            advance(done, total)

        try:
            compared = comparison.compare(
                store, judge, examples=args.examples, recall=args.recall, budget=args.budget, by=user(), now=now(),
                on_progress=show,
            )  # fmt: skip
        except KeyboardInterrupt as stop:
            raise type(stop)(
                f"stopped at {done:,} of {total:,} answers: their replies are kept, and the same command goes on"
            ) from None
    gain = compared.gain
    result = ComparisonDocument(
        compared.detector, compared.before, compared.after, compared.guide, str(gain.verdict), compared.labels,
        gain.ranking.n, gain.ranking.positives, gain.ranking.clusters, compared.first_scored, compared.second_scored,
        gain.ranking.auroc, gain.precision.interval, gain.precision.recall, compared.released, compared.looks,
        compared.why,
    )  # fmt: skip
    versions = f"{compared.after} against {compared.before}, which is in use"
    return Answer(result, "\n".join([versions, sentences.verdict(compared), *sentences.figures(compared)]))


def _differences(store: Store, args: Namespace) -> Answer:
    both = side_by_side(store, args.detector, limit=args.limit)
    document = DifferencesDocument(
        both.labels,
        both.wrong,
        both.scored_with,
        both.in_use,
        [
            DifferenceDocument(
                each.trace_id, each.score, [reason.text for reason in each.reasons], each.gold, each.kinds, each.note,
                each.labeller, each.off, each.quoted,
            )
            for each in both.differences
        ],
    )  # fmt: skip
    rows = [
        (
            one_line(each.trace_id, 40), numbers.decimals(each.score, 2),
            one_line(each.reasons[0].text if each.reasons else "", WIDEST), sentences.people_say(each),
            one_line(each.note or "", WIDEST),
        )
        for each in both.differences
    ]  # fmt: skip
    head = ("trace", "score", "the judge says", "people say", "note")
    lines = [sentences.apart(both), table([head, *rows], right=(1,))]
    if before := sentences.scored_before(both):
        lines.insert(0, f"{before} Run `detect {args.detector} --labelled`.")
    return Answer(document, "\n".join(lines))
