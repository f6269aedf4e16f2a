"""Sample traces of a fictional support bot; see README.md beside them for how they were made."""
