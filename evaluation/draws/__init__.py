"""Runs the chapters with other random numbers: no claim may be the luck of one seed."""
