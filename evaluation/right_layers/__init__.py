"""Right layers of torch and transformers, none of which `check` may call wrong."""
