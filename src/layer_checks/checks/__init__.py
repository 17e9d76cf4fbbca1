"""The checks of each layer, one module for each layer or family of layers."""
