"""What the site's extensions replace of other packages; `verified_book.patches` tells of it."""

from verified_book.patches import Package

TABLE = (
    Package(
        "sphinx",
        (7, 4),
        (9, 0),
        {
            "sphinx.environment.collectors.toctree.TocTreeCollector.assign_figure_numbers": (
                "figures and exercises are numbered within their page"
            )
        },
    ),
)
