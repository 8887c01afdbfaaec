"""What a 64-bit Arm processor has, as the operating system tells it: LLVM finds few of the features that code uses."""

import ctypes
import sys

_HWCAP, _HWCAP2 = 16, 26
# prctl(PR_SVE_GET_VL), whose result has the bytes of a register of SVE in its lower 16 bits, and flags.
_SVE_GET_VL, _LENGTH = 51, 0xFFFF
LINUX_BITS = {
    _HWCAP: {1: "neon", 8: "lse", 10: "fullfp16", 12: "rdm", 20: "dotprod", 22: "sve", 23: "fp16fml"},
    _HWCAP2: {1: "sve2", 13: "i8mm", 14: "bf16"},
}
"""Bits of the words of Linux's auxiliary vector, with LLVM's names."""
_MACOS = {
    **{"lse": "LSE", "fullfp16": "FP16", "fp16fml": "FHM", "rdm": "RDM", "dotprod": "DotProd"},
    **{"i8mm": "I8MM", "bf16": "BF16"},
}
MACOS_NAMES = {name: f"hw.optional.arm.FEAT_{one}" for name, one in _MACOS.items()}
"""What macOS's sysctl is asked for; all have NEON."""


def arm_features() -> frozenset[str]:
    """LLVM's names of what this machine has; only those that the system can be asked for. What LLVM has no name for is
    how wide the registers of SVE are: `sve256` where they have 256 bits.
    """
    if sys.platform == "linux":
        ask = ctypes.CDLL(None).getauxval
        ask.restype, ask.argtypes = ctypes.c_ulong, [ctypes.c_ulong]
        return features_of_words({word: int(ask(word)) for word in LINUX_BITS}, _sve_bits())
    if sys.platform == "darwin":
        return frozenset({"neon", *(name for name, asked in MACOS_NAMES.items() if _sysctl(asked))})
    return frozenset({"neon"})


def features_of_words(words: dict[int, int], sve_bits: int = 0) -> frozenset[str]:
    """The features that the words AT_HWCAP (16) and AT_HWCAP2 (26) tell of, with the width of SVE's registers."""
    found = {name for word, bits in LINUX_BITS.items() for bit, name in bits.items() if words[word] >> bit & 1}
    return frozenset(found | {f"sve{sve_bits}"} if "sve" in found else found)


def _sve_bits() -> int:
    """The width of the registers of SVE, as threads of this process have it; 0 where the system does not say."""
    found = ctypes.CDLL(None).prctl(_SVE_GET_VL, 0, 0, 0, 0)
    return 8 * (found & _LENGTH) if found > 0 else 0


def _sysctl(name: str) -> bool:
    """Whether a number of the system is there and not 0."""
    value, size = ctypes.c_int(0), ctypes.c_size_t(ctypes.sizeof(ctypes.c_int))
    failed = ctypes.CDLL(None).sysctlbyname(name.encode(), ctypes.byref(value), ctypes.byref(size), None, 0)
    return not failed and bool(value.value)
