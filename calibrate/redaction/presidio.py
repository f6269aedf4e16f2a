"""Names, places and much else, found by Microsoft's presidio: an optional package with a language model of its own."""

from __future__ import annotations

from calibrate.errors import Unavailable
from calibrate.redaction.finders import Find, Finding


def make_finder() -> Find:
    """Make a finder of presidio's default recognizers, for English. Raises Unavailable where it is not installed."""
    try:
        from presidio_analyzer import AnalyzerEngine
    except ImportError:
        raise Unavailable(
            "presidio is not installed here: `pip install 'touchstone[presidio]'`, then "
            "`python -m spacy download en_core_web_lg`, or leave presidio out of what is redacted"
        ) from None
    try:
        analyzer = AnalyzerEngine()
    except (Exception, SystemExit) as error:  # without its language model it tries to fetch one, and ends the process
        raise Unavailable(
            f"presidio cannot start ({type(error).__name__}: {str(error)[:120]}): `python -m spacy download "
            "en_core_web_lg` fetches its language model; or leave presidio out of what is redacted"
        ) from None

    def find(text: str) -> list[Finding]:
        results = analyzer.analyze(text=text, language="en")
        return [Finding(r.start, r.end, r.entity_type.lower().replace("_", " ")) for r in results]

    return find
