"""Where the week stands and what comes next."""
