"""GPT-2 made ready for inference on a CPU."""
