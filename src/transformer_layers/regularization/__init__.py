"""Dropout, and penalties on weights."""
