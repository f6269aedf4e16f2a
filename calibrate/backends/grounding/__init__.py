"""Groundedness models: `grounder()` gives the process's judge of (context, answer) pairs, `span_finder()` its marker of
unsupported spans. For detector authors; nothing is loaded before the first text."""

from calibrate.backends.grounding.choice import DEFAULT, Wanted, grounder, span_finder
from calibrate.backends.grounding.grounder import Grounder
from calibrate.backends.grounding.spans import SpanFinder

__all__ = ["DEFAULT", "Grounder", "SpanFinder", "Wanted", "grounder", "span_finder"]
