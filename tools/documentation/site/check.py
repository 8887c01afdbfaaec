"""`python -m mlirt.tools.documentation.site.check FOLDER`: what is wrong with the links of a site, a line each.

Every link within the site leads to a file, and to an anchor that it has; nothing that a page needs to be shown comes
from another host. Links for readers to click may lead to other hosts, which are not asked.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_NEEDED = {
    ("img", "src"),
    ("script", "src"),
    ("link", "href"),
    ("iframe", "src"),
    ("source", "src"),
    ("object", "data"),
}
_LINKS = {*_NEEDED, ("a", "href")}
_NOT_LOADED = {"canonical", "alternate", "prev", "next"}
"""Kinds of `<link>` that nothing is loaded for."""


@dataclass
class _Page(HTMLParser):
    """The anchors of a page, and its links with whether the page needs what is there."""

    anchors: set[str] = field(default_factory=set[str])
    links: list[tuple[str, bool]] = field(default_factory=list[tuple[str, bool]])

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        for name, value in given.items():
            if (tag, name) in _LINKS and value:
                loaded = (tag, name) in _NEEDED and given.get("rel") not in _NOT_LOADED
                self.links.append((value, loaded))


def faults(site: Path) -> Iterator[str]:
    """One line for each link that leads nowhere, and for each thing that a page loads from elsewhere."""
    site = site.resolve()
    pages = {path: _parsed(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for link, is_needed in page.links:
            fault = _fault(link, is_needed, path, site, pages)
            if fault:
                yield f"{path.relative_to(site)}: {link}: {fault}"


def _parsed(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def _fault(link: str, is_needed: bool, path: Path, site: Path, pages: dict[Path, _Page]) -> str:
    parts = urlsplit(link)
    if parts.scheme == "data" or (not is_needed and (parts.scheme or parts.netloc)):
        return ""
    if parts.scheme or parts.netloc:
        return "is loaded from another host"
    if parts.path.startswith("/"):
        return "" if path.name == "404.html" else "begins at the root of a host, which a folder has not"
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if not target.is_file() or not target.is_relative_to(site):
        return "there is no such file"
    anchor = unquote(parts.fragment)
    if anchor and target in pages and anchor not in pages[target].anchors:
        return "the page has no such anchor"
    return ""


def main(arguments: list[str]) -> int:
    """Print the faults; the result is the exit code, 1 where there are any."""
    if len(arguments) != 1 or not Path(arguments[0], "index.html").is_file():
        print(__doc__, file=sys.stderr)
        return 1
    found = list(faults(Path(arguments[0])))
    print("\n".join(found) or "every link leads somewhere, and nothing is loaded from another host")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
