"""What the catalogue says of a groundedness model, in words: figure, licence, and how to get it and run it."""

from __future__ import annotations

from calibrate.backends.catalogue import CatalogueEntry
from calibrate.report.numbers import count, number
from calibrate.report.sentences.readiness import setup

WAYS = {
    "grounded": "`models pull NAME` fetches it; without a network, give a directory as `model`",
    "grounded_spans": "`models pull NAME` fetches it; without a network, give a directory as `model`",
    "judge_template": "serve it behind a chat endpoint, and set TOUCHSTONE_CHAT_URL and TOUCHSTONE_CHAT_MODEL",
    "http": "serve it behind an HTTP endpoint, and set TOUCHSTONE_HTTP_URL",
}


NOTE = (
    "Models that others trained to judge whether a context supports an answer. The figures are their authors', not "
    "measured on your traces: label some, and Thresholds shows which one helps."
)


def heading(models: int, ready: int) -> str:
    """Head the list: "14 groundedness models that you could add, 1 of them here"."""
    here = f", {count(ready)} of them here" if ready else ""
    return f"{count(models)} groundedness models that you could add{here}"


def size(model: CatalogueEntry) -> str:
    """Say how large it is: "149 M parameters"."""
    return f"{count(model.parameters)} M parameters"


def published(model: CatalogueEntry) -> str:
    """Say its published figure: "76.07 (RAGTruth, F1 of answers)"."""
    return f"{'–'.join(number(figure) for figure in model.published)} ({model.metric})"


def licence(model: CatalogueEntry) -> str:
    """Say its licence, and whether that forbids commercial use."""
    return model.licence if model.commercial else f"{model.licence} (NC: no commercial use)"


def revision(model: CatalogueEntry) -> str:
    """Say what is fetched."""
    return model.revision if model.is_pinned else f"{model.revision}, not pinned: it may change at the hub"


def run_command(model: CatalogueEntry) -> str:
    """Write the command that scores with it."""
    if model.adapter == "http":
        return "python -m calibrate detect http"
    if model.adapter == "judge_template":
        return f"python -m calibrate detect judge_template --param template={model.template}"
    return f"python -m calibrate detect {model.adapter} --param model={model.name}"


def pull_command(model: CatalogueEntry) -> str:
    """Write the command that fetches it; "" for one that is served elsewhere."""
    return f"python -m calibrate models pull {model.name}" if model.is_pullable else ""


def how_to_get(model: CatalogueEntry) -> str:
    """Say how it becomes ready."""
    return WAYS[model.adapter].replace("NAME", model.name)


def way(model: CatalogueEntry) -> str:
    """Say what is to be done with it, as a sentence."""
    if model.directory() is not None:
        return f"`{run_command(model)}` scores with it from a terminal."
    return setup(how_to_get(model))


def whereabouts(model: CatalogueEntry, *, here: bool) -> str:
    """Say in two words where it is."""
    if here:
        return "not usable"
    return "not here" if model.is_pullable else "served elsewhere"
