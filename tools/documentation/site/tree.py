"""The pages of the repository as a tree for mkdocs: at the same paths, with pages for the code that they link to.

- README.md, CONTRIBUTING.md, CHANGELOG.md, docs/**.md, examples/**.md: as they are, but for links to code
- docs/python-api.md, docs/flags.md: what follows from definitions
- passes/fusion/fuse_pointwise.py.md: a file that a page links to
- test/passes/fusion/index.md: a folder that a page links to
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from mlirt.tools.documentation.site.api_page import api_page
from mlirt.tools.documentation.site.flags_page import flags_page
from mlirt.tools.documentation.site.links import links_of, with_links
from mlirt.tools.documentation.site.source_pages import file_page, folder_page

_TOP = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
_ASSETS = (".png", ".svg")
_HISTORY = "---\nsearch:\n  boost: 0.1\n---\n"
"""The search shows what is before what has become: it has every word."""
MADE: Mapping[str, Callable[[], str]] = {"docs/python-api.md": api_page, "docs/flags.md": flags_page}
"""Pages of the site alone: the one has directives of mkdocstrings, the other depends on the version of Python."""
_BESIDE = ("docs/site/iframe-worker.js", "docs/site/extra.css")


def pages_of(root: Path) -> list[str]:
    """The pages that are written for readers, by their paths in the repository."""
    found = (path for folder in ("docs", "examples") for path in (root / folder).rglob("*.md"))
    return [*_TOP, *sorted(path.relative_to(root).as_posix() for path in found)]


def write_tree(root: Path, folder: Path) -> None:
    """Write the tree into `folder`, in the place of what was there."""
    if folder.exists():
        shutil.rmtree(folder)
    pages = pages_of(root)
    for name in pages:
        text = (root / name).read_text(encoding="utf-8")
        text = with_links(text, lambda link, name=name: _changed(link, name, root, pages))
        _write(folder / name, _HISTORY + text if name == "CHANGELOG.md" else text)
    for name, text in MADE.items():
        _write(folder / name, text())
    for target in sorted(_linked(root, pages)):
        _write_target(root, folder, target)
    for name in _BESIDE:
        _copy(root, folder, name)


def _changed(link: str, page: str, root: Path, pages: list[str]) -> str:
    """The same link, or one to the page that shows the file or folder."""
    target, _, anchor = link.partition("#")
    path = _path(target, page)
    if not target or path in pages or path.endswith(_ASSETS):
        return link
    shown = f"{target.rstrip('/')}/index.md" if (root / path).is_dir() else f"{target}.md"
    return f"{shown}#{anchor}" if anchor else shown


def _linked(root: Path, pages: list[str]) -> Iterator[str]:
    """The files and folders beside pages that pages link to; of a folder its files too."""
    found = {
        _path(target, page)
        for page in pages
        for link in links_of((root / page).read_text(encoding="utf-8"))
        if (target := link.partition("#")[0])
    }
    folders = {path for path in found if (root / path).is_dir()}
    files = {f"{folder}/{entry}" for folder in folders for entry in _entries(root / folder)}
    return iter((found | files) - set(pages))


def _write_target(root: Path, folder: Path, name: str) -> None:
    path = root / name
    if path.is_dir():
        _write(folder / name / "index.md", folder_page(name, _entries(path)))
    elif name.endswith(_ASSETS):
        _copy(root, folder, name)
    else:
        _write(folder / f"{name}.md", file_page(name, path.read_text(encoding="utf-8")))


def _entries(folder: Path) -> list[str]:
    """The files of a folder that are text of the repository."""
    return sorted(path.name for path in folder.iterdir() if path.is_file() and path.suffix in (".py", ".mlir", ".toml"))


def _path(target: str, page: str) -> str:
    """The path in the repository of what a page links to."""
    return os.path.normpath(os.path.join(os.path.dirname(page), target)).replace(os.sep, "/")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _copy(root: Path, folder: Path, name: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(root / name, folder / name)
