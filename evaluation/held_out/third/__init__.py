"""The third collection: written when the checks had been widened after the second one.

Whoever wrote it had read neither the checks nor the known wrong versions, but the lists of usual
mistakes in the project's notes on style, and the names of some twenty versions of the second
collection. Each is a mistake of a public thread that the other collections do not cite; of what
was at hand, those were taken that look right at first sight. `check` ran on none of these before
all were written, each with a demonstration of its own in `test_third.py`.
"""

from evaluation.held_out.third import attention, blocks, elementwise, norms  # noqa: F401, they declare them
