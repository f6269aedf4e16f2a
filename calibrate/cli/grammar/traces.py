"""Verbs about traces, samples and labels."""

from __future__ import annotations

from calibrate.cli.grammar import Once, Parser, TraceFormats, Verbs, add_verb

STATED = ("random", "flagged", "feedback")
DESIGN = (
    "how the labelled traces were chosen: random (from the traffic), flagged (by a detector or rule) or feedback "
    "(users complained, or somebody picked them); only random ones describe the traffic and choose thresholds"
)


def add(verbs: Verbs) -> None:
    verb = add_verb(
        verbs, "demo", "fill an empty store with the demo: a made-up shop's assistant, nine weeks of work done"
    )
    verb.add_argument(
        "--traces-only",
        action="store_true",
        help="sample traces of a small model alone, two thirds of them labelled, with nothing done yet",
    )

    verb = add_verb(verbs, "import", "import traces from files: your own records, and what other systems export")
    verb.add_argument("files", nargs="*", metavar="FILE")
    verb.add_argument(
        "--logged", action="store_true", help="no file: take in the answers that programs logged into the store"
    )
    verb.add_argument(
        "--preview",
        action="store_true",
        help="store nothing: say what each file is, which fields are filled, and which detectors can run",
    )
    verb.add_argument(
        "--format",
        default="auto",
        choices=TraceFormats(),
        metavar="NAME",
        help="auto (default) recognizes a file by what it holds; else one of: %(choices)s",
    )
    verb.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="FIELD=COLUMN",
        help="JSON, CSV, Parquet: the key or column of a field",
    )
    verb.add_argument(
        "--labels-as", metavar="NAME", help="the labeller of labels that name none (default: the file's name)"
    )
    verb.add_argument("--no-labels", action="store_true", help="leave out the labels in the file")
    verb.add_argument("--design", choices=STATED, help=DESIGN)
    verb.add_argument(
        "--strict", action="store_true", help="refuse a file with a bad line, whole, instead of skipping the line"
    )
    verb.add_argument("--again", action="store_true", help="take in traces that were purged, too")
    verb.add_argument(
        "--redact",
        metavar="KINDS",
        help="replace these before anything is stored: email,phone,card,key,presidio or module:function; none replaces "
        "nothing (default: TOUCHSTONE_REDACT)",
    )
    verb.add_argument(
        "--all", action="store_true", dest="everything", help="FILE is a whole store that `export --all` wrote"
    )

    verb = add_verb(verbs, "pull", "fetch new traces, scores and labels from a system that holds them")
    verb.add_argument(
        "system", nargs="?", metavar="SYSTEM", help="langfuse, phoenix, mlflow, langsmith or sql; keys from its own "
        "environment variables, like PHOENIX_API_KEY",
    )  # fmt: skip
    verb.add_argument("--list", action="store_true", help="pull nothing; list the pulls of this store")
    verb.add_argument("--forget", metavar="NAME", help="pull nothing; forget the pull NAME, and leave what it brought")
    verb.add_argument(
        "--since",
        default="14d",
        help="where the first pull begins, and how far back late scores and labels are looked for: 14d (default), "
        "2026-11-01 or all; sql: for a cursor of times",
    )
    verb.add_argument(
        "--query",
        metavar="SELECT",
        help="sql: what to read, with :since where the cursor column begins; @FILE reads it",
    )
    verb.add_argument(
        "--cursor", metavar="COLUMN", help="sql: the column by which the next pull goes on, like created_at"
    )
    verb.add_argument(
        "--preview", action="store_true", help="sql: store nothing; show what an import would make of the first rows"
    )
    verb.add_argument("--project", metavar="NAME", help="the system's project or experiment (default: its own)")
    verb.add_argument("--url", metavar="URL", help="where the system is (default: its own environment variable)")
    verb.add_argument("--name", metavar="NAME", help="what the pull is called here (default: system, project, host)")
    verb.add_argument("--limit", type=int, metavar="N", help="end when N new answers are in; the next pull goes on")
    verb.add_argument("--restart", action="store_true", help="begin at --since again, not where the last pull ended")
    verb.add_argument(
        "--overlap",
        default="1h",
        help="how far behind the last pull to begin, for what ended late (default 1h); sql: "
        "for a cursor of times, others begin 1,000 or one value behind",
    )
    verb.add_argument(
        "--column", action="append", default=[], metavar="FIELD=NAME", help="the attribute or column of a field"
    )
    verb.add_argument("--tool-results", action="store_true", help="take what tools returned for sources")
    verb.add_argument(
        "--verdict", action="append", default=[], metavar="NAME:VALUE=VERDICT",
        help="what a person's annotation means, like quality:wrong=hallucinated (langfuse, langsmith)",
    )  # fmt: skip
    verb.add_argument(
        "--redact", metavar="KINDS", help="replace these before anything is stored, as in `import` (TOUCHSTONE_REDACT)"
    )

    verb = add_verb(verbs, "traces", "list traces, newest first")
    verb.add_argument("--since", default="all", help="14d, 12h, 2026-11-01 or all (default)")
    verb.add_argument("--limit", type=int, default=20, metavar="N")
    verb.add_argument("--text", help="only traces with this text in the question or the answer")
    verb.add_argument("--label", default="any", help="any, unlabelled, labelled, clean, hallucinated, unsure, disputed")

    verb = add_verb(verbs, "sample", "draw traces for labelling, and record how they were drawn")
    verb.add_argument("name", metavar="NAME", nargs="?", help="default: the ISO week, like 2026-W47")
    verb.add_argument("--size", type=int, metavar="N", help="default: 300")
    verb.add_argument(
        "--minutes", type=float, metavar="M", help="as many traces as people label in M minutes each, at the pace here"
    )
    add_sharing(verb, "--assign")
    verb.add_argument(
        "--labellers", metavar="NAMES", help="with --minutes and --assign split: who shares the work, like ann,bob"
    )
    verb.add_argument(
        "--design",
        default="auto",
        choices=("auto", "random", "stratified", "octave", "uncertain", "fresh-flagged"),
        help="auto (default): octave once half of the window has scores, else random",
    )
    verb.add_argument("--by", metavar="ATTR", help="stratified: model, operation or an attribute")
    verb.add_argument(
        "--cut", metavar="DETECTOR=T", help="uncertain, fresh-flagged: the threshold to draw near, or flagged at"
    )
    verb.add_argument("--list", action="store_true", help="draw nothing; list the members of the sample NAME")
    verb.add_argument("--more", type=int, metavar="N", help="add N traces to the sample NAME, from the same window")
    verb.add_argument(
        "--state",
        choices=("random", "flagged", "feedback", "unknown"),
        help="draw nothing; say how the traces of NAME, a sample of imported labels, were chosen",
    )
    verb.add_argument(
        "--plan", type=float, metavar="W", help="draw nothing; say how many labels measure a precision to ±W"
    )
    verb.add_argument("--precision", type=float, default=0.7, metavar="P", help="plan: that precision (default 0.7)")
    verb.add_argument("--since", default="14d", help="14d (default), 2026-11-01, or all, which includes undated traces")
    verb.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="ATTR=VALUE",
        help="draw from traces of which an attribute, model or operation has this value; several must all hold",
    )
    verb.add_argument("--seed", type=int, help="draw the same traces again from the same store (default: a new seed)")

    verb = add_verb(verbs, "assign", "show or say who labels a sample, or give back what somebody holds")
    verb.add_argument(
        "action",
        nargs="?",
        default="show",
        choices=("show", "set", "give-back"),
        help="show (default); set says how the sample is shared; give-back leaves what a labeller holds to others",
    )
    verb.add_argument("--sample", action=Once, metavar="NAME", help="default: the newest")
    add_sharing(verb, "--mode")
    verb.add_argument("--seed", type=int, help="set: decides which traces are for two (default: the one before)")
    verb.add_argument("--labeller", metavar="NAME", help="give-back: whose traces")

    verb = add_verb(verbs, "labels", "import labels from a file, also of another labelling tool, or export them to one")
    verb.add_argument("direction", choices=("import", "export"))
    verb.add_argument("file", metavar="FILE")
    verb.add_argument(
        "--format",
        default="auto",
        choices=("auto", "jsonl", "csv", "label-studio", "argilla", "phoenix"),
        help="auto (default): import recognizes the file; export writes CSV where FILE ends in .csv, else JSON lines",
    )
    verb.add_argument("--sample", action=Once, metavar="NAME", help="export: only the labels of this sample")
    verb.add_argument(
        "--labels-as", metavar="NAME", help="import: the labeller of lines that name none (default: the file's name)"
    )
    verb.add_argument("--design", choices=STATED, help=f"import: {DESIGN}")
    verb.add_argument("--force", action="store_true", help="export: replace an existing file")

    verb = add_verb(verbs, "guidelines", "show or change what labellers are told, and their kinds of error")
    verb.add_argument(
        "action",
        nargs="?",
        default="show",
        choices=("show", "set", "history"),
        help="show (default) prints the guide as the file that set takes; history lists its versions",
    )
    verb.add_argument("file", nargs="?", metavar="FILE", help="set: a TOML file with guidelines and kinds")
    verb.add_argument("--at", type=int, metavar="VERSION", help="show: an older version (default: the newest)")
    verb.add_argument("--why", metavar="TEXT", help="set: what led to the change")

    verb = add_verb(verbs, "agreement", "measure how far labellers agree, and find labels to look at again")
    verb.add_argument(
        "action",
        nargs="?",
        default="show",
        choices=("show", "adjudicate", "second-look", "double"),
        help="show (default), decide a trace, list the labels most likely wrong, draw traces to label twice",
    )
    verb.add_argument("trace", nargs="?", metavar="TRACE_ID", help="adjudicate: the trace")
    verb.add_argument("--sample", action=Once, metavar="NAME", help="default: every labelled trace")
    verb.add_argument("--verdict", choices=("clean", "hallucinated", "unsure"), help="adjudicate: its gold from now on")
    verb.add_argument("--note", metavar="TEXT", help="adjudicate: why")
    verb.add_argument("--limit", type=int, default=20, metavar="N", help="second-look: how many (default 20)")
    verb.add_argument("--size", type=int, default=100, metavar="N", help="double: how many (default 100)")
    verb.add_argument("--name", metavar="NAME", help="double: the new sample's name (default: SAMPLE-double)")
    verb.add_argument("--seed", type=int, help="double: draw the same traces again")


def add_sharing(verb: Parser, option: str) -> None:
    """Let a verb say how a sample is shared."""
    verb.add_argument(
        option,
        choices=("everyone", "split"),
        help="everyone labels every trace (default), or each trace is for whoever comes first",
    )
    verb.add_argument("--overlap", type=float, metavar="SHARE", help="split: how many are for two (default 0.2)")
