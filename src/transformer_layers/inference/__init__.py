"""Kernels and products that compute the same on a CPU in less time."""
