"""rt-report writes one page that holds everything, whatever the names in the plan are."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pytest
from report_page import Page
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


def test_page_is_whole_and_alone(plan: str, tmp_path: Path) -> None:
    assert main([plan, "--shapes", "x:3x4", "-o", str(tmp_path / "page.html")]) == 0
    page = Page.of(tmp_path / "page.html")
    text = page.text
    assert {"svg", "rect", "table", "details", "canvas"} <= page.seen
    assert not page.loads
    assert not page.handlers
    assert "&lt;script&gt;alert(1)" in text
    assert "[n, 4]" in text
    assert "[3, 4]" in text
    assert all(layer in text for layer in ("double", "turn", "weigh"))
    assert '<meta name="viewport"' in text
    assert "<td>2 ptr, i64, 2 f64</td>" in text, "kinds of arguments, equal neighbours together"


def test_only_the_scripts_of_the_page_may_run(plan: str, tmp_path: Path) -> None:
    assert main([plan, "-o", str(tmp_path / "page.html")]) == 0
    page = Page.of(tmp_path / "page.html")
    digests = [b64encode(sha256(script.encode()).digest()).decode() for script in page.scripts]
    assert len(digests) == 2
    assert page.policy.endswith("script-src " + " ".join(f"'sha256-{digest}'" for digest in digests))


def test_the_graph_of_a_plan(plan: str, tmp_path: Path) -> None:
    assert main([plan, "--shapes", "x:3x4", "-o", str(tmp_path / "page.html")]) == 0
    data = Page.of(tmp_path / "page.html").data
    (view,) = data["views"]
    labels = [data["texts"][node["l"]] for node in view["nodes"]]
    assert labels[0] == "x"
    edges = {(labels[source], labels[target]) for source, target, _ in view["edges"]}
    assert {("x", "double"), ("double", "turn")} <= edges
    assert all(view["nodes"][source]["r"] < view["nodes"][target]["r"] for source, target, _ in view["edges"])


def test_a_large_plan_leaves_arguments_out(plan: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main([plan, "-o", str(tmp_path / "whole.html")]) == 0
    assert "buffer 0 + 0" in (tmp_path / "whole.html").read_text(encoding="utf-8")
    monkeypatch.setattr("mlirt.tools.report.launch_section._MAX_LAUNCHES_WITH_ARGUMENTS", 2)
    assert main([plan, "-o", str(tmp_path / "page.html")]) == 0
    assert "buffer 0 + 0" not in Page.of(tmp_path / "page.html").text


HOSTILE = "</script><img src=x onerror=alert(1)>"


def test_a_hostile_layer_stays_a_text(tmp_path: Path) -> None:
    parts = tiny_parts()
    for launch in parts.manifest["launches"]:
        launch["layer"] = HOSTILE
    write_plan(tmp_path / "hostile.plan", parts.manifest, parts.sections, parts.weights)
    records = [{"count": 1}, *({"name": HOSTILE, "medianMs": 1.0} for _ in range(3))]
    (tmp_path / "profile.json").write_text(json.dumps(records), encoding="utf-8")
    flags = ["--profile", str(tmp_path / "profile.json"), "--compare", str(tmp_path / "hostile.plan")]
    assert main([str(tmp_path / "hostile.plan"), *flags, "-o", str(tmp_path / "page.html")]) == 0
    page = Page.of(tmp_path / "page.html")
    assert "img" not in page.seen
    assert HOSTILE not in page.text
    assert HOSTILE in page.data["texts"]


def test_times_and_source(plan: str, tmp_path: Path) -> None:
    records = [{"count": 10}, *({"name": f"layer{i}", "averageMs": 30.0, "medianMs": 0.25 * i} for i in range(3))]
    (tmp_path / "profile.json").write_text(json.dumps(records), encoding="utf-8")
    (tmp_path / "kernels.py").write_text(SOURCE, encoding="utf-8")
    page = str(tmp_path / "page.html")
    flags = ["--profile", str(tmp_path / "profile.json"), "--source", str(tmp_path / "kernels.py")]
    assert main([plan, *flags, "-o", page]) == 0
    found = Page.of(tmp_path / "page.html")
    text = found.text
    assert "0.5000" in text
    assert "0.750 ms" in text
    assert {"scale", "reverse", "source-scale"} <= set(found.targets) <= set(found.names)
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
        (["--compare", "missing.plan"], "missing.plan"),
        (["--compare-profile", "times.json"], "give it with --compare"),
        (["--peak", "fast"], "expected two positive numbers such as 2000,80"),
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
