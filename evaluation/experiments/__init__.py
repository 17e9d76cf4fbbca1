"""Experiments of the chapters that are too long for a build: measured, recorded, and then shown.

Each is a module of this folder, with the files that its result depends on (`SOURCES`, beside the
module itself) and what measures it (`measure`). A chapter shows what `recorded` reads, and runs a
small part of it live.
"""

from evaluation.experiments.record import names, recorded

__all__ = ["names", "recorded"]
