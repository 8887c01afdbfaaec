"""Which general registers an instruction reads or writes: the first of each operand is in the text, the rest is not.

Where an opcode is not known its operands count as wider than they may be: then a check finds too much, not too little.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mlirt.builder.machine_code.listing import Instruction

_REGISTER = re.compile(r"(?<![A-Za-z_])R(\d+)((?:\.\w+)*)")
_BRACKETS = re.compile(r"\[[^\]]*\]")
_SHAPE = re.compile(r"\.64x(\d+)x\d+\.(\w+)")
_BITS = re.compile(r"\.[USBF]?(64|128|256)(?=\.|$)")
_MATRICES = re.compile(r"\.(?:M88|MT88|M816|MT816)\.?(\d)?")

PRODUCTS = frozenset({"HGMMA", "IGMMA", "QGMMA"})
# The first operand of these is not written: it is memory, a predicate, or a value that goes elsewhere.
_WRITES_NONE = frozenset({
    *("ST", "STG", "STS", "STL", "STSM", "RED", "REDG", "REDUX", "SUST", "SURED", "BRA", "BRX", "CALL", "RET", "EXIT"),
    *("BSSY", "BSYNC", "BAR", "DEPBAR", "MEMBAR", "FENCE", "NOP", "WARPSYNC", "SYNCS", "LDGSTS", "R2UR", "R2P"),
    *("ISETP", "FSETP", "DSETP", "HSETP2", "BMOV", "ATOMS_", "UTMALDG", "UTMASTG", "UBLKCP", "BPT", "CCTL", "VOTEU"),
})  # fmt: skip
# Opcodes whose operands are one register each, also where the text says 64, which is a pair of two operands.
_NARROW = frozenset({
    *("SHF", "SYNCS", "MUFU", "IADD3", "IMAD", "LEA", "LOP3", "MOV", "SEL", "PRMT", "F2FP", "FADD", "FMUL", "FFMA"),
    *("FMNMX", "FSEL", "FSETP", "FCHK", "FRND", "I2FP", "ISETP", "SHFL", "VIADD", "VIMNMX", "VIADDMNMX", "VIMNMX3"),
    *("S2R", "HADD2", "HMUL2", "HFMA2", "HMNMX2", "HSETP2", "HSET2", "PLOP3", "P2R", "R2P", "R2UR", "IABS", "POPC"),
    *("FLO", "BREV", "BMSK", "SGXT", "LEPC", "VOTE", "VOTEU", "MATCH", "IDP", "IMNMX", "FSWZADD", "VABSDIFF", "FSET"),
    *("BRA", "BRX", "CALL", "RET", "EXIT", "BSSY", "BSYNC", "BAR", "DEPBAR", "MEMBAR", "FENCE", "NOP", "WARPSYNC"),
    *("F2I", "I2F", "F2F", "LD", "LDG", "LDS", "LDL", "LDC", "ST", "STG", "STS", "STL", "LDGSTS", "ATOM", "ATOMG"),
    *("ATOMS", "RED", "REDG", "REDUX", "NANOSLEEP", "CS2R", "R2B", "B2R", "ELECT", "CREDUX", "BMOV", "GETLMEMBASE"),
    *("WARPGROUP", "ACQBULK", "PREEXIT", "ERRBAR", "YIELD", "CCTL", "ENDCOLLECTIVE", "CGAERRBAR", "S2UR"),
})  # fmt: skip
_PAIRS = frozenset({"CS2R"})
_WIDE_RESULTS = re.compile(r"^IMAD\.WIDE|^IMAD\.HI\.64")
_BY_BITS = frozenset({
    *("LD", "LDG", "LDS", "LDL", "LDC", "ST", "STG", "STS", "STL", "ATOM", "ATOMG", "ATOMS", "RED", "REDG"),
    *("F2I", "I2F", "F2F", "MOV", "CS2R"),
})  # fmt: skip
_PREDICATE = re.compile(r"!?U?P(?:\d|T)")
_UNKNOWN = 4


def accumulators(product: Instruction) -> range:
    """The registers of a wgmma's accumulators."""
    shape = _SHAPE.search(product.opcode)
    first = _REGISTER.match(product.parts[0])
    if shape is None or first is None:
        raise ValueError(f"the accumulators of {product} are not known")
    half = shape[2] == "F16" and product.name != "IGMMA"
    return range(int(first[1]), int(first[1]) + int(shape[1]) // (4 if half else 2))


def left_registers(product: Instruction) -> range:
    """The registers of a wgmma's left matrix; empty where that is in shared memory."""
    found = _REGISTER.fullmatch(product.parts[1].removesuffix(".reuse"))
    return range(0) if found is None else range(int(found[1]), int(found[1]) + 4)


def reads_accumulators(product: Instruction) -> bool:
    """Whether a wgmma adds to what is in its registers, and does not begin with zeros."""
    return any(_REGISTER.match(part) for part in product.parts[2:])


def touched(instruction: Instruction) -> frozenset[int]:
    """The registers that an instruction reads or writes."""
    return frozenset(number for run in _operands(instruction) for number in run)


def written(instruction: Instruction) -> frozenset[int]:
    """The registers that an instruction writes."""
    if instruction.name in _WRITES_NONE:
        return frozenset()
    for part in instruction.parts:
        if "[" in part:
            continue
        if found := _REGISTER.match(part):
            return frozenset(range(int(found[1]), int(found[1]) + _result_width(instruction)))
    return frozenset()


def _operands(instruction: Instruction) -> Iterator[range]:
    outside = _BRACKETS.sub(" ", instruction.operands)
    inside = " ".join(_BRACKETS.findall(instruction.operands))
    for found in _REGISTER.finditer(inside):
        yield range(int(found[1]), int(found[1]) + (2 if ".64" in found[2] else 1))
    if instruction.opcode.startswith("IMAD.WIDE"):
        yield from _wide_product(instruction)
        return
    width = max(_result_width(instruction), _width(instruction))
    for found in _REGISTER.finditer(outside):
        yield range(int(found[1]), int(found[1]) + (2 if ".64" in found[2] else width))


def _wide_product(instruction: Instruction) -> Iterator[range]:
    """A product of two registers whose sum with a pair is a pair: the result comes first, the addend last."""
    parts = [part for part in instruction.parts if not _PREDICATE.match(part)]
    for number, part in enumerate(parts):
        width = 2 if number in (0, len(parts) - 1) else 1
        starts = (int(found[1]) for found in _REGISTER.finditer(_BRACKETS.sub(" ", part)))
        yield from (range(start, start + width) for start in starts)


def _result_width(instruction: Instruction) -> int:
    return 2 if _WIDE_RESULTS.match(instruction.opcode) else _width(instruction)


def _width(instruction: Instruction) -> int:
    """Registers of an operand that is no address."""
    name, opcode = instruction.name, instruction.opcode
    if matrices := _MATRICES.search(opcode):
        return int(matrices[1] or 1)
    if name in _PAIRS:
        return 1 if ".32" in opcode else 2
    bits = _BITS.search(opcode)
    if name in _BY_BITS:
        return int(bits[1]) // 32 if bits else 1
    if name in _NARROW:
        return 1
    if name in ("DADD", "DMUL", "DFMA", "DSETP", "DMNMX"):
        return 2
    return _UNKNOWN
