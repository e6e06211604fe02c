"""What the documentation site does besides Markdown: links that leave `docs/`, and pages that the navigation forgot."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent

_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add every page that the navigation does not name to its end, so that no page is lost."""
    nav: list[Any] = config.nav or []
    named = str(nav)
    pages = [file.src_uri for file in files if file.src_uri.endswith(".md")]
    forgotten = [page for page in pages if f"'{page}'" not in named and not page.startswith("decisions/")]
    decisions = [page for page in pages if page.startswith("decisions/")]
    nav += [{"More": forgotten}] if forgotten else []
    nav += [{"Decisions": decisions}] if decisions else []
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Make plain text of links to what is not part of the site, as tests and examples; it must exist nevertheless."""
    del config, files
    here = (ROOT / "docs" / page.file.src_uri).parent

    def replaced(found: re.Match[str]) -> str:
        text, target = found[1], found[2]
        path = (here / target).resolve()
        if ":" in target or path.is_relative_to(ROOT / "docs") or page.file.src_uri == "changelog.md":
            return found[0]
        if not path.exists():
            raise FileNotFoundError(f"{page.file.src_uri} links to {target}, which is not there")
        return f"{text} (`{path.relative_to(ROOT)}`)" if text != target else f"`{path.relative_to(ROOT)}`"

    return _LINK.sub(replaced, markdown)
