"""The only place that turns figures into text: numbers, sentences, tables, the weekly page."""
