"""Models and rotary positions at random sizes, which no test names, against their references.

A test compares at sizes that its author chose. Here the sizes are drawn, and so are the options,
the weights, the lengths and the padding, all in float64. `python -m evaluation.held_out_sizes` runs
them. It is no part of the tests: nothing may be fitted to one of its seeds.
"""
