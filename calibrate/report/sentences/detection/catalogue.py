"""What the catalogue says of a groundedness model, in words: figure, licence, and how to get it and run it."""

from __future__ import annotations

from collections.abc import Sequence

from calibrate import registry
from calibrate.backends.catalogue import CatalogueEntry
from calibrate.report.numbers import count, limit, listed, number

PULL = "python -m calibrate models pull"
WAYS = {
    "grounded": f"`{PULL} NAME` fetches it; without a network, give a directory as `model`",
    "grounded_spans": f"`{PULL} NAME` fetches it; without a network, give a directory as `model`",
    "judge_template": "serve it behind a chat endpoint, and set TOUCHSTONE_CHAT_URL and TOUCHSTONE_CHAT_MODEL",
    "http": "serve it behind an HTTP endpoint, and set TOUCHSTONE_HTTP_URL",
}


NOTE = (
    "Models that others trained to judge whether a context supports an answer. The figures are their authors', not "
    "measured on your traces: label some, and Thresholds shows which one helps."
)


def ways() -> list[str]:
    """Say once for all how models become ready: "grounded and grounded_spans: `… pull NAME` fetches it"."""
    return [
        f"{listed([adapter for adapter in WAYS if WAYS[adapter] == how])}: {how}"
        for how in dict.fromkeys(WAYS.values())
    ]


def by_metric(models: Sequence[CatalogueEntry]) -> dict[str, list[CatalogueEntry]]:
    """Put models under the metric of their published figure: figures of two metrics are not to be compared."""
    return {metric: [m for m in models if m.metric == metric] for metric in dict.fromkeys(m.metric for m in models)}


def heading(models: int, ready: int) -> str:
    """Head the list: "14 groundedness models that you could add, 1 of them here"."""
    here = f", {count(ready)} of them here" if ready else ""
    return f"{count(models)} groundedness models that you could add{here}"


def size(model: CatalogueEntry) -> str:
    """Say how large it is: "149 M parameters"."""
    return f"{count(model.parameters)} M parameters"


def published(model: CatalogueEntry) -> str:
    """Say its published figure, in percent: "76.07", or "72.5–73.4" of several."""
    return "–".join(number(figure) for figure in model.published)


def window(model: CatalogueEntry) -> str:
    """Say how much it reads at once: "4,096 tokens"."""
    return f"{count(model.window)} tokens"


def threshold(model: CatalogueEntry) -> str:
    """Say where it flags by common use: "≥ 0.5"."""
    return limit(model.threshold, registry.get(model.adapter).flag_when)


def labels(model: CatalogueEntry) -> str:
    """Say which of its labels mean supported."""
    return model.labels or "as the labels' names or the layout say"


def line(model: CatalogueEntry) -> str:
    """Say in a line what it is: hub id, window, usual threshold, licence."""
    parts = [model.hub or "no hub id", f"reads {window(model)}", f"flags {threshold(model)}", licence(model)]
    return " · ".join(parts)


def details(model: CatalogueEntry) -> dict[str, str]:
    """Say all that is known of it, by what it is."""
    return {
        "detector": model.adapter,
        "hub id": model.hub or "none",
        "revision": revision(model),
        "licence": licence(model),
        "size": size(model),
        "window": window(model),
        "layout": model.template or "none",
        "labels": labels(model),
        "usual threshold": threshold(model),
        "published": f"{published(model)} ({model.metric}), not measured here",
        "source": model.source,
        "how": how_to_get(model),
        "run": run_command(model),
    }


def licence(model: CatalogueEntry) -> str:
    """Say its licence, and whether that forbids commercial use."""
    return model.licence if model.commercial else f"{model.licence} (NC: no commercial use)"


def revision(model: CatalogueEntry) -> str:
    """Say what is fetched."""
    if not model.hub:
        return "none"
    return model.revision if model.is_pinned else f"{model.revision}, not pinned: it may change at the hub"


def run_command(model: CatalogueEntry) -> str:
    """Write the command that scores with it."""
    if model.adapter == "http":
        return "python -m calibrate detect http"
    if model.adapter == "judge_template":
        return f"python -m calibrate detect judge_template --param template={model.template}"
    return f"python -m calibrate detect {model.adapter} --param model={model.name}"


def how_to_get(model: CatalogueEntry) -> str:
    """Say how it becomes ready."""
    return WAYS[model.adapter].replace("NAME", model.name)


def whereabouts(model: CatalogueEntry, *, here: bool) -> str:
    """Say in two words where it is."""
    if here:
        return "not usable"
    return "not here" if model.is_pullable else "served elsewhere"
