"""The tools, in the order of the table's columns."""

from benchmarks.output_checkers.cog import Cog
from benchmarks.output_checkers.mdbook import Mdbook
from benchmarks.output_checkers.nbmake import Nbmake
from benchmarks.output_checkers.nbval import Nbval
from benchmarks.output_checkers.sphinx_doctest import SphinxDoctest
from benchmarks.output_checkers.sybil import SybilTool
from benchmarks.output_checkers.tool import Tool
from benchmarks.output_checkers.verified_book import VerifiedBook

TOOLS: tuple[Tool, ...] = (
    VerifiedBook(),
    Nbval(),
    Nbmake(),
    SybilTool(),
    SphinxDoctest(),
    Cog(),
    Mdbook(),
)
