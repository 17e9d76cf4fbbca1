"""`check` on the layers of public works: `make survey`, or `python -m survey` where they are."""
