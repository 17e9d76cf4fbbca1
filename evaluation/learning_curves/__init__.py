"""How small models learn the book's language, whole and without each part, until they stay so."""

from evaluation.learning_curves.record import recorded
from evaluation.learning_curves.tables import Verdict, curves, table, verdict

__all__ = ["Verdict", "curves", "recorded", "table", "verdict"]
