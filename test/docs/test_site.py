"""The site: its tree of pages, the check of its links, and, where mkdocs is installed, the built site in a browser."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

import mlirt
from mlirt.tools.documentation.site.api_page import api_page
from mlirt.tools.documentation.site.check import faults
from mlirt.tools.documentation.site.flags_page import flags_page, tools
from mlirt.tools.documentation.site.links import links_of, with_links
from mlirt.tools.documentation.site.tree import MADE, pages_of, write_tree

ROOT = Path(__file__).parents[2]
MKDOCS = ROOT / ".venv-site" / "bin" / "mkdocs"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

PAGE = """\
[a](a.md#b) and [`code`](../x.py), not [z](https://z.org), nor `[in](code.md)`.

```text
[in](fence.md)
```

![picture](p.png)
"""


def test_links_outside_of_code_are_found_and_changed() -> None:
    assert list(links_of(PAGE)) == ["a.md#b", "../x.py", "p.png"]
    changed = with_links(PAGE, lambda link: link.upper())
    assert "](A.MD#B)" in changed
    assert "[`code`](../X.PY)" in changed
    assert "[in](fence.md)" in changed
    assert "(https://z.org)" in changed


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "source"
    write_tree(ROOT, folder)
    return folder


def test_links_of_the_tree_lead_to_its_files(tree: Path) -> None:
    dead = [
        f"{page.relative_to(tree)}: {link}"
        for page in tree.rglob("*.md")
        for link in links_of(page.read_text(encoding="utf-8"))
        if not link.startswith("#") and not (page.parent / link.partition("#")[0]).is_file()
    ]
    assert dead == []
    shown = (tree / "passes" / "fusion" / "fuse_pointwise.py.md").read_text(encoding="utf-8")
    assert (ROOT / "passes" / "fusion" / "fuse_pointwise.py").read_text(encoding="utf-8").rstrip() in shown
    assert "boost" in (tree / "CHANGELOG.md").read_text(encoding="utf-8")[:30]
    assert "- [fuse_pointwise.mlir]" in (tree / "test" / "passes" / "fusion" / "index.md").read_text(encoding="utf-8")


def test_every_page_has_its_place_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[1]
    named = re.findall(r"[\w/-]+\.md\b", navigation)
    assert sorted(named) == sorted({*pages_of(ROOT), *MADE})


def test_every_public_name_is_in_the_reference() -> None:
    text = api_page()
    for name in set(mlirt.__all__) - {"__version__"}:
        assert f"heading: mlirt.{name}\n" in text


def test_every_command_has_its_flags_in_the_reference() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    assert tools() == sorted(scripts)
    text = flags_page()
    for tool in tools():
        assert f"\n## {tool}\n\n```text\nusage: {tool} " in text
    assert "--dumpProfile " in text


def test_what_is_wrong_with_a_site_is_told(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="deep/b.html#there">1</a><a href="deep/b.html#gone">2</a><a href="none.html">3</a>'
        '<a href="https://a.org">4</a><img src="data:image/png;base64,AA"><a href="#top">5</a><p id="top">',
        encoding="utf-8",
    )
    (tmp_path / "deep" / "b.html").write_text(
        '<p id="there"><a href="..">6</a><script src="https://a.org/x.js"></script><img src="../p.png">'
        '<link rel="canonical" href="https://a.org"><a href="../../outside">7</a><a href="/root">8</a>',
        encoding="utf-8",
    )
    assert list(faults(tmp_path)) == [
        "deep/b.html: https://a.org/x.js: is loaded from another host",
        "deep/b.html: ../p.png: there is no such file",
        "deep/b.html: ../../outside: there is no such file",
        "deep/b.html: /root: begins at the root of a host, which a folder has not",
        "index.html: deep/b.html#gone: the page has no such anchor",
        "index.html: none.html: there is no such file",
    ]


@pytest.fixture(scope="module")
def site() -> Path:
    if not MKDOCS.is_file():
        pytest.skip("mkdocs is not installed; `make test-site` does it, in an environment of its own")
    subprocess.run(["make", "site"], cwd=ROOT, check=True, capture_output=True)
    return ROOT / "build" / "site"


def test_the_site_has_no_dead_link(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 300
    assert list(faults(site)) == []


def test_links_to_code_and_types_of_the_reference_are_shown(site: Path) -> None:
    reference = (site / "docs" / "python-api.html").read_text(encoding="utf-8")
    assert 'href="../passes/fusion/fuse_pointwise.py.html"' in (site / "docs" / "passes.html").read_text(
        encoding="utf-8"
    )
    assert "<strong>spin_ms</strong>: on a CPU" in reference
    assert 'id="mlirt.runtime.engine.Engine.run"' in reference


def test_the_search_answers_where_there_is_no_server(site: Path, tmp_path: Path) -> None:
    if BROWSER is None:
        pytest.skip("there is no Chromium on this machine")
    address = f"{(site / 'index.html').as_uri()}?q=calibration"
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=30000", "--dump-dom")
    command = [BROWSER, *flags, f"--user-data-dir={tmp_path}", address]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
    found = re.search(r'md-search-result__meta">\s*(\d+) matching documents', done.stdout)
    assert found is not None, done.stdout[-2000:]
    assert int(found[1]) > 5
