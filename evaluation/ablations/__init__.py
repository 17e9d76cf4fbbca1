"""What small models of the book's language get wrong without each of their parts."""

from evaluation.ablations.record import recorded
from evaluation.ablations.tables import dots, shares, table

__all__ = ["dots", "recorded", "shares", "table"]
