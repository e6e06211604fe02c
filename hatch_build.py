"""What the package says of itself where it is not in its repository: addresses, and a README whose links lead there.

The README has relative links, which work in a clone and on the repository's own pages. Readers of the package's page
have neither, so the links are made absolute when the package is built. The address they stand on is in pyproject.toml.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#|mailto:)([^)\s]+)\)")


class AddressesHook(MetadataHookInterface):
    """Fills in what depends on where the project lives."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the readme and the URLs."""
        home, version = str(self.config["address"]).rstrip("/"), metadata["version"]
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": with_absolute_links(readme, home, f"v{version}")}
        metadata["urls"] = {
            "Documentation": f"{home}/tree/v{version}/docs",
            "Source": home,
            "Changelog": f"{home}/blob/v{version}/CHANGELOG.md",
            "Issues": f"{home}/issues",
        }


def with_absolute_links(text: str, home: str, tag: str) -> str:
    """Return a text whose links to files lead to a tag of the repository; pictures to the files themselves."""

    def absolute(found: re.Match[str]) -> str:
        return f"{found[1]}[{found[2]}]({home}/{'raw' if found[1] else 'blob'}/{tag}/{found[3]})"

    parts = re.split(r"(^```.*?^```)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else _LINK.sub(absolute, part) for part in parts)
