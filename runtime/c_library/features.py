"""Where processors say which instructions they have. x86-64: the leaf of CPUID, its register, and the bit."""

from mlirt.runtime.arm_features import LINUX_BITS, MACOS_NAMES
from mlirt.systems import DARWIN, LINUX

_EAX, _EBX, _ECX, _EDX = range(4)

FEATURES = {
    "sse3": (1, 0, _ECX, 0),
    "pclmul": (1, 0, _ECX, 1),
    "ssse3": (1, 0, _ECX, 9),
    "fma": (1, 0, _ECX, 12),
    "cx16": (1, 0, _ECX, 13),
    "sse4.1": (1, 0, _ECX, 19),
    "sse4.2": (1, 0, _ECX, 20),
    "movbe": (1, 0, _ECX, 22),
    "popcnt": (1, 0, _ECX, 23),
    "aes": (1, 0, _ECX, 25),
    "avx": (1, 0, _ECX, 28),
    "f16c": (1, 0, _ECX, 29),
    "rdrnd": (1, 0, _ECX, 30),
    "cmov": (1, 0, _EDX, 15),
    "sse": (1, 0, _EDX, 25),
    "sse2": (1, 0, _EDX, 26),
    "bmi": (7, 0, _EBX, 3),
    "avx2": (7, 0, _EBX, 5),
    "bmi2": (7, 0, _EBX, 8),
    "avx512f": (7, 0, _EBX, 16),
    "avx512dq": (7, 0, _EBX, 17),
    "adx": (7, 0, _EBX, 19),
    "avx512ifma": (7, 0, _EBX, 21),
    "avx512cd": (7, 0, _EBX, 28),
    "avx512bw": (7, 0, _EBX, 30),
    "avx512vl": (7, 0, _EBX, 31),
    "avx512vbmi": (7, 0, _ECX, 1),
    "avx512vbmi2": (7, 0, _ECX, 6),
    "gfni": (7, 0, _ECX, 8),
    "vaes": (7, 0, _ECX, 9),
    "vpclmulqdq": (7, 0, _ECX, 10),
    "avx512vnni": (7, 0, _ECX, 11),
    "avx512bitalg": (7, 0, _ECX, 12),
    "avx512vpopcntdq": (7, 0, _ECX, 14),
    "amx-bf16": (7, 0, _EDX, 22),
    "avx512fp16": (7, 0, _EDX, 23),
    "amx-tile": (7, 0, _EDX, 24),
    "amx-int8": (7, 0, _EDX, 25),
    "avxvnni": (7, 1, _EAX, 4),
    "avx512bf16": (7, 1, _EAX, 5),
    "avxvnniint8": (7, 1, _EDX, 4),
    "sahf": (0x80000001, 0, _ECX, 0),
    "lzcnt": (0x80000001, 0, _ECX, 5),
    "prfchw": (0x80000001, 0, _ECX, 8),
}
"""By LLVM's name of a feature."""

_SVE_WIDTH = "sve256"
_WORDS = {name: (word, 0, 0, bit, "") for word, bits in LINUX_BITS.items() for bit, name in bits.items()}
ARM_FEATURES = {
    DARWIN: {name: (0, 0, 0, 0, asked) for name, asked in {"neon": "", **MACOS_NAMES}.items()},
    LINUX: {**_WORDS, _SVE_WIDTH: (0, 0, int(_SVE_WIDTH.removeprefix("sve")), 0, "")},
}
"""By the system: a word of Linux's auxiliary vector and the bit, or the width of a register of SVE in bits; what macOS
is asked for, which is nothing for what all have.
"""
