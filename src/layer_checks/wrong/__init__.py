"""The known wrong versions of each layer, one module for each layer or family of layers.

Each is a few lines of our own that make one mistake and are right otherwise.
"""
