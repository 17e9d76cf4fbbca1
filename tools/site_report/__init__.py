"""What the built site costs its readers, and what its search must answer."""
