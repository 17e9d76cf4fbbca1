"""Reading and writing of published checkpoints of GPT-2."""

from transformer_layers.gpt2.files.checkpoint import read_checkpoint, write_checkpoint

__all__ = ["read_checkpoint", "write_checkpoint"]
