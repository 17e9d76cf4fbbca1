"""Llama, and the models that are Llama with other options: Mistral, Qwen, OLMo 2, Phi-3."""
