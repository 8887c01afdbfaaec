"""What cannot be read is refused with the file, the line, and what was expected there."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from read_kernels import INDEX, MEMORY, read
from xdsl.dialects.builtin import f32

from mlirt.errors import CompileError
from mlirt.kernels.lib.language import Index, KernelLanguageError, Value, kernel
from mlirt.kernels.lib.language.functions import KernelFunction
from mlirt.kernels.lib.language.words import constant

ROOT = Path(__file__).parents[4]
CASES: dict[str, Callable[..., None]] = {}


def case(expected: str) -> Callable[[Callable[..., None]], None]:
    """A function of `y` and `n` whose line with the comment `# here` is refused."""

    def add(function: Callable[..., None]) -> None:
        CASES[expected] = function

    return add


@case("expected an assignment, a call, .* not `try`")
def _(y: Any, n: Any) -> None:
    if n == 0:
        y[0] = 1.0
    else:
        try:  # here
            y[0] = 2.0
        finally:
            y[0] = 3.0


@case("expected an assignment, a call, .* not `break`")
def _(y: Any, n: Any) -> None:
    for i in range(n):
        y[i] = 0.0
        break  # here


@case("expected an assignment, a call, .* not `import`")
def _(y: Any, n: Any) -> None:
    from math import pi  # here

    y[n] = pi


@case("expected numbers on both sides of a comparison, not lists of values of the run")
def _(y: Any, n: Any) -> None:
    if [n] == [n]:  # here
        y[0] = 1.0


@case("expected no `else` of a loop")
def _(y: Any, n: Any) -> None:
    for i in range(n):
        y[i] = 0.0
    else:
        y[0] = 1.0  # here


@case(r"expected a name or `memory\[index\]` before =, not `y.size`")
def _(y: Any, n: Any) -> None:
    y.size = n  # here


@case(r"expected an expression without `\(i := n\)`")
def _(y: Any, n: Any) -> None:
    y[0] = (i := n) + i  # here


@case("name 'm' is not defined")
def _(y: Any, n: Any) -> None:
    y[n] = m  # noqa: F821  # pyright: ignore[reportUndefinedVariable]  # here


@case("name 'last' is not defined: expected a value before the loop or branch of line")
def _(y: Any, n: Any) -> None:
    for i in range(n):
        last = i
    y[0] = y[last]  # pyright: ignore[reportPossiblyUnboundVariable]  # here


@case("expected both sides to have one type, not f32 and index")
def _(y: Any, n: Any) -> None:
    y[0] = y[0] + n  # here


@case("expected places or lengths .index. on both sides of //, not f32")
def _(y: Any, n: Any) -> None:
    y[n] = y[n] // 2.0  # here


@case("expected numbers on both sides of /; // divides places and lengths")
def _(y: Any, n: Any) -> None:
    y[n / 2] = 1.0  # here


@case(r"expected \+ - \* / // % or a comparison of values of the run, not \*\*")
def _(y: Any, n: Any) -> None:
    y[n] = y[n] ** 2.0  # here


@case("expected a number that can be index, not 1.5")
def _(y: Any, n: Any) -> None:
    y[n + 1.5] = 1.0  # here


@case("expected a number that can be f32, not 'one'")
def _(y: Any, n: Any) -> None:
    y[n] = "one"  # here


@case("expected a condition .i1., not index")
def _(y: Any, n: Any) -> None:
    if n:  # here
        y[0] = 1.0


@case("expected 'total' to keep its type index in a loop or branch, not to become f32")
def _(y: Any, n: Any) -> None:
    total = 0
    for i in range(n):  # here
        total = y[i]
    y[0] = total


@case("expected `return` outside of loops and branches at run time")
def _(y: Any, n: Any) -> None:
    if n > 3:
        return  # here
    y[0] = 1.0


@case("expected a condition that is known when the kernel is read")
def _(y: Any, n: Any) -> None:
    y[0] = 1.0
    assert n > 3  # here


@case("expected an index that is known when the kernel is read: lists are not in memory")
def _(y: Any, n: Any) -> None:
    y[0] = [1.0, 2.0][n]  # here


@case(r"expected memory before \[..\], not index")
def _(y: Any, n: Any) -> None:
    y[0] = n[1]  # here


@case(r"expected range\(..\), parallel\(..\) or a list to go over, not a value of type index")
def _(y: Any, n: Any) -> None:
    for i in n:  # here
        y[i] = 0.0


@case("expected bounds that are known when the kernel is read: this is unrolled")
def _(y: Any, n: Any) -> None:
    y[0] = [y[i] for i in range(n)]  # here


@case("expected 'flag' to be known when the kernel is read: a loop at run time changes it")
def _(y: Any, n: Any) -> None:
    flag = None
    for i in range(n):  # here
        if flag is None:
            y[i] = 1.0
        flag = "seen"


@case("expected 2 values, not 3")
def _(y: Any, n: Any) -> None:
    a, b = [n, n, n]  # here
    y[a] = y[b]


@pytest.mark.parametrize("expected", CASES)
def test_a_mistake_is_refused_with_its_line(expected: str) -> None:
    function = CASES[expected]
    lines, first = inspect.getsourcelines(function)
    line = first + next(number for number, text in enumerate(lines) if text.rstrip().endswith("# here"))
    with pytest.raises(KernelLanguageError, match=rf"test_errors.py:{line}: {expected}.*in `"):
        read(kernel(function), MEMORY, INDEX)


def test_an_error_in_a_function_names_its_callers() -> None:
    @kernel
    def inner(y: Value, n: Index) -> None:
        y[0] = constant(1.0, f32) + n

    @kernel
    def outer(y: Value, n: Value) -> None:
        for i in range(n):
            if i > 2:
                inner(y, i)

    with pytest.raises(KernelLanguageError) as caught:
        read(outer, MEMORY, INDEX)
    assert re.search(
        r"expected both sides .* in `y\[0\] = .*` \(called from \S*test_errors.py:\d+\)$", str(caught.value)
    )


def test_nothing_is_written_of_a_function_that_cannot_be_read_as_a_whole() -> None:
    written: list[str] = []

    @kernel
    def late(y: Value, n: Value) -> None:
        written.append("the first line")
        del y

    with pytest.raises(KernelLanguageError, match="not `del`"):
        read(late, MEMORY, INDEX)
    assert not written


def test_a_kernel_function_is_called_where_a_kernel_is_built() -> None:
    with pytest.raises(KernelLanguageError, match=r"expected `build\(k, function, ..\)` around a call"):
        kernel(CASES["expected 2 values, not 3"])(None, None)


def test_errors_of_the_compiler_pass_as_they_are() -> None:
    def word() -> None:
        raise CompileError("too many registers")

    @kernel
    def calls(y: Value, n: Value) -> None:
        word()

    with pytest.raises(CompileError, match=r"^too many registers$"):
        read(calls, MEMORY, INDEX)


def test_every_kernel_of_the_package_can_be_read() -> None:
    """What cannot be read in a kernel function is found before a network has need of it."""
    found: list[str] = []
    for path in sorted((ROOT / "kernels").rglob("*.py")):
        if "@kernel\n" not in path.read_text(encoding="utf-8") or path.parent.name == "language":
            continue
        module = import_module(".".join(("mlirt", *path.relative_to(ROOT).with_suffix("").parts)))
        holders = [module, *(one for one in vars(module).values() if isinstance(one, type))]
        functions = [one for holder in holders for one in vars(holder).values() if isinstance(one, KernelFunction)]
        assert functions, path
        found += [one.code().tree.name for one in functions]
    assert len(found) > 30


def test_a_function_without_a_file_is_refused() -> None:
    scope: dict[str, Any] = {}
    exec("def f(y, n):\n    y[0] = 1.0\n", scope)
    with pytest.raises(KernelLanguageError, match="expected the text of the kernel function f"):
        read(KernelFunction(scope["f"]), MEMORY, INDEX)  # pyright: ignore[reportArgumentType]
