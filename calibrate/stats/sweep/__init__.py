"""Precision, recall, false-positive rate and flag rate at every threshold, and how the labels were drawn."""
