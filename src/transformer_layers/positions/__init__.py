"""What tells a model where a token stands."""
