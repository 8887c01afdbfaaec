"""Pages that show a file or a folder of the repository, for links that lead to code."""

from __future__ import annotations

from pathlib import Path

_LANGUAGES = {".py": "python", ".mlir": "mlir", ".toml": "toml", ".json": "json", ".js": "javascript", ".css": "css"}
_HIDDEN = "---\nsearch:\n  exclude: true\n---\n"


def file_page(name: str, text: str) -> str:
    """A source file by its path in the repository; no part of the search."""
    longest = max((len(line) - len(line.lstrip("`")) for line in text.splitlines()), default=0)
    fence = "`" * max(longest + 1, 3)
    return f"{_HIDDEN}# `{name}`\n\n{fence}{_LANGUAGES.get(Path(name).suffix, 'text')}\n{text.rstrip()}\n{fence}\n"


def folder_page(name: str, entries: list[str]) -> str:
    """A folder, with links to the pages of its files."""
    rows = "\n".join(f"- [{entry}]({entry}.md)" for entry in entries)
    return f"{_HIDDEN}# `{name}/`\n\n{rows}\n"
