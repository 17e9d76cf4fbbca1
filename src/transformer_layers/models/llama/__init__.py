"""Llama, and the models that are Llama with other options: Mistral, Mixtral, Qwen, ..."""
