"""Files appear whole, links stay, and what is no regular file is never replaced."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx_models import one_node, write_model

from mlirt import atomic_file
from mlirt.atomic_file import replacing, write_atomically, write_file
from mlirt.builder.tactics.timing_cache import TimingCache
from mlirt.errors import InvalidInputError
from mlirt.runtime.plan_file import MAGIC
from mlirt.tools import rt_exec, rt_opt, rt_translate

_posix = pytest.mark.skipif(os.name != "posix", reason="this system has no such files")
Write = Callable[[Path], None]


def _plainly(path: Path) -> None:
    write_atomically(path, [b"new", b" text"])


def _by_a_library(path: Path) -> None:
    with replacing(path) as partial:
        partial.write_bytes(b"new text")


def _read(path: Path, got: list[bytes]) -> None:
    got.append(path.read_bytes())


writers = pytest.mark.parametrize("write", [_plainly, _by_a_library])


@writers
@pytest.mark.parametrize("unnamed", [True, False])
def test_a_file_is_replaced(tmp_path: Path, write: Write, unnamed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not unnamed:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    target = tmp_path / "a"
    for _ in range(2):
        write(target)
        assert target.read_bytes() == b"new text"
        assert list(tmp_path.iterdir()) == [target]


@_posix
def test_permissions_stay(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(0o600)
    _plainly(tmp_path / "a")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


@_posix
@writers
def test_a_link_stays(tmp_path: Path, write: Write) -> None:
    (tmp_path / "folder").mkdir()
    target, link, dangling = tmp_path / "folder" / "target", tmp_path / "link", tmp_path / "dangling"
    target.write_bytes(b"old")
    link.symlink_to("folder/target")
    dangling.symlink_to("folder/made")
    write(link)
    write(dangling)
    assert link.is_symlink()
    assert dangling.is_symlink()
    assert target.read_bytes() == (tmp_path / "folder" / "made").read_bytes() == b"new text"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["dangling", "folder", "link", "made", "target"]


@_posix
@writers
def test_a_pipe_gets_the_bytes(tmp_path: Path, write: Write) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for path in (tmp_path / "pipe", tmp_path / "link"):
        got: list[bytes] = []
        reader = threading.Thread(target=_read, args=(path, got))
        reader.start()
        write(path)
        reader.join(10)
        assert got == [b"new text"]
        assert path.is_fifo()


def test_a_failure_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "a"
    target.write_bytes(b"old")

    def pieces() -> object:
        yield b"new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(target, pieces())  # pyright: ignore[reportArgumentType]
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("path", ["", "a\0b", "missing/folder/file", "."])
def test_a_path_that_is_none(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OSError, match=r"a path cannot have a zero byte|No such file|Is a directory"):
        write_atomically(path, [b""])
    with pytest.raises(InvalidInputError, match="cannot write the text"):
        write_file(path, [b""], "the text")
    assert list(tmp_path.iterdir()) == []


@_posix
def test_what_a_killed_process_left_goes_with_the_next_file(tmp_path: Path) -> None:
    leftovers = [tmp_path / f".a.{k:012x}.tmp" for k in range(3)]
    others = [tmp_path / ".b.000000000000.tmp", tmp_path / ".a.tmp", tmp_path / ".a.00000000000g.tmp"]
    for path in (*leftovers, *others):
        path.write_bytes(b"half")
        os.utime(path, (time.time() - 7200, time.time() - 7200))
    os.utime(leftovers[2])  # a process may be at work on it
    _plainly(tmp_path / "a")
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "a", leftovers[2], *others])


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="files have names from the beginning here")
def test_a_killed_process_leaves_nothing(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; from mlirt.atomic_file import write_atomically\n"
        "def pieces():\n"
        "    yield bytes(1000)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_atomically(sys.argv[1], pieces())\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "a")], check=False)
    assert done.returncode == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == []


@_posix
def test_tools_write_to_what_they_are_given(tmp_path: Path) -> None:
    """To a pipe, a link and standard output, which stay what they are, and to nothing beside them."""
    model, real, link, pipe = (tmp_path / name for name in ("a.onnx", "real", "link", "pipe"))
    write_model(one_node("Relu", [np.ones(3, np.float32)])[0], model)
    link.symlink_to(real)
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)  # all that is written fits
    for output in (str(pipe), str(link)):
        assert rt_opt.main([str(model), "-o", output]) == 0
        assert rt_translate.main(["--import-onnx", str(model), "-o", output]) == 0
        flags = [f"--onnx={model}", "--target=cpu", "--iterations=1", "--duration=0", "--warmUp=0"]
        written = ("saveEngine", "exportLayerInfo", "exportTimes", "exportProfile")
        assert rt_exec.main([*flags, *(f"--{flag}={output}" for flag in written)]) == 0
        real.unlink(missing_ok=True)
        TimingCache().save(output)
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert real.read_bytes() == TimingCache().serialize()
    got = os.read(reader, 1 << 20)
    os.close(reader)
    missing = [
        part for part in (b"trt.activation relu", MAGIC, b"latencyMs", TimingCache().serialize()) if part not in got
    ]
    assert missing == []
    assert {path.name for path in tmp_path.iterdir()} == {"a.onnx", "real", "link", "pipe", "link.lock"}


@_posix
@pytest.mark.parametrize("same", ["/dev/stdout", "out"])
def test_standard_output_has_all_that_was_written(tmp_path: Path, same: str) -> None:
    write_model(one_node("Relu", [np.ones(3, np.float32)])[0], tmp_path / "a.onnx")
    with open(tmp_path / "out", "w", encoding="utf-8") as stream:
        stream.write("before\n")
        stream.flush()
        command = [str(Path(sys.executable).parent / "rt-opt"), "a.onnx", "-o", same]
        subprocess.run(command, stdout=stream, check=True, cwd=tmp_path)
    lines = (tmp_path / "out").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "before"
    assert any("trt.activation relu" in line for line in lines)


def test_special_files_are_known(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    assert not any(map(atomic_file.is_special, (tmp_path, tmp_path / "a", tmp_path / "b", "a\0b", "")))


@writers
@pytest.mark.parametrize("tries", [3, 10_000])
def test_windows_replaces_a_file_once_nobody_reads_it(
    tmp_path: Path, write: Write, tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There a file that somebody has open cannot be replaced: after a while the old one stays, and an error says so."""
    target, replace, asked = tmp_path / "a", os.replace, [0]
    target.write_bytes(b"old")

    def replace_later(source: str, to: str) -> None:
        asked[0] += 1
        if asked[0] < tries:
            raise PermissionError(13, "The process cannot access the file", source)
        replace(source, to)

    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(os, "replace", replace_later)
    monkeypatch.setattr(atomic_file, "_REPLACE_SECONDS", 0.2)
    if tries > 1000:
        with pytest.raises(PermissionError):
            write(target)
        assert target.read_bytes() == b"old"
    else:
        write(target)
        assert target.read_bytes() == b"new text"
    assert list(tmp_path.iterdir()) == [target]
