"""How well figures are known: closed-form, exact and bootstrap intervals."""
