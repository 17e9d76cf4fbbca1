"""Speed of the models, side by side with `transformers`, and the machine's limits.

`python -m evaluation.benchmarks` measures all of it in one run and writes `results.json`, which
the book's page on speed shows. `--quick` runs a tiny model through the same code.
"""

import os

# Otherwise torch.profiler announces every start and stop. It reads this when torch is imported.
os.environ.setdefault("KINETO_LOG_LEVEL", "6")
