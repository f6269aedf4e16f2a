"""Which of a model's outputs mean "supported": read from its labels, or from a map that a team gives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from calibrate.errors import BadInput, Unavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SUPPORTED = re.compile(
    r"attributable|consistent|entail(s|ed|ment)?|factual|factuallyconsistent|faithful|grounded|nohallucination|"
    r"(non|not)hallucinated|o|support(s|ed)?"
)
_UNSUPPORTED = re.compile(
    r"baseless|conflict|contradict(s|ion|ory)?|extrinsic|fabricat(ed|ion)|hal(lucinated|lucination)?|inconsistent|intrinsic|neutral|"
    r"(non|not)(attributable|consistent|entail(ed|ment)|factual|faithful|grounded|supported)|notenoughinfo|"
    r"refute[sd]?|unfaithful|ungrounded|unsupported"
)
_UNDECIDED = re.compile(r"neutral|not\W?enough\W?info")  # a team may count these on either side
_POSITIONS = re.compile(r"label_?\d+|\d+")

Activation = Literal["softmax", "sigmoid", "none"]


@dataclass(frozen=True, slots=True)
class Reading:
    """How support is read from a row of logits: the columns that mean supported, and the activation that `transformers`
    would apply: softmax over several labels, a sigmoid of one, or none for a regressor (whose output is cut to 0..1).

    Where no column means supported, the model's only label means unsupported.
    """

    supported: tuple[int, ...]
    activation: Activation

    def support(self, logits: NDArray[np.float32]) -> NDArray[np.float32]:
        """Compute the probability of "supported", along the last axis of the logits."""
        import numpy as np

        if self.activation == "softmax":
            powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
            powers /= powers.sum(axis=-1, keepdims=True)
            return np.asarray(powers[..., list(self.supported)].sum(axis=-1), dtype=np.float32)
        values = logits[..., list(self.supported or (0,))].max(axis=-1).astype(np.float64)
        values = 0.5 * (1.0 + np.tanh(0.5 * values)) if self.activation == "sigmoid" else np.clip(values, 0.0, 1.0)
        return np.asarray(values if self.supported else 1.0 - values, dtype=np.float32)


def meaning(label: str) -> bool | None:
    """Tell whether a label's name means supported (True) or unsupported (False); None for any other name."""
    name = re.sub(r"^[bilsu][-_](?=\w)", "", label.strip().lower())
    name = re.sub(r"[\W_]", "", name)
    return True if _SUPPORTED.fullmatch(name) else False if _UNSUPPORTED.fullmatch(name) else None


def parse_map(labels: str) -> dict[str, bool]:
    """Parse a label map, "LABEL_1=supported, LABEL_0=unsupported" or "1=supported": whether a label, or a position,
    means supported.

    Raises BadInput for what is no such map.
    """
    entries: dict[str, bool] = {}
    for item in filter(None, (part.strip() for part in labels.split(","))):
        label, equals, word = item.partition("=")
        means = meaning(word)
        if not equals or not label.strip() or means is None:
            raise BadInput(
                f"the label map {labels!r} cannot be read at {item!r}; write the labels' names or positions with what "
                "they mean, such as 1=supported, 0=unsupported"
            )
        entries[label.strip().lower()] = means
    return entries


def read_labels(
    config: Mapping[str, Any], given: Mapping[str, bool], where: str, *, usual: Mapping[str, bool] | None = None
) -> Reading:
    """Decide which columns mean supported: by the map `given`, else by `id2label`, else by the `usual` of a template
    where the labels only count up (LABEL_0, LABEL_1).

    Raises Unavailable, naming the labels, where none of them says, or where their names say the opposite of the map.
    """
    id2label = config.get("id2label")
    names = {int(at): str(name) for at, name in id2label.items()} if isinstance(id2label, Mapping) else {}
    if not names or sorted(names) != list(range(len(names))):
        n_labels = config.get("num_labels")
        names = {at: f"LABEL_{at}" for at in range(n_labels if isinstance(n_labels, int) and n_labels > 0 else 2)}
    means = _apply(given, names, where) if given else [meaning(names[at]) for at in range(len(names))]
    if not given and all(_POSITIONS.fullmatch(name.strip().lower()) for name in names.values()):
        if usual is not None and len(names) == len(usual):
            means = [usual[str(at)] for at in range(len(names))]
        elif len(names) == 1:
            means = [True]
    listed = ", ".join(names[at] for at in sorted(names))
    if (turned := next((at for at in names if _contradicts(names[at], means[at])), None)) is not None:
        raise Unavailable(
            f"the label map says that output {turned} of the model in {where} means "
            f"{'supported' if means[turned] else 'unsupported'}, and the model calls that output {names[turned]!r}; "
            "correct `labels`, or the names under `id2label` in its config.json"
        )
    if None in means or (len(means) > 1 and (True not in means or False not in means)):
        raise Unavailable(
            f"the labels of the model in {where} are {listed}, which do not tell what is supported by the context and "
            "what is not; set the parameter `labels` to a map, such as 1=supported, 0=unsupported"
        )
    return Reading(tuple(at for at, supports in enumerate(means) if supports), _activation(config, len(means)))


def _contradicts(name: str, means: bool | None) -> bool:
    """Tell whether a label's name says the opposite of what it is taken for."""
    says = None if _UNDECIDED.fullmatch(name.strip().lower()) else meaning(name)
    return means is not None and says is not None and says != means


def _activation(config: Mapping[str, Any], n_labels: int) -> Activation:
    """Choose as the pipelines of `transformers` do."""
    problem = config.get("problem_type")
    if problem == "regression":
        return "none"
    return "sigmoid" if n_labels == 1 or problem == "multi_label_classification" else "softmax"


def _apply(given: Mapping[str, bool], names: Mapping[int, str], where: str) -> list[bool | None]:
    """Apply a map to the labels, by name or position. A map that names one side leaves the others to the other side."""
    places = {names[at].strip().lower(): at for at in names} | {str(at): at for at in names}
    if unknown := [label for label in given if label not in places]:
        listed = ", ".join(names[at] for at in sorted(names))
        raise Unavailable(f"the label map names {unknown[0]!r}; the labels of the model in {where} are {listed}")
    means = {places[label]: means_support for label, means_support in given.items()}
    sides = set(means.values())
    rest = None if len(sides) != 1 else next(iter(sides)) is False
    return [means.get(at, rest) for at in range(len(names))]
