"""Attention: its definition, torch's kernel for it, masks, heads, and the layer of many heads."""
