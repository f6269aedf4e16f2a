"""One reader of spans, for files, the receiver, pulls and the span processor. Light to import: production uses it."""
