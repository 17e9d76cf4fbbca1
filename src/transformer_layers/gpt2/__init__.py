"""GPT-2: its parts, the model, its files, its tokenizer, and what makes it generate."""
