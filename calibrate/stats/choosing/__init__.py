"""Policies, and the operating point that a policy chooses on a sweep."""
