"""The labelled evidence that options name, and what is said of it beside figures."""

from __future__ import annotations

from argparse import Namespace

from calibrate import registry
from calibrate.cli.pairs import parse_pairs
from calibrate.report.sentences.labelling import labels as sentences
from calibrate.workflow.evidence import evidence, loading
from calibrate.workflow.evidence.labels_at_hand import LabelsAtHand
from db import Store


def load_labelled(store: Store, args: Namespace) -> evidence.Evidence:
    registry.get(args.detector)
    return loading.load_evidence(store, args.detector, sample=args.sample, params=parse_pairs(args.param, "--param"))


def describe_params(data: evidence.Evidence) -> str:
    """The parameters that are not those it ships with, in brackets."""
    usual = registry.config_of(registry.make(data.config.name))
    other = [f"{key}={value}" for key, value in data.config.params.items() if usual.get(key) != value]
    return f" ({', '.join(other)})" if other else ""


def labels_lines(at_hand: LabelsAtHand) -> list[str]:
    """Say which labels the figures stand on, what undecided ones could change, and what waits."""
    return [sentences.facts(at_hand), *sentences.open_ones(at_hand)]
