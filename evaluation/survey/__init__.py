"""`check` on the layers of public works: `make survey`."""
