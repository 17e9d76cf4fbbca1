"""The published GPT-2: held against `transformers`, read with held-out prose, and made to write."""

from evaluation.published.measure import Measured, measure

__all__ = ["Measured", "measure"]
