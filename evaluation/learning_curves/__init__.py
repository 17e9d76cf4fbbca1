"""How small models learn the book's language, whole and without each part, until they stay so."""

from evaluation.learning_curves.record import recorded
from evaluation.learning_curves.tables import curves, draw, table, updates_until, verdict, weakest

__all__ = ["curves", "draw", "recorded", "table", "updates_until", "verdict", "weakest"]
