"""Lists every option of the extensions, from the list that registers them."""

import textwrap

from verified_book import settings


def listed() -> str:
    """Name, default and purpose of each option."""
    groups = [value for value in vars(settings).values() if isinstance(value, tuple)]
    found = [item for group in groups for item in group if isinstance(item, settings.Setting)]
    lines = []
    for setting in found:
        lines.append(f"{setting.name} = {setting.default!r}")
        lines += textwrap.wrap(setting.purpose, 76, initial_indent="    ", subsequent_indent="    ")
        lines.append("")
    return "\n".join(lines).rstrip()
