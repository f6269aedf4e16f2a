"""Classifiers of Hugging Face's kind, for any task: `Classifier` finds a model's files, cuts texts so that they fit,
encodes them and computes logits in batches, on the processor or a GPU. Subclasses say what the logits mean."""

from calibrate.backends.inference.classifier import Classifier, Encoded, Pair
from calibrate.backends.inference.network import Network, Task

__all__ = ["Classifier", "Encoded", "Network", "Pair", "Task"]
