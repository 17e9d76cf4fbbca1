"""Layers that map each position by itself, and their activations."""
