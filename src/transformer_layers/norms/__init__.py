"""Normalization: over a position's features, and over a batch."""
