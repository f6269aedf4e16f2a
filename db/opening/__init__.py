"""Opening a store: what its URL means, the file it names, and what its errors mean."""
