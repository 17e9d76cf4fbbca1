"""Llama, and the models that are Llama with other options: Mistral, Qwen 2 and 3, OLMo 2."""
