"""The two distributions, as who installs them has them.

`python -m tools.wheels` (`make wheels`) builds both, installs each in an empty environment
and does there what its README says.
"""
