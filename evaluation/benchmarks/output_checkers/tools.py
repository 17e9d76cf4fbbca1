"""The tools, in the order of the table's columns."""

from evaluation.benchmarks.output_checkers.cog import Cog
from evaluation.benchmarks.output_checkers.mdbook import Mdbook
from evaluation.benchmarks.output_checkers.nbmake import Nbmake
from evaluation.benchmarks.output_checkers.nbval import Nbval
from evaluation.benchmarks.output_checkers.sphinx_doctest import SphinxDoctest
from evaluation.benchmarks.output_checkers.sybil import SybilTool
from evaluation.benchmarks.output_checkers.tool import Tool
from evaluation.benchmarks.output_checkers.verified_book import VerifiedBook

TOOLS: tuple[Tool, ...] = (
    VerifiedBook(),
    Nbval(),
    Nbmake(),
    SybilTool(),
    SphinxDoctest(),
    Cog(),
    Mdbook(),
)
