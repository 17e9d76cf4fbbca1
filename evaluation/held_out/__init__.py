"""Wrong versions that the authors of the checks had not seen, each from a published work or thread.

They measure `layer_checks.check` and are no part of it: nothing here may be read before a check is
written, and no check may be written to catch one of them. `python -m evaluation.held_out` runs
them.
"""
