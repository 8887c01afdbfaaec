"""rt-report writes one page that holds everything, whatever the names in the plan are."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tiny_plan import tiny_parts

from mlirt.runtime.plan_file import write_plan
from mlirt.tools.rt_report import main

SOURCE = """\
import x


@inlined
def scale_finish(a):
    return a


def scale(params, worker, workers):
    a = 1 < 2
"""


@pytest.fixture
def plan(tmp_path: Path) -> str:
    parts = tiny_parts()
    parts.manifest["name"] = "<script>alert(1)</script>"
    path = tmp_path / "tiny.plan"
    write_plan(path, parts.manifest, parts.sections, parts.weights)
    return str(path)


class _Tags(HTMLParser):
    """Checks that tags are closed in order; collects their names and the attributes that load things."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.loads: list[str | None] = []
        self.targets: list[str] = []
        self.names: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.loads += [text for name, text in attrs if name in ("src", "href") and not f"{text}".startswith("#")]
        self.targets += [f"{text}"[1:] for name, text in attrs if name == "href"]
        self.names += [f"{text}" for name, text in attrs if name == "id"]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def _page(path: Path) -> tuple[str, _Tags]:
    text = path.read_text(encoding="utf-8")
    tags = _Tags()
    tags.feed(text)
    tags.close()
    assert not tags.open
    return text, tags


def test_page_is_whole_and_alone(plan: str, tmp_path: Path) -> None:
    assert main([plan, "--shapes", "x:3x4", "-o", str(tmp_path / "page.html")]) == 0
    text, tags = _page(tmp_path / "page.html")
    assert {"svg", "rect", "table", "details"} <= tags.seen
    assert "script" not in tags.seen
    assert not tags.loads
    assert "&lt;script&gt;alert(1)" in text
    assert "[n, 4]" in text
    assert "[3, 4]" in text
    assert all(layer in text for layer in ("double", "turn", "weigh"))
    assert '<meta name="viewport"' in text
    assert "<td>2 ptr, i64, 2 f64</td>" in text, "kinds of arguments, equal neighbours together"


def test_times_and_source(plan: str, tmp_path: Path) -> None:
    records = [{"count": 10}, *({"name": f"layer{i}", "averageMs": 30.0, "medianMs": 0.25 * i} for i in range(3))]
    (tmp_path / "profile.json").write_text(json.dumps(records), encoding="utf-8")
    (tmp_path / "kernels.py").write_text(SOURCE, encoding="utf-8")
    page = str(tmp_path / "page.html")
    flags = ["--profile", str(tmp_path / "profile.json"), "--source", str(tmp_path / "kernels.py")]
    assert main([plan, *flags, "-o", page]) == 0
    text, tags = _page(tmp_path / "page.html")
    assert "0.5000" in text
    assert "0.750 ms" in text
    assert {"scale", "reverse", "source-scale"} <= set(tags.targets) <= set(tags.names)
    assert "@inlined\ndef scale_finish(a):" in text
    assert "a = 1 &lt; 2" in text


def test_files_with_averages_alone(plan: str, tmp_path: Path) -> None:
    records = [{"count": 10}, *({"name": f"layer{i}", "averageMs": 0.25 * i} for i in range(3))]
    (tmp_path / "profile.json").write_text(json.dumps(records), encoding="utf-8")
    assert main([plan, "--profile", str(tmp_path / "profile.json"), "-o", str(tmp_path / "page.html")]) == 0
    assert "0.750 ms" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--shapes", "x:3x5"], "dimension 1 must be 4, not 5"),
        (["--shapes", "nobody:3x4"], "there is no input 'nobody'"),
        (["--profile", "PLAN"], "cannot read"),
        (["--source", "missing.py"], "cannot read missing.py"),
    ],
)
def test_bad_input(
    flags: list[str], message: str, plan: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = [plan if flag == "PLAN" else flag for flag in flags]
    assert main([plan, *flags, "-o", str(tmp_path / "page.html")]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "page.html").exists()


def test_a_damaged_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.plan").write_bytes(b"no plan")
    assert main([str(tmp_path / "bad.plan"), "-o", str(tmp_path / "page.html")]) == 1
    assert "no mlirt plan file" in capsys.readouterr().err
