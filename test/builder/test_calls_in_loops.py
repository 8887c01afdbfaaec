"""Vector loops of functions call nothing of the library for usual numbers, whatever processor they are for."""

from __future__ import annotations

import re
from functools import cache

import pytest

from mlirt.builder.device_choice import asking
from mlirt.builder.host import cpu_target
from mlirt.builder.numba_cpu import code_processor, kernel_texts
from mlirt.dialects.processor_files import processor_names

FUNCTIONS = (
    *("exp", "exp2", "log", "log2", "tanh", "erf", "expm1", "log1p", "sinh", "cosh", "asinh", "acosh", "atanh"),
    *("asin", "acos", "atan", "sin", "cos", "tan", "sqrt", "rsqrt", "round", "floor", "ceil", "trunc", "roundeven"),
    *("log10", "cbrt"),
)
TWO = ("remainder(v, u)", "fma(v, u, v)", "power(v, u)", "atan2(v, u)")
_LIBRARY = re.compile(r"call [^@]*@(?!llvm\.)([\w.]+)\(")
# Operations of LLVM that become calls, unless the processor has an instruction for them.
_EXPANDED = re.compile(r"call [^@]*@llvm\.(exp|exp2|exp10|log|log2|log10|pow|powi|sin|cos|tan)\.")


@cache
def representatives() -> dict[str, str]:
    """Of the processors with the same code the first one, by the name of each."""
    chosen: dict[object, str] = {}
    found: dict[str, str] = {}
    for name in processor_names():
        with asking(None, name):
            found[name] = chosen.setdefault(code_processor(cpu_target()), name)
    return found


def source(name: str, call: str, element: str) -> str:
    """A kernel that writes `call` of `v` and `u`, eight elements at a time."""
    lines = [
        "from mlirt.builder.numba_cpu_intrinsics import *\n\n",
        f"def {name}(params, worker, workers):",
        f"    x, z = const_{element}_pointer(params[0]), const_{element}_pointer(params[1])",
        f"    y, n = {element}_pointer(params[2]), params[3]",
        "    for i in range(0, n, 8):",
        "        v, u = load(x, i, 8), load(z, i, 8)",
        f"        store(y, i, {call})",
    ]
    return "\n".join(lines) + "\n"


def blocks_of(text: str, kernel: str) -> dict[str, tuple[str, list[str]]]:
    """The body of each block of the kernel's function, and the blocks that may come next."""
    body = text[text.index(f"define void @{kernel}(") :]
    body = body[: body.index("\n}")]
    parts = re.split(r"\n([\w.$-]+):[^\n]*", body)[1:]
    return {
        name: (inside, re.findall(r"label %([\w.$-]+)", inside.rsplit("\n  br ", 1)[-1] if "\n  br " in inside else ""))
        for name, inside in zip(parts[::2], parts[1::2], strict=True)
    }


def stores_in_a_loop(blocks: dict[str, tuple[str, list[str]]]) -> bool:
    """Whether a block that stores may come after itself."""
    for start, (inside, following) in blocks.items():
        seen, waiting = set[str](), [name for name in following if name in blocks]
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += [one for one in blocks[name][1] if one in blocks]
        if "store <" in inside and start in seen:
            return True
    return False


@pytest.mark.parametrize("element", ["float32", "float64"])
@pytest.mark.parametrize("cpu", sorted(set(representatives().values())))
def test_usual_numbers_call_nothing(cpu: str, element: str) -> None:
    """Without the blocks that call, a loop that stores vectors is left: others are for rare numbers."""
    calls = [f"{name}(v)" for name in FUNCTIONS] + list(TWO)
    with asking(None, cpu):
        sources = {f"kernel{number}": source(f"kernel{number}", call, element) for number, call in enumerate(calls)}
        texts = kernel_texts(sources, cpu_target(), "llvm")
    for call, (name, text) in zip(calls, texts.items(), strict=True):
        blocks = blocks_of(text, name)
        assert stores_in_a_loop(blocks), call
        assert not _EXPANDED.search(text), call
        quiet = {name: block for name, block in blocks.items() if not _LIBRARY.search(block[0])}
        assert stores_in_a_loop(quiet), call


def test_a_call_in_a_loop_is_found() -> None:
    text = """define void @kernel(ptr %.1) {
body:
  br label %loop

loop:                                             ; preds = %body, %loop
  %.2 = tail call float @expf(float %.3)
  store <8 x float> %.4, ptr %.1
  br i1 %.5, label %loop, label %end

end:
  ret void
}
"""
    blocks = blocks_of(text, "kernel")
    assert stores_in_a_loop(blocks)
    assert not stores_in_a_loop({name: one for name, one in blocks.items() if not _LIBRARY.search(one[0])})
