"""How good the checks, the tests and the layers are: measured, and recorded where it takes long."""
