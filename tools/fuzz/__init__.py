"""Books made by chance, whose outputs are known before they are built.

`python -m tools.fuzz` (`make fuzz`) builds them, accepts what they print, and builds them again.
The generator knows what each cell shows and which block is wrong, so the verdicts are not the
extension's own.
"""
