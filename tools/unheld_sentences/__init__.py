"""Finds the sentences of lessons that nothing holds: no cell, no claim, no reason."""
