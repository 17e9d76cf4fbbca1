"""A server for the built site, and the browsers that may visit it."""

from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
# A host that sends this header lets a page load nothing from anywhere else.
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:"
)


class Handler(SimpleHTTPRequestHandler):
    """Serves files under a policy that allows the site's own resources only."""

    protocol_version = "HTTP/1.1"  # a browser keeps its connections, as with any host

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        """Keeps the output of the tests free of requests."""
