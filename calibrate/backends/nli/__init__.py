"""Natural language inference: `nli()` gives the process's model, `Nli.probabilities` judges pairs of texts. For
detector authors; nothing is loaded before the first pair."""

from calibrate.backends.nli.model import CONTRADICTION, DEFAULT, ENTAILMENT, NEUTRAL, Nli, nli

__all__ = ["CONTRADICTION", "DEFAULT", "ENTAILMENT", "NEUTRAL", "Nli", "nli"]
