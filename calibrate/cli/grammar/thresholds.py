"""Verbs about thresholds and releases."""

from __future__ import annotations

from calibrate.cli.grammar import Once, Parser, Verbs, add_evidence, add_on_missing, add_verb


def add(verbs: Verbs) -> None:
    add_evidence(add_verb(verbs, "sweep", "show a detector's precision and recall at every threshold"))

    verb = add_verb(verbs, "choose", "choose a detector's operating point by a policy")
    add_evidence(verb)
    verb.add_argument(
        "--policy",
        default="precision>=0.7",
        help='"precision>=0.7" (default), "recall>=0.9", f1, f-beta:BETA, cost:fa=1,miss=20, "alerts<=20/day", elbow, '
        "manual:THRESHOLD",
    )
    verb.add_argument(
        "--strength",
        default="measured",
        choices=("measured", "bounded", "certified"),
        help="of a precision: measured on these labels (default), bounded by them, or proved by `certify`",
    )
    verb.add_argument(
        "--looks",
        type=int,
        metavar="N",
        help="bounded: share its 5%% among N detectors compared and looks at growing labels (default 1)",
    )
    verb.add_argument(
        "--moved-from",
        metavar="POLICY",
        help="manual: the policy whose target it must reach (default: the one saved or released last)",
    )
    verb.add_argument("--save", action="store_true", help="save the point, so that `release` takes it")
    verb.add_argument("--reason", default="", metavar="TEXT", help="why a point that is known to be bad shall be saved")

    verb = add_verb(verbs, "segments", "choose a threshold for each segment of the traffic, where that finds more")
    add_evidence(verb)
    verb.add_argument(
        "--by",
        required=True,
        metavar="WHAT",
        help="what tells segments apart: operation, model, language, or attributes.NAME",
    )
    verb.add_argument(
        "--policy",
        default="precision>=0.7",
        help='"precision>=0.7" (default), "recall>=0.9", f1, f-beta:BETA or cost:fa=1,miss=20',
    )
    verb.add_argument("--save", action="store_true", help="save the thresholds, where they are shown to find more")
    verb.add_argument("--reason", default="", metavar="TEXT", help="why a point that is known to be bad shall be saved")

    verb = add_verb(verbs, "compare", "compare detectors, and say whether they differ beyond chance")
    verb.add_argument("detectors", nargs="+", metavar="DETECTOR")
    verb.add_argument(
        "--by",
        default="detectors",
        choices=("detectors", "settings", "models", "samples"),
        help="compare detectors (default), or one detector's settings, the models that answered, or the weeks",
    )
    verb.add_argument("--sample", action="append", metavar="NAME", help="default: all labels, or every sample")

    verb = add_verb(verbs, "scoreboard", "rank every detector on the same labels, beside trivial baselines")
    verb.add_argument("--sample", action=Once, metavar="NAME", help="default: every labelled trace")
    verb.add_argument("--csv", metavar="FILE", help="write the table to this file as well")
    verb.add_argument("--force", action="store_true", help="--csv: replace an existing file")

    verb = add_verb(verbs, "probability", "turn a detector's score into a probability, and judge that map")
    add_evidence(verb)
    verb.add_argument("--save", action="store_true", help="save the map with the detector's saved operating point")

    _add_ensemble(verbs)

    verb = add_verb(verbs, "learn", "fit a head on the detectors' findings to the labels, beside the best single one")
    verb.add_argument("detectors", nargs="*", metavar="DETECTOR", help="default: all that ask no endpoint")
    verb.add_argument("--sample", action=Once, metavar="NAME", help="default: every labelled trace")
    verb.add_argument("--seed", type=int, default=0, help="deal the folds anew (default 0)")
    verb.add_argument(
        "--save", action="store_true", help="let the detector `learned` use it; these labels count no more for it then"
    )
    verb.add_argument("--reason", default="", metavar="TEXT", help="why one that is not shown to gain shall be saved")

    verb = add_verb(verbs, "certify", "prove a threshold's precision on labels drawn for it, step by step")
    add_evidence(verb)
    verb.add_argument(
        "--by", metavar="WHAT", help="what tells segments apart: operation, model, language, or attributes.NAME"
    )
    verb.add_argument("--segment", metavar="NAME", help="certify for the traffic of this segment alone; with --by")
    verb.add_argument("--target", type=float, metavar="P", help="the precision to certify (default 0.7)")
    verb.add_argument(
        "--labels", type=int, metavar="N", help="test labels it may cost (default: 1.5 for each first one)"
    )
    verb.add_argument("--seed", type=int, help="plan and draw the same again (default: a new seed)")
    verb.add_argument("--fewer", action="store_true", help="draw all there are if they are fewer than planned")
    verb.add_argument("--save", action="store_true", help="save the certified point, so that `release` takes it")
    verb.add_argument("--reason", default="", metavar="TEXT", help="why a point that is known to be bad shall be saved")

    _add_release(verbs)

    verb = add_verb(verbs, "verify", "check a thresholds file: format, digest, fields, signature")
    verb.add_argument("file", metavar="FILE")
    verb.add_argument("--key", metavar="PUBLIC", help="the public key, in PEM, that must have signed it")

    verb = add_verb(verbs, "decide", "decide from scores as a runtime would")
    verb.add_argument("file", metavar="FILE")
    verb.add_argument(
        "--scores", required=True, metavar="SCORES.json", help='{"detector": score or null, …}; - for standard input'
    )
    verb.add_argument(
        "--segment",
        action="append",
        default=[],
        metavar="BY=NAME",
        help="of which segment the answer is, as operation=qa or attributes.tier=gold; may be repeated",
    )
    add_on_missing(verb)


def _add_ensemble(verbs: Verbs) -> None:
    verb = add_verb(verbs, "ensemble", "combine several detectors, and compare them with the best single one")
    kinds = ("list", "k_of_n", "logistic", "cascade")
    verb.add_argument("kind", choices=kinds, metavar="KIND", help=f"{', '.join(kinds[1:])}; or list the saved ones")
    verb.add_argument(
        "detectors", nargs="*", metavar="DETECTOR", help="default: the four that rank best, picked in every fold"
    )
    verb.add_argument("--k", type=int, default=2, metavar="K", help="k_of_n: how many must flag (default 2; 1: any)")
    verb.add_argument("--last", metavar="DETECTOR", help="cascade: the expensive one (default: the costliest)")
    verb.add_argument(
        "--pass", type=float, default=0.3, metavar="SHARE", dest="pass_share", help="cascade: the share it scores"
    )
    verb.add_argument(
        "--thresholds", default="equal", choices=("equal", "saved"), help="k_of_n: each detector's threshold"
    )
    verb.add_argument(
        "--budget",
        type=float,
        metavar="SHARE",
        help="of traffic to flag (default 0.05, or half of what is hallucinated where that is more)",
    )
    verb.add_argument("--sample", action=Once, metavar="NAME", help="default: every labelled trace")
    verb.add_argument("--save", metavar="NAME", help="save it under this name")
    verb.add_argument("--reason", default="", metavar="TEXT", help="why one that is known to be bad shall be saved")


def _add_release(verbs: Verbs) -> None:
    verb: Parser = add_verb(verbs, "release", "release the saved operating points as the next version")
    verb.add_argument("detectors", nargs="*", metavar="DETECTOR", help="default: every detector with a saved point")
    verb.add_argument("--out", metavar="FILE", help="the thresholds file, replaced atomically; or a URL like s3://…")
    verb.add_argument("--note", default="", metavar="TEXT", help="why, for the history")
    verb.add_argument(
        "--sign",
        metavar="KEYFILE",
        help="sign with this private key in PEM (default: TOUCHSTONE_SIGN_KEY); none: do not sign",
    )
    verb.add_argument(
        "--reason", default="", metavar="TEXT", help="why a point may be known to be bad, or worse than the live one"
    )
    verb.add_argument(
        "--ensemble", action="append", default=[], metavar="NAME", help="a saved ensemble to include; repeatable"
    )
    verb.add_argument(
        "--tier",
        action="append",
        default=[],
        metavar="NAME=TIER",
        help="page, signal or off (default: as in the live release; new detectors signal, new ensembles page)",
    )
    action = verb.add_mutually_exclusive_group()
    action.add_argument(
        "--check",
        action="store_true",
        help="say what stands between each saved threshold and its release; release nothing",
    )
    action.add_argument(
        "--again",
        type=int,
        metavar="VERSION",
        help="write a version to --out again, and commit what git lacks; release nothing",
    )
    action.add_argument(
        "--rollback", type=int, metavar="VERSION", help="release an earlier version's points as the next version"
    )
    action.add_argument("--proposals", action="store_true", help="list the releases that wait for a second person")
    action.add_argument("--approve", type=int, metavar="ID", help="release what another person proposed")
    action.add_argument("--decline", type=int, metavar="ID", help="decline a proposal, or withdraw your own")
