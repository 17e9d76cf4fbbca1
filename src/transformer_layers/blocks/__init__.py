"""Attention and feed-forward layers, put together with residuals and norms."""
