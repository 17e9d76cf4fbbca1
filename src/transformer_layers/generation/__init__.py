"""Writing: what a decoder must offer, how a token is chosen, and the loop around both."""
