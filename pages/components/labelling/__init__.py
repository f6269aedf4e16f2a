"""The labelling surface: the trace with its marks, the verdict bar, and what a labeller has done."""
