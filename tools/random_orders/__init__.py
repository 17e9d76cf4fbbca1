"""The whole test suite in orders by chance, beside processes that keep the machine busy."""
