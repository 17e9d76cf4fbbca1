"""Which check catches which wrong version, as a table."""
