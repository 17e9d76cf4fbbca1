"""Gemma 3's text model: windows and two rotations by turns, and four norms a block."""
