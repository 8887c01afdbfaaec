"""Mutated IR texts through rt-opt: no crash, no hang, no traceback, no error of its own.

`python bench/fuzz_texts.py [--cases N] [--first N] [--seconds S] [--keep DIR]`

The texts are those of the tests (test/**/*.mlir), each with one to five changes of words, numbers, lengths, lines and
characters, or with something long put in. Each runs in a forked child with 6 GiB of memory: with the flags of its RUN
line, through phases of the compiler, or on the interpreter. Outcomes:

output               rt-opt accepts it and prints IR
diagnosed            the exit code is 1, and each line of the message begins with a file or a tool
crash, hang, exception, internal, lines    what must not be; the exit code is 1
"""

from __future__ import annotations

import gc
import io
import re
import shlex
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path

from isolated_case import OWN_MISTAKE, Case, Limits, parser, run_cases, untold
from text_mutations import mutated

from mlirt.tools import rt_opt

_TESTS = Path(__file__).resolve().parents[1] / "test"
_RUN = re.compile(r"^// RUN: rt-opt %s(.*?)(?:\||$)", re.MULTILINE)
_FLAGS = (
    "",
    "",
    "--to cleanup",
    "--to fusion",
    "--to layout",
    "--to lowering",
    "--to memory",
    "-p canonicalize,cse,dce",
)
_SMALL = b"""func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %y = trt.activation relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}
"""
_LEFT_OUT = ("%", "$", "--run=c", "--verify-diagnostics", "--timing", "--plugins", "--dump", "-o", "--weights")


def main() -> int:
    """Run the fuzz; 1 where a case is bad."""
    options = parser(__doc__ or "", 2000).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder  # for the reproducers of passes that fail
        cases = text_cases(options.first, options.cases)
        return 0 if run_cases(cases, Limits(options.seconds), options.keep).is_good else 1


def text_cases(first: int, count: int) -> Iterator[Case]:
    """The cases with these numbers."""
    texts = base_texts()
    others = [text for _, text, _ in texts]
    for flags in _FLAGS:  # what is imported and made once need not be in each child
        judge(flags, _SMALL, untold)
    gc.freeze()
    for number in range(first, first + count):
        name, text, own = texts[number * 7919 % len(texts)]
        flags = own if number % 3 == 0 else _FLAGS[number // 3 % len(_FLAGS)]
        yield Case(f"{number} {name}", mutated(text, number, others).encode("utf-8", "replace"), partial(judge, flags))


def base_texts() -> list[tuple[str, str, str]]:
    """The name, the text and the flags of each part of each IR file of the tests."""
    found: list[tuple[str, str, str]] = []
    for path in sorted(_TESTS.rglob("*.mlir")):
        text = path.read_text(encoding="utf-8")
        run = _RUN.search(text)
        flags = run[1].replace("--split-input-file", "") if run else ""
        if any(word in flags for word in _LEFT_OUT):
            flags = ""
        parts = re.split(r"^// -----\s*$", text, flags=re.MULTILINE)
        found += [(f"{path.stem}-{k}.mlir", part, flags) for k, part in enumerate(parts) if len(part) < 20_000]
    return found


def judge(flags: str, content: bytes, tell: Callable[[str, str], None]) -> None:
    """Run the tool on a text as on a file, and look at its exit code and its messages."""
    tell("silent", f"with {flags}")
    out, err = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "in.mlir")
        path.write_bytes(content)
        with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code = rt_opt.main([str(path), *shlex.split(flags)])
        text = err.getvalue().replace(f"{path}", "in.mlir")
    tell(*_outcome(code, text, out.getvalue()))


def _outcome(code: int, text: str, output: str) -> tuple[str, str]:
    if "Traceback" in text or code not in (0, 1):
        return "exception", text
    if "internal error" in text or OWN_MISTAKE.search(text):
        return "internal", text
    if any(not re.match(r"in\.mlir:|rt-opt:|warning:", line) for line in text.splitlines()):
        return "lines", text
    if code == 0:
        return "output", ""
    return ("diagnosed", text) if text else ("exception", f"exit code 1 without a message, {len(output)} characters")


if __name__ == "__main__":
    sys.exit(main())
