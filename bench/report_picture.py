"""Takes the picture of a report for the docs: `python bench/report_picture.py MODEL PICTURE.png LAYER [FLAG ..]`.

It needs Chromium and pillow. The page is that of rt-report for a CPU, with further flags; it shows the details
of LAYER.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

from PIL import Image

from mlirt.tools.rt_report import main as rt_report

_WIDTH, _HEIGHT = 1240, 980
_COLOURS = 128


def main(model: str, picture: str, layer: str, *flags: str) -> int:
    """Write the picture; the result is the exit code."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        print("report_picture: there is no Chromium on this machine", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        page, shot = Path(folder) / "report.html", Path(folder) / "report.png"
        if rt_report([model, "--target", "cpu", *flags, "-o", str(page)]):
            return 1
        address = f"{page.as_uri()}#layer={quote(layer, safe='')}"
        quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=3000"]
        sizes = [f"--window-size={_WIDTH},{_HEIGHT}", f"--screenshot={shot}", f"--user-data-dir={folder}/profile"]
        subprocess.run([browser, *quiet, *sizes, address], check=True, capture_output=True)
        with Image.open(shot) as image:
            image.convert("RGB").quantize(_COLOURS).save(picture, optimize=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
