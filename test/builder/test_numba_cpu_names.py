"""Names of generated source that stand for one value, and those that need memory."""

from __future__ import annotations

import ast

import pytest

from mlirt.builder.numba_cpu_names import single_names

_CASES = {
    "parameters and values": ("a = n + 1; y[a] = n", {"n", "a", "y"}),
    "a parameter that changes": ("n += 1; y[n] = 0", {"y"}),
    "assigned twice": ("a = 1; a = n; y[a] = a", {"n", "y"}),
    "read before it is assigned": ("for i in range(n):\n    y[i] = a\n    a = i", {"n", "y", "i"}),
    "changed by itself": ("for i in range(n):\n    a = a + i", {"n", "y", "i"}),
    "read behind the branch that assigns it": ("if n:\n    a = 1\ny[0] = a", {"n", "y"}),
    "read in blocks behind it": ("a = n\nif n:\n    y[a] = 0\nelse:\n    y[1] = a", {"n", "y", "a"}),
    "a loop's variable behind the loop": ("for i in range(n):\n    y[i] = 0\ny[0] = i", {"n", "y"}),
    "a loop's variable that changes": ("for i in range(n):\n    i += 1", {"n", "y"}),
    "a loop's variable in its bounds": ("for n in range(n):\n    y[n] = 0", {"y"}),
    "several at once": ("a, b = n, 2; y[a] = b", {"n", "y", "a", "b"}),
    "a place at a name that is assigned with it": ("a, y[a] = n, 2", {"n", "y"}),
    "in the condition of its loop": ("while a:\n    a = n", {"n", "y"}),
}


@pytest.mark.parametrize("case", _CASES)
def test_single_names(case: str) -> None:
    body, expected = _CASES[case]
    lines = [line for part in body.split("; ") for line in part.split("\n")]
    tree = ast.parse("def k(n, y):\n" + "\n".join(f"    {line}" for line in lines))
    (function,) = tree.body
    assert isinstance(function, ast.FunctionDef)
    assert single_names(function) == expected
