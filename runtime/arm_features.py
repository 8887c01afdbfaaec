"""What a 64-bit Arm processor has, as the operating system tells it: LLVM finds few of the features that code uses."""

import ctypes
import sys

_HWCAP, _HWCAP2 = 16, 26
_LINUX = {
    _HWCAP: {1: "neon", 8: "lse", 10: "fullfp16", 12: "rdm", 20: "dotprod", 22: "sve"},
    _HWCAP2: {1: "sve2", 13: "i8mm", 14: "bf16"},
}
"""Bits of the words of Linux's auxiliary vector, by LLVM's names."""
_MACOS = {"lse": "LSE", "fullfp16": "FP16", "rdm": "RDM", "dotprod": "DotProd", "i8mm": "I8MM", "bf16": "BF16"}
MACOS_NAMES = {name: f"hw.optional.arm.FEAT_{one}" for name, one in _MACOS.items()}
"""What macOS's sysctl is asked for; all have NEON."""


def arm_features() -> frozenset[str]:
    """LLVM's names of what this machine has; only those that the system can be asked for."""
    if sys.platform == "linux":
        ask = ctypes.CDLL(None).getauxval
        ask.restype, ask.argtypes = ctypes.c_ulong, [ctypes.c_ulong]
        return features_of_words({word: int(ask(word)) for word in _LINUX})
    if sys.platform == "darwin":
        return frozenset({"neon", *(name for name, asked in MACOS_NAMES.items() if _sysctl(asked))})
    return frozenset({"neon"})


def features_of_words(words: dict[int, int]) -> frozenset[str]:
    """The features that the words AT_HWCAP (16) and AT_HWCAP2 (26) tell of."""
    return frozenset(name for word, bits in _LINUX.items() for bit, name in bits.items() if words[word] >> bit & 1)


def _sysctl(name: str) -> bool:
    """Whether a number of the system is there and not 0."""
    value, size = ctypes.c_int(0), ctypes.c_size_t(ctypes.sizeof(ctypes.c_int))
    failed = ctypes.CDLL(None).sysctlbyname(name.encode(), ctypes.byref(value), ctypes.byref(size), None, 0)
    return not failed and bool(value.value)
