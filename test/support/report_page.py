"""Reads a page of rt-report as a browser would: its tags in order, what it loads, its links, and the data in it."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

_VOID = ("meta", "input", "br", "img", "link", "hr")


class Page(HTMLParser):
    """Fails where tags are not closed in their order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.loads: list[str | None] = []
        self.targets: list[str] = []
        self.names: list[str] = []
        self.handlers: list[str] = []
        self.scripts: list[str] = []
        self.policy = ""
        self._json = False
        self._data = ""
        self.feed(text)
        self.close()
        assert not self.open

    @classmethod
    def of(cls, path: Path) -> Page:
        """The page in a file."""
        return cls(path.read_text(encoding="utf-8"))

    @property
    def data(self) -> dict[str, Any]:
        """What the scripts are given."""
        return json.loads(self._data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        given = dict(attrs)
        self.handlers += [name for name in given if name.startswith("on")]
        self.loads += [text for name, text in attrs if name in ("src", "href") and not f"{text}".startswith("#")]
        self.targets += [f"{text}"[1:] for name, text in attrs if name == "href"]
        self.names += [f"{text}" for name, text in attrs if name == "id"]
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = str(given["content"])
        if tag == "script":
            self._json = given.get("id") == "report-data"
            if not self._json:
                self.scripts.append("")
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["script"]:
            return
        if self._json:
            self._data += data
        else:
            self.scripts[-1] += data
