"""A judge's prompt made from labels: what it holds, what it costs, what it gains, and where judge and people differ."""

from __future__ import annotations

from calibrate.backends.chat import Estimate
from calibrate.report.numbers import count, decimals, difference, listed, money, number, points, share
from calibrate.sanitize import one_line
from calibrate.stats.aligning.gain import Gained
from calibrate.workflow.aligning.comparison import Compared
from calibrate.workflow.aligning.proposal import LONGEST, Proposal
from calibrate.workflow.aligning.saving import Standing
from calibrate.workflow.aligning.side_by_side import Difference, SideBySide

VERDICTS = {"hallucinated": "Hallucinated", "clean": "Clean"}


def holds(proposal: Proposal) -> str:
    """Say what a proposed prompt holds: "guide version 3, 6 kinds of error, 6 examples (3 hallucinated, 3 clean)"."""
    bad = sum(example.gold == "hallucinated" for example in proposal.examples)
    parts = [
        f"guide version {proposal.guide.version}",
        count(len(proposal.guide.kinds), "kind of error", "kinds of error"),
    ]
    examples = count(len(proposal.examples), "example")
    parts += [f"{examples} ({count(bad)} hallucinated, {count(len(proposal.examples) - bad)} clean)"]
    return ", ".join(parts)


def costs_labels(proposal: Proposal, *, saved: bool = False) -> str:
    """Say which labels saving the prompt takes, or has taken, out of every figure."""
    if not proposal.pool:
        return "It quotes no labels, so none leaves calibration."
    if not proposal.newly:
        earlier = count(len(proposal.pool), "label")
        return f"Its examples come from {earlier} that an earlier prompt has set aside: no other leaves."
    took = "has taken" if saved else "takes"
    return (
        f"Saving it {took} {count(proposal.newly)} of the {count(proposal.labels, 'label')} that count, a random part, "
        "out of calibration for good, for every detector: the judge has read labels of theirs."
    )


def never_compared(proposal: Proposal, standing: Standing) -> str:
    """Say that nobody knows whether a prompt judges better, and what was compared last instead."""
    last = standing.last
    other = ""
    if last is not None and last.after != proposal.after:
        other = (
            f" What was compared last is {last.after} ({count(last.examples, 'example')}, guide version {last.guide})."
        )
    return (
        f"{proposal.after} was never compared with {proposal.before}, which is in use: nobody knows whether it judges "
        f"better.{other}"
    )


def stands(proposal: Proposal, standing: Standing) -> str:
    """Say what is known of a proposed prompt: that it is in use, what its comparison shows, or that there is none."""
    if standing.in_use:
        return f"{proposal.after} is in use already."
    if standing.compared is not None:
        return verdict(standing.compared)
    return never_compared(proposal, standing)


def answered(proposal: Proposal, standing: Standing) -> str:
    """Say that what was compared last is in use, and that another prompt would be made by now."""
    current = proposal.before if standing.last is None else standing.last.after
    return (
        f"{current}, which was compared last, is in use already. By the labels and scores of now another would be "
        f"made: {proposal.after}, which was never compared."
    )


def scored_before(both: SideBySide) -> str | None:
    """Say that scores are of a prompt that is not in use any more; None where they are of the one in use."""
    if both.scored_with == both.in_use:
        return None
    return f"These scores are of prompt version {both.scored_with}. The one in use, {both.in_use}, has none yet."


def too_long(proposal: Proposal) -> str | None:
    """Say how many labels were too long to be examples; None where none was."""
    if not proposal.too_long:
        return None
    answers = count(proposal.too_long, "answer")
    return f"{answers} with more than {count(LONGEST)} characters of texts cannot be examples."


def asks(estimate: Estimate) -> str:
    """Say what a comparison asks of the chat endpoint."""
    cached = f", {count(estimate.cached)} more are answered already" if estimate.cached else ""
    cost = (
        "its cost is not known (no price in prices.csv)" if estimate.cost is None else f"at most {money(estimate.cost)}"
    )
    return (
        f"{count(estimate.requests, 'request')}{cached}; about {count(estimate.prompt_tokens)} tokens read, at most "
        f"{count(estimate.completion_tokens)} written; {cost}"
    )


def verdict(compared: Compared) -> str:
    """Say what a comparison shows."""
    if compared.gain.ranking.missing is not None:
        return "Too few labels of either verdict to compare the prompts."
    return {
        Gained.BETTER: "The new prompt judges better than the present one.",
        Gained.WORSE: "The new prompt judges worse than the present one.",
        Gained.OPEN: "Not shown to differ: labels do not tell the two prompts apart.",
    }[compared.gain.verdict]


def figures(compared: Compared) -> list[str]:
    """The figures behind the verdict, a line each."""
    ranking, precision = compared.gain.ranking, compared.gain.precision
    lines = [
        f"{count(ranking.n, 'label')} of {count(compared.labels)} that both prompts scored, {count(ranking.positives)} "
        f"hallucinated, {count(ranking.clusters, 'source')}; each judged by a prompt that has not read of its source"
    ]
    if ranking.first is not None and ranking.second is not None:
        lines.append(
            f"AUROC {decimals(ranking.first.auroc)} → {decimals(ranking.second.auroc)}: "
            f"{difference(ranking.auroc.value, ranking.auroc.low, ranking.auroc.high)}"
        )
        gain = precision.interval
        recall = f"at a recall of {share(precision.recall)}{', as released' if compared.released else ''}"
        lines.append(
            f"precision {recall}: {share(precision.first)} → {share(precision.second)}, "
            f"{points(gain.value, gain.low, gain.high)}"
        )
    if compared.second_scored < compared.first_scored:
        why = listed([f"{reason} ({count(n)})" for reason, n in compared.why.items()])
        scored = (
            f"the new prompt scored {count(compared.second_scored)}, the present one {count(compared.first_scored)}"
        )
        lines.append(f"{scored}: {why}")
    if compared.looks > 1:
        lines.append(
            f"{count(compared.looks)} prompts were compared on this judge, so each needs more to count as better"
        )
    return lines


def apart(both: SideBySide) -> str:
    """Say how often the judge is on the other side: "On 12 of 80 labels the judge is on the other side"."""
    return f"On {count(both.wrong)} of {count(both.labels, 'label')} the judge is on the other side than people."


def judge_says(each: Difference) -> str:
    """The judge's score in words: "0.92, leaning to hallucinated"."""
    side = "hallucinated" if each.score > 0.5 else "clean" if each.score < 0.5 else "neither"
    return f"{number(each.score, 2)}, leaning to {side}"


def people_say(each: Difference) -> str:
    """The verdict of people with the kinds of error: "Hallucinated: Invented number"."""
    kinds = ", ".join(one_line(kind, 60) for kind in each.kinds)
    return f"{VERDICTS.get(each.gold, each.gold)}{f': {kinds}' if kinds else ''}"
