"""The labels themselves: agreement, likely errors, and what errors would do to figures."""
