"""Right layers in the styles of many authors, which measure whether `check` calls one wrong."""
