"""The results as text."""

from collections.abc import Iterator
from typing import Any


def table(results: dict[str, Any]) -> str:
    """The results as a plain table.

    Args:
        results: As :func:`benchmarks.measure.measure` returns them.

    Returns:
        Lines of text.
    """
    return "\n".join(_lines(results))


def _lines(results: dict[str, Any]) -> Iterator[str]:
    machine = results["machine"]
    yield f"{machine['processor']}, {machine['threads']} threads, torch {machine['torch']}"
    yield f"transformers {machine['transformers']}, {results['model']['parameters']:,} parameters"
    yield ""
    yield f"{'task':30} {'':18} {'median':>10}   ratio of times to transformers (quartiles)"
    timings = [*results["timings"], *results["llama"]["timings"], *results["translator"]["timings"]]
    for timing in timings:
        title = f"{timing['task']}, {timing['positions']}"
        for result in timing["results"]:
            ratio = result["ratio"]
            yield (
                f"{title:30} {result['contestant']:18} {1e3 * result['median_seconds']:7.1f} ms   "
                f"{ratio['median']:.3f} ({ratio['lower']:.3f} to {ratio['upper']:.3f})"
            )
            title = ""
    yield ""
    for rate in results["limits"]["matrix_products"]:
        yield f"products, {rate['kernel']}, threads: {rate['threads']}: {rate['gflops']:.0f} GF/s"
    for rate in results["limits"]["memory"]:
        yield f"memory, threads: {rate['threads']}: {rate['gigabytes_per_second']:.1f} GB/s"
    yield ""
    for error in results["errors"]:
        yield (
            f"{error['contestant']}: logits off by {error['largest']:.2g} of their spread at most, "
            f"{error['rms']:.2g} in the root mean square, {error['unchanged']:.1%} of "
            f"{error['positions']} tokens unchanged"
        )
    yield ""
    yield from profile_lines(results["profile"])
    yield ""
    for peak in results["peak_memory"]:
        sizes = ", ".join(f"{name} {size / 2**20:.0f} MiB" for name, size in peak["bytes"].items())
        yield f"allocated at once, {peak['task']}, {peak['positions']}: {sizes}"
    for row in results["attention_memory"]:
        yield (
            f"attention of {row['positions']} positions: {row['layer'] / 2**20:.2f} MiB, by the "
            f"definition {row['definition'] / 2**20:.2f} MiB"
        )


def profile_lines(profile: dict[str, Any]) -> Iterator[str]:
    """The profile as lines of text.

    Args:
        profile: As :func:`benchmarks.measure.measure_profile` returns it.
    """
    for row in profile["rows"]:
        for name, spent in row["seconds"].items():
            parts = ", ".join(f"{part} {1e3 * own:.1f} ms" for part, own in spent.items())
            yield f"profile of {row['task']}, {row['positions']}, {name}: {parts}"
