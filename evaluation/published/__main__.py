"""The command line: `python -m evaluation.published`, `make real`.

It needs a network, or a folder that has the files, and a Debian package for the text.
"""

import argparse

from evaluation.experiments.prose import HELD_OUT
from evaluation.novels import novels
from evaluation.published.measure import measure


def main() -> None:
    """Loads the model, measures it and prints what was found."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.published", description=__doc__)
    parser.add_argument(
        "--model", default="openai-community/gpt2", help="a name on the Hugging Face hub, a folder"
    )
    options = parser.parse_args()
    text = novels()[HELD_OUT]
    try:
        found = measure(options.model, text)
    except (OSError, ValueError) as error:
        raise SystemExit(
            f"{options.model}: {error}. Remedy: a network, or --model with a folder that holds "
            "config.json, model.safetensors, vocab.json and merges.txt"
        ) from error
    print(f"{options.model}, on {HELD_OUT}")
    print(f"logits beside those of transformers, in float64: {found.difference:.1e} of the largest")
    print(f"loss: {found.nats_a_token:.3f} nats a token, {found.nats_a_byte:.3f} nats a byte")
    print(f"perplexity: {found.perplexity:.1f}")
    print(found.sample)


if __name__ == "__main__":
    main()
