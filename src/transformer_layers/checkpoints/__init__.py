"""Weights and sizes in files, which are read whole or refused, and saved whole or not at all."""
