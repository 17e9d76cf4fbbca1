"""What checks are made of: definitions, candidates, oracles, weight maps, probes, mistakes."""
