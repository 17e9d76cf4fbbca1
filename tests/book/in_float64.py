"""Runs the cells of a page with float64 as torch's default, and compares what they print."""

import contextlib
import io
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from evaluation.draws.chapter import moved
from verified_book.literals import floats
from verified_book.matching import agree

# A cell that names a dtype, or rounds, is about it.
ABOUT_DTYPE = re.compile(r"float16|float32|autocast|finfo|\.(float|half|double|dtype)\b")
_BLOCK = re.compile(r"^```\{(code-cell|expect-output)\}.*?\n(.*?)^```$", re.M | re.S)
_OPTIONS = re.compile(r"\A(?::.*\n)*")

DRAWN = {torch.randn, torch.rand, torch.randn_like, torch.rand_like}
FILLED = {
    torch.Tensor.normal_,
    torch.Tensor.uniform_,
    torch.Tensor.exponential_,
    torch.Tensor.log_normal_,
}


class DrawsOfFloat32(TorchFunctionMode):
    """Draws what float32 draws, and widens it: float64 has draws of its own.

    What is seeded by itself, as the small models are, draws as it does on the page.
    """

    def __init__(self) -> None:
        super().__init__()
        self.off = 0
        self._fork = torch.random.fork_rng

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Draws in float32 where float64 would be drawn."""
        kwargs = kwargs or {}
        if self.off or kwargs.get("dtype") is not None:
            return func(*args, **kwargs)
        if func in DRAWN:
            return func(*args, dtype=torch.float32, **kwargs).double()
        if func in FILLED and args[0].dtype == torch.float64:
            drawn = func(args[0].detach().float(), *args[1:], **kwargs)
            with torch.no_grad():
                return args[0].copy_(drawn)
        return func(*args, **kwargs)

    @contextlib.contextmanager
    def fork_rng(self, *args: Any, **kwargs: Any) -> Iterator[None]:
        """`torch.random.fork_rng`, within which draws are as they are."""
        with self._fork(*args, **kwargs):
            self.off += 1
            try:
                yield
            finally:
                self.off -= 1


def cells_of(text: str) -> list[tuple[str, str | None]]:
    """The cells of a page, each with the output that is expected of it, if any is."""
    found: list[tuple[str, str | None]] = []
    for match in _BLOCK.finditer(text):
        body = _OPTIONS.sub("", match[2])
        if match[1] == "code-cell":
            found.append((body, None))
        elif found:
            found[-1] = (found[-1][0], body)
    return found


def without_floats(text: str) -> str:
    """A text with one float in place of each."""
    for each in reversed(floats(text)):
        text = f"{text[: each.start]}0.0{text[each.end :]}"
    return text


def compared(page: Path) -> dict[str, Any]:
    """How many expected floats of a page were compared, and which outputs are others in float64.

    A cell that fails in float64, or whose output differs in more than floats, is left aside.
    """
    draws, names = DrawsOfFloat32(), {"__name__": "__main__"}
    torch.random.fork_rng = draws.fork_rng
    torch.set_default_dtype(torch.float64)
    count, others, aside = 0, [], []
    for place, (code, want) in enumerate(cells_of(page.read_text(encoding="utf-8"))):
        printed = io.StringIO()
        try:
            statements, last = moved(code, 0, f"<cell {place}>")
            with draws, contextlib.redirect_stdout(printed):
                exec(statements, names)  # the book's own cells
                result = eval(last, names) if last else None
        except Exception as error:
            aside.append(f"cell {place}: {type(error).__name__}: {error}")
            continue
        if want is None or ABOUT_DTYPE.search(code) or not floats(want):
            continue
        got = printed.getvalue() + ("" if result is None else repr(result))
        if not agree(without_floats(want), without_floats(got)):
            aside.append(f"cell {place}: {want!r} on the page, {got!r}")
            continue
        count += len(floats(want))
        if not agree(want, got):
            others.append(f"cell {place}: on the page\n{want}in float64\n{got}")
    return {"count": count, "others": others, "aside": aside}


if __name__ == "__main__":
    page = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        found = compared(page)
    print(json.dumps(found))
