"""The book's cells and the tests of layers, as if on other kinds of processor."""
