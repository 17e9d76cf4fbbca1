"""The Transformer of 2017: an encoder, and a decoder that attends to what it gives."""
