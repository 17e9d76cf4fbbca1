"""Stub."""
def setup(app): pass
