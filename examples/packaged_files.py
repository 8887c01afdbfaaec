"""Files that ship inside published packages: fetched once with pip, checked against their digests, never committed."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class PackagedFile:
    """One member of a wheel: `requirement` such as `name==1.0`, the path inside, and the SHA-256 of the bytes."""

    requirement: str
    member: str
    sha256: str


RECOGNISER = PackagedFile(
    "rapidocr-onnxruntime==1.4.4",
    "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
    "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b",
)
PAGE = PackagedFile(
    "scikit-image==0.26.0",
    "skimage/data/page.png",
    "341a6f0a61557662b02734a9b6e56ec33a915b2c41886b97509dedf2a43b47a3",
)


def fetch(file: PackagedFile, cache: Path) -> Path:
    """The path of the file in `cache`, downloaded there where it is missing; raises `SystemExit` with one line."""
    path = cache / Path(file.member).name
    if not path.exists():
        blob = _member_of_wheel(file)
        cache.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".part")
        partial.write_bytes(blob)
        partial.replace(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != file.sha256:
        raise SystemExit(f"{path}: expected sha256 {file.sha256}, got {digest}; delete the file and try again")
    return path


def _member_of_wheel(file: PackagedFile) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:"]
        done = subprocess.run([*command, "-d", folder, file.requirement], capture_output=True, text=True, check=False)
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode or len(wheels) != 1:
            reason = (done.stderr.strip().splitlines() or ["no wheel came"])[-1]
            raise SystemExit(f"cannot fetch {file.requirement} from the package registry: {reason}")
        with zipfile.ZipFile(wheels[0]) as wheel:
            return wheel.read(file.member)
