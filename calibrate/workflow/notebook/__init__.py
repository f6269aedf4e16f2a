"""A workbench for notebooks and scripts: frames in and frames out, by the functions of pages and command line."""

from calibrate.workflow.notebook.results import AddedLabels, AddedTraces, Released
from calibrate.workflow.notebook.workbench import Workbench, open_workbench

__all__ = ["AddedLabels", "AddedTraces", "Released", "Workbench", "open_workbench"]
