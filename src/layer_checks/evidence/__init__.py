"""What a check measures: values and gradients compared, bounds, and how strong a finding is."""
