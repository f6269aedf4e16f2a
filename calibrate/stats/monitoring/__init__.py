"""After a release: drift of scores without labels, and sequential tests with labels."""
