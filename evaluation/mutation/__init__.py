"""The tests of the layers, held against known wrong versions and against generic mutants."""
