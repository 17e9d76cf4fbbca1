"""Whole models, each in a folder of its own."""
