"""From texts to tokens and back."""
