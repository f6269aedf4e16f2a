"""What a file is, which fields it fills, and what became of its labels, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calibrate.ingest.formats import formats, title_of
from calibrate.ingest.inspection.profile import FIELDS, MORE_FIELDS, Profile
from calibrate.report.numbers import count, listed
from calibrate.report.sentences.detection.readiness import FIELDS as LACKING
from calibrate.report.sentences.detection.readiness import how_to_log
from calibrate.sanitize import one_line, visible
from calibrate.types import Sample
from calibrate.workflow.detection.usable import Usable
from calibrate.workflow.traces.import_labelled import Imported
from calibrate.workflow.traces.membership import InSample, Membership

FIELD_WORDS = {
    "retrieval_scores": "retrieval scores",
    "tokens": "log-probabilities",
    "timestamp": "time",
    "label": "labels",
}
QUESTION = "How were these traces chosen?"
"""What the Import page asks."""
OPTION = "with --design random, flagged or feedback"
ANSWER = f"with an answer to “{QUESTION}”"


def unstated(labels: Membership, how: str = OPTION) -> list[str]:
    """Say where labels count that came without a statement: as members of samples, or nowhere yet. `how` one states
    it: by an option of the command, or by the ANSWER on the page."""
    lines = [_in_sample(each) for each in labels.samples]
    if labels.outside and not labels.samples:
        lines.append(
            "labels outside samples choose no threshold unless every trace has one: import the file again "
            f"{how}, to say how its labelled traces were chosen"
        )
    elif labels.outside:
        lines.append(
            f"{count(labels.outside, 'label is', 'labels are')} of traces in no sample: such labels choose no "
            f"threshold unless every trace has one; import them again in a file of their own {how}, to say how these "
            "traces were chosen"
        )
    return lines


def replaced(redacted: Mapping[str, int]) -> str:
    """Say what was replaced by placeholders before anything was stored."""
    kinds = ", ".join(f"{count(n)} × {visible(kind, 40)}" for kind, n in sorted(redacted.items()))
    return f"replaced by placeholders before anything was stored: {kinds}"


def restated(before: str, sample: Sample) -> str:
    """Say what is known of a sample's design now, and what that changes."""
    if sample.design == before:
        return f"its design was stated as {before} already"
    change = f"its design was stated as {before}, and is now {sample.design}"
    if sample.design == "random":
        return f"{change}: its labels stand for the {count(sample.pool, 'trace')} of their window"
    return f"{change}: its labels describe no traffic, and what was chosen on them is known to be bad until chosen anew"


def recognised(title: str, looked_at: int, rejected: int, *, is_whole: bool) -> str:
    """Say what a file is and how much of it was looked at: "recognised as JSON lines: 500 traces, 3 rejected"."""
    traces = count(looked_at, "trace") if is_whole else f"{count(looked_at, 'trace')} of its beginning looked at"
    return f"recognised as {one_line(title, 80)}: {traces}{f', {count(rejected)} rejected' if rejected else ''}"


def assumed(columns: Mapping[str, str], command: str) -> str:
    """Say which columns a preview took, and the command that imports the file with them."""
    taken = [f"{field} from {visible(column, 60)!r}" for field, column in columns.items()]
    return f"assumed: {listed(taken, len(taken))}. `import` assumes nothing: `python -m calibrate {visible(command)}`"


def read_as(done: Imported) -> str:
    """Say what was read and which fields it fills."""
    benchmarks = [benchmark(each.title) for each in formats() if each.name == done.format and each.benchmark]
    caution = f"; {benchmarks[0]}" if benchmarks and done.profile.filled.get("label") else ""
    names = [one_line(name, 80) for name in done.report.read_with]
    beside = f", with the requests of {listed(names, len(names))}" if names else ""
    return f"read as {one_line(title_of(done.format), 80)}{beside}: {fields_filled(done.profile)}{caution}"


def fields_filled(profile: Profile) -> str:
    """Say how many traces have each field: "question, model 100%; sources 62%; log-probabilities 0%"."""
    shares: dict[str, list[str]] = {}
    names = (*FIELDS, *MORE_FIELDS)
    for name in sorted(names, key=lambda name: -profile.filled.get(name, 0)):
        shares.setdefault(filled(profile, name), []).append(field_name(name))
    return "; ".join(f"{', '.join(alike)} {share}" for share, alike in shares.items())


def field_name(name: str) -> str:
    return FIELD_WORDS.get(name, name)


def filled(profile: Profile, name: str) -> str:
    """The share of traces that have a field. Only all are 100%, and only none are 0%."""
    n = profile.filled.get(name, 0)
    if 0 < n < profile.n:
        return f"{min(99, max(1, round(100 * n / profile.n)))}%"
    return "100%" if n else "0%"


def can_run(rows: Sequence[Usable], *, looked_at: int, is_whole: bool = True) -> str:
    """Say how many detectors find what they read on some of the traces: "14 of 22 detectors can run on these 40 …"."""
    able = sum(row.able > 0 for row in rows)
    which = f"{'these' if is_whole else 'the first'} {count(looked_at, 'trace')}" if looked_at != 1 else "this trace"
    return f"{count(able)} of {count(len(rows), 'detector')} can run on {which}"


def waits_for(name: str, rows: Sequence[Usable]) -> str:
    """Say which detectors wait for a field, and how to log it."""
    who = listed([row.title for row in rows], len(rows))
    total = rows[0].total
    none = "the trace lacks" if total == 1 else f"0 of {count(total, 'trace')} have"
    return f"{who}: {none} {LACKING.get(name, name)}. {how_to_log(name)}"


def benchmark(title: str) -> str:
    """Say what the labels of a published data set are not."""
    return (
        f"its labels are those of a benchmark ({one_line(title, 80)}): they show how detectors rank on it, and say "
        "nothing of your own traffic. Keep it in a store of its own"
    )


def left_purged(n: int) -> str:
    """Say that traces stayed out because they were purged."""
    return f"{count(n, 'trace was purged and stays', 'traces were purged and stay')} out"


def _in_sample(labels: InSample) -> str:
    n = labels.counted + labels.waiting
    members = f"{count(n, 'label is of a member', 'labels are of members')} of the sample {labels.sample!r}"
    if not labels.waiting:
        return f"{members}: {'it counts' if n == 1 else 'all of them count'}"
    return (
        f"{members}: {count(labels.counted)} {'counts' if labels.counted == 1 else 'count'}, "
        f"{count(labels.waiting)} {'waits' if labels.waiting == 1 else 'wait'} behind a trace that nobody has labelled"
        ". Go through the sample in its order, and label what was skipped ('unsure' is a verdict)"
    )


def stated(sample: Sample) -> str:
    """Say which sample imported labels have become, and what that is good for."""
    name = f"the sample {sample.name!r}: {count(sample.size, 'labelled trace')}"
    if sample.design == "random":
        return f"they are {name}, drawn at random from the {count(sample.pool, 'trace')} of their window"
    how = "flagged" if sample.design == "flagged" else "picked or complained of"
    return f"they are {name} that were {how}; they can be read and detectors compared on them, no threshold is chosen"
