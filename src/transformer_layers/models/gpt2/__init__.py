"""GPT-2: its parts, the model, and its files."""
