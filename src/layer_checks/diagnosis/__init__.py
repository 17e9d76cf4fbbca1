"""How a reader's layer is built, run and judged, and which known mistake it makes."""
