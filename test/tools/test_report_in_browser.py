"""The page in a browser, where there is one: its scripts run without an error and find the layer that a link names."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from report_page import Page
from tiny_plan import tiny_parts

from mlirt.runtime.plan_file import write_plan
from mlirt.tools.rt_report import main

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000", "--dump-dom")


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium on this machine")
@pytest.mark.parametrize("layer", ["turn", "</script><img src=x onerror=alert(1)>"])
def test_a_link_to_a_layer_shows_it(layer: str, tmp_path: Path) -> None:
    parts = tiny_parts()
    parts.manifest["launches"][1]["layer"] = layer
    write_plan(tmp_path / "tiny.plan", parts.manifest, parts.sections, parts.weights)
    assert main([str(tmp_path / "tiny.plan"), "-o", str(tmp_path / "page.html")]) == 0
    nodes = len(Page.of(tmp_path / "page.html").data["views"][0]["nodes"])
    assert BROWSER is not None
    address = (tmp_path / "page.html").as_uri() + "#layer=" + "".join(f"%{byte:02x}" for byte in layer.encode())
    command = [BROWSER, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", address]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert f'data-ready="{nodes}"' in done.stdout, done.stderr[-2000:]
    assert "data-error" not in done.stdout
    details = done.stdout.partition('<aside id="details"')[2].partition("</aside>")[0]
    shown = layer.replace("<", "&lt;").replace(">", "&gt;")
    assert f"<h3>{shown}</h3>" in details
    assert "reverse" in details, "the kernel of the launch"
