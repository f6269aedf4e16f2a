"""Thresholds per segment: curves shrunken towards a common one, cut at one probability, judged out of fold."""
