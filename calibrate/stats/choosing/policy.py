"""The record of a policy, and its spelling: how a user writes it. `rules.py` places its cut."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibrate.errors import BadInput

Kind = Literal["precision", "recall", "f-beta", "cost", "alerts", "elbow", "manual"]
POLICIES = ", ".join(
    ("precision>=0.7", "recall>=0.9", "f1 (f0.5, f2)", "cost:fa=1,miss=20", "alerts<=20/day", "elbow or manual:0.42")
)


@dataclass(frozen=True)
class Policy:
    """The rule that chooses a threshold; `str()` gives the text that `parse` reads.

    `value`, by kind: `precision`, `recall`: the target (0 to 1]; `f-beta`: beta; `cost`: the price of a false alarm,
    beside `miss`, that of a miss, in any one unit; `alerts`: flags a day; `manual`: the threshold in the detector's
    units, or None where it is given apart; `elbow`: None.
    """

    kind: Kind
    value: float | None = None
    miss: float | None = None

    def __str__(self) -> str:
        if self.value is None:
            return self.kind
        return _WRITTEN[self.kind].format(_digits(self.value), _digits(self.miss or 0.0))

    @property
    def number(self) -> float:
        """`value`, where the kind has one. Raises BadInput where it was left out."""
        if self.value is None:
            raise BadInput(f"the policy {self.kind} needs a number: write {_EXAMPLES[self.kind]}")
        return self.value


_WRITTEN = {
    "precision": "precision>={}",
    "recall": "recall>={}",
    "f-beta": "f-beta:{}",
    "cost": "cost:fa={},miss={}",
    "alerts": "alerts<={}/day",
    "manual": "manual:{}",
}
_EXAMPLES = {
    "precision": "precision>=0.7",
    "recall": "recall>=0.9",
    "f-beta": "f-beta:1",
    "cost": "cost:fa=1,miss=20",
    "alerts": "alerts<=20/day",
    "manual": "manual:0.42",
}


def parse(text: str, policies: str = POLICIES) -> Policy:
    """The policy a user wrote, like one of POLICIES.

    Parameters
    ----------
    text : str
        As typed: "precision>=0.7", "f1", "cost:fa=1,miss=20", "manual:0.42".
    policies : str
        Those that an error names.

    Returns
    -------
    Policy
        The policy.

    Raises
    ------
    BadInput
        For a text that is no policy.
    """
    compact = "".join(text.split()).lower()
    for form, read in _FORMS.items():
        if match := re.fullmatch(form, compact):
            return read(text, *match.groups())
    raise BadInput(f"no policy {text!r}: write one of {policies}")


def _bare(_: str, kind: Literal["elbow", "manual"]) -> Policy:
    return Policy(kind)


def _by_hand(text: str, digits: str) -> Policy:
    return Policy("manual", _number(digits, text, "manual"))


def _target(text: str, kind: Literal["precision", "recall"], digits: str) -> Policy:
    value = _number(digits, text, kind)
    if not 0 < value <= 1:
        # Below 2 it is no share in percent that anybody asks for, but a slip.
        remedy = f"{kind}>={value / 100:g} for {value:g}%" if 2 <= value <= 100 else f"a share, like {_EXAMPLES[kind]}"
        raise BadInput(
            f"policy {text!r} asks for a {kind} of {value:g}; it must be above 0 and at most 1: write {remedy}"
        )
    return Policy(kind, value)


def _f_beta(text: str, long: str | None, short: str | None) -> Policy:
    return Policy("f-beta", _positive(long if long is not None else short or "", text, "f-beta", "beta"))


def _cost(text: str, inside: str) -> Policy:
    prices = dict(part.partition("=")[::2] for part in inside.split(","))
    if set(prices) != {"fa", "miss"}:
        raise BadInput(
            f"policy {text!r} needs the price of a false alarm and of a miss, in one unit: write {_EXAMPLES['cost']}"
        )
    alarm, miss = (_positive(prices[name], text, "cost", f"price {name}") for name in ("fa", "miss"))
    return Policy("cost", alarm, miss)


def _alerts(text: str, digits: str) -> Policy:
    return Policy("alerts", _positive(digits, text, "alerts", "number a day"))


_FORMS: dict[str, Callable[..., Policy]] = {
    "(elbow|manual)": _bare,
    "manual:(.*)": _by_hand,
    "(precision|recall)>=(.*)": _target,
    r"f-beta:(.*)|f([\d.].*)": _f_beta,
    "cost:(.*)": _cost,
    "alerts<=(.*)/day": _alerts,
}


def _positive(digits: str, text: str, kind: str, what: str) -> float:
    value = _number(digits, text, kind)
    if value <= 0:
        raise BadInput(f"policy {text!r}: its {what} is {value:g} and must be above 0; write {_EXAMPLES[kind]}")
    return value


def _number(digits: str, text: str, kind: str) -> float:
    try:
        value = float(digits)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise BadInput(f"policy {text!r}: {digits!r} is no number; write {_EXAMPLES[kind]}")
    return value


def _digits(value: float) -> str:
    # All digits: a threshold cut short may no longer flag the trace it was read from.
    return repr(float(value)).removesuffix(".0")
