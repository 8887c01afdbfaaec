"""What the check of machine code finds in listings made by hand, and what it lets pass."""

from __future__ import annotations

import pytest

from mlirt.builder.machine_code.check import violations
from mlirt.builder.machine_code.listing import parse_listing

PRODUCT = "HGMMA.64x32x16.F32 R24, gdesc[UR4], R24, gsb0 ;"
WAIT = "WARPGROUP.DEPBAR.LE gsb0, 0x0 ;"


def found(*lines: str) -> list[str]:
    """What is wrong with a kernel, one text for each instruction."""
    text = "\n".join(["//---- .text.k ----", ".text.k:", *lines, "EXIT ;"])
    return [f"{one.instruction}: {one.reason}" for one in violations(parse_listing(text))]


def test_accumulators_that_were_waited_for() -> None:
    assert (
        found("WARPGROUP.ARRIVE ;", PRODUCT, "IADD3 R2, R3, R4, RZ ;", WAIT, "STG.E.128 desc[UR4][R2.64], R24 ;") == []
    )


@pytest.mark.parametrize(
    "use",
    [
        "F2FP.F16.F32.PACK_AB R2, R39, R38 ;",  # reads the last sum
        "STG.E.128 desc[UR4][R2.64], R22 ;",  # reads the two registers before the accumulators and two of them
        "CS2R R38, SRZ ;",
        "IMAD.WIDE R23, R2, 0x2, R4 ;",  # writes the register after the one in its text
        "IMAD.WIDE.U32 R2, P1, R4, R5, R23 ;",  # adds the pair of the last sum and the register before
        "IMAD.WIDE.U32 R2, R24, -0x55555555, RZ ;",
        "@P0 MOV R30, RZ ;",
        "LDG.E R2, desc[UR4][R38.64] ;",
        "LDSM.16.M88.4 R21, [R2] ;",
        "HMMA.16816.F32 R22, R4, R8, R12 ;",
        "HGMMA.64x64x16.F32 R8, gdesc[UR4], RZ, !UPT, gsb0 ;",  # sums of another shape that overlap
    ],
)  # fmt: skip
@pytest.mark.parametrize("wait", ["", "WARPGROUP.DEPBAR.LE gsb0, 0x1 ;", "@!P0 WARPGROUP.DEPBAR.LE gsb0, 0x0 ;"])
def test_accumulators_that_are_used_too_early(use: str, wait: str) -> None:
    assert len(found(PRODUCT, *([wait] if wait else []), use, WAIT)) == 1


def test_factors_of_a_wide_product_are_single_registers() -> None:
    assert found("WARPGROUP.ARRIVE ;", PRODUCT, "IMAD.WIDE.U32 R2, R23, -0x55555555, RZ ;", WAIT) == []
    assert found("WARPGROUP.ARRIVE ;", PRODUCT, "IMAD.WIDE R2, R23, c[0x0][0x210], R4, !PT ;", WAIT) == []


def test_half_precision_accumulators_are_half_as_many() -> None:
    product = "HGMMA.64x32x16.F16 R24, gdesc[UR4], R24, gsb0 ;"
    assert found(product, "MOV R2, R32 ;", WAIT) == []
    assert len(found(product, "MOV R2, R31 ;", WAIT)) == 1


def test_waits_count_groups() -> None:
    """Six groups with accumulators of their own: two are left, the four before are done."""
    groups = [f"HGMMA.64x8x16.F32 R{24 + 4 * k}, gdesc[UR4], RZ, !UPT, gsb0 ;" for k in range(6)]
    one = "WARPGROUP.DEPBAR.LE gsb0, 0x2 ;"
    assert found(*groups, one, "MOV R2, R39 ;", WAIT) == []
    assert len(found(*groups, one, "MOV R2, R40 ;", WAIT)) == 1
    assert len(found(*groups, "WARPGROUP.DEPBAR.LE gsb0, 0x5 ;", one.replace("2", "6"), "MOV R2, R28 ;", WAIT)) == 1


@pytest.mark.parametrize(
    "lines",
    [
        (PRODUCT, "@P0 BRA `(.L_x_1) ;", WAIT, ".L_x_1:", "MOV R2, R24 ;"),
        (PRODUCT, "BRX R4 -0xa0 (*\"BRANCH_TARGETS .L_x_1,.L_x_2\"*);", ".L_x_1:", WAIT, ".L_x_2:", "MOV R2, R24 ;"),
        (PRODUCT, "BSSY B0, `(.L_x_1) ;", "@P0 BRA `(.L_x_2) ;", WAIT, ".L_x_2:", "BSYNC B0 ;", ".L_x_1:",
         "MOV R2, R24 ;"),
        (".L_x_1:", "MOV R2, R24 ;", PRODUCT, "@P0 BRA `(.L_x_1) ;", WAIT),
        (PRODUCT, "BRA.DIV UR4, `(.L_x_1) ;", WAIT, "EXIT ;", ".L_x_1:", "MOV R2, R24 ;"),
        (PRODUCT, "CALL.ABS.NOINC `(f) ;", WAIT, "EXIT ;", "f:", "MOV R2, R24 ;", "RET.ABS.NODEC R20 0x0 ;"),
        (PRODUCT, "@!P0 CALL.REL.NOINC `(.L_x_1) ;", WAIT, "EXIT ;", ".L_x_1:", "MOV R2, R24 ;"),
    ],
)  # fmt: skip
def test_every_path_is_followed(lines: tuple[str, ...]) -> None:
    assert [one for one in found(*lines) if one.startswith("MOV R2, R24")]


def test_what_cannot_be_followed_is_said() -> None:
    assert "not known" in found("BRX R4 -0xa0 ;")[0]
    assert "not known" in found("CALL.ABS.NOINC R4 ;")[0]


def test_a_left_matrix_in_registers() -> None:
    product = "HGMMA.64x32x16.F32 R24, R4, gdesc[UR4].tnspB, R24, gsb0 ;"
    assert found("WARPGROUP.ARRIVE ;", product, "MOV R2, R4 ;", WAIT, "MOV R4, R2 ;") == []
    assert len(found("WARPGROUP.ARRIVE ;", product, "MOV R7, R2 ;", WAIT)) == 1


def test_changed_registers_are_fenced() -> None:
    assert found("CS2R R24, SRZ ;", "WARPGROUP.ARRIVE ;", PRODUCT, WAIT) == []
    assert len(found("WARPGROUP.ARRIVE ;", "CS2R R24, SRZ ;", PRODUCT, WAIT)) == 1


def test_copies_of_threads() -> None:
    copy, group, wait = "LDGSTS.E.BYPASS.128 [R5], desc[UR12][R2.64] ;", "LDGDEPBAR ;", "DEPBAR.LE SB0, 0x0 ;"
    barrier, read = "BAR.SYNC.DEFER_BLOCKING 0x0 ;", "LDS R7, [UR8] ;"
    assert found(copy, group, wait, barrier, read) == []
    assert "waited for" in found(copy, group, barrier, read)[0]
    assert "no barrier follows" in found(barrier, copy, group, wait, read)[0]


MAKE = ("@P1 BRA `(.L_x_9) ;", "SYNCS.EXCH.64 URZ, [UR7], UR4 ;", ".L_x_9:")
BARRIER, LOAD = "BAR.SYNC.DEFER_BLOCKING 0x0 ;", "UTMALDG.2D [UR8], [UR32] ;"
ASK = ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR9], R3 ;",)
AWAIT = (".L_x_8:", *ASK, "@!P0 BRA `(.L_x_8) ;")


@pytest.mark.parametrize("use", ["LDS R7, [UR8] ;", "HGMMA.64x32x16.F32 R24, gdesc[UR4], RZ, !UPT, gsb0 ;"])
def test_copies_of_the_device(use: str) -> None:
    assert found(*MAKE, BARRIER, LOAD, *AWAIT, use) == []
    assert "no copy of the device" in found(*MAKE, BARRIER, LOAD, use)[0]
    assert "no copy of the device" in found(*MAKE, BARRIER, LOAD, *ASK, use)[0]
    asked_wrongly = ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR9], R3 ;", "@P0 BRA `(.L_x_7) ;", use, ".L_x_7:")
    assert "no copy of the device" in found(*MAKE, BARRIER, LOAD, *asked_wrongly)[0]


@pytest.mark.parametrize("use", [LOAD, "SYNCS.ARRIVE.TRANS64 RZ, [UR9], R2 ;", *ASK])
def test_barriers_that_another_thread_makes(use: str) -> None:
    assert found(*MAKE, BARRIER, use) == []
    assert "no barrier of the block" in found(*MAKE, use)[0]


@pytest.mark.parametrize("store", ["UTMASTG.2D [UR8], [UR16] ;", "UBLKCP.G.S [UR6], [UR8], UR5 ;"])
def test_copies_out_of_shared_memory(store: str) -> None:
    write, fence, group, wait = "STS [R0], R7 ;", "FENCE.VIEW.ASYNC.S ;", "UTMACMDFLUSH ;", "DEPBAR.LE SB0, 0x0 ;"
    assert found(write, fence, store, group, wait) == []
    assert "FENCE.VIEW.ASYNC" in found(write, store, group, wait)[0]
    assert "the kernel ends" in found(write, fence, store, group)[0]
    assert "the kernel ends" in found(write, fence, store, wait)[0]


def test_a_product_of_what_threads_wrote() -> None:
    assert found("STS [R0], R7 ;", "FENCE.VIEW.ASYNC.S ;", "WARPGROUP.ARRIVE ;", PRODUCT, WAIT) == []
    assert "FENCE.VIEW.ASYNC" in found("STS [R0], R7 ;", "WARPGROUP.ARRIVE ;", PRODUCT, WAIT)[0]


MADE = (
    "SYNCS.EXCH.64 URZ, [UR8], UR4 ;",
    "UTCATOMSWS.FIND_AND_SET.ALIGN UP0, UR4, UR7 ;",
    "BAR.SYNC.DEFER_BLOCKING 0x0 ;",
)
WAITED = ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R6+URZ], R7 ;", "@!P0 BRA `(.text.k) ;")
TENSOR_PRODUCT = "UTCHMMA gdesc[UR4], gdesc[UR6], tmem[UR16], tmem[UR18], idesc[UR19], !UPT ;"
COMMIT, TENSOR_LOAD = "UTCBAR [UR4], URZ ;", "LDTM.16dp256bit.x8 R4, tmem[UR5] ;"
FREED = ("BAR.SYNC.DEFER_BLOCKING 0x0 ;", "UTCATOMSWS.AND URZ, UR4 ;")


def test_tensor_memory() -> None:
    assert found(*MADE, *WAITED, TENSOR_PRODUCT, COMMIT, *WAITED, TENSOR_LOAD, *FREED) == []


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ((*MADE, *WAITED, TENSOR_PRODUCT, *FREED), "not committed"),
        ((*MADE, TENSOR_LOAD, *FREED), "no barrier has been waited for"),
        ((*MADE, *WAITED, TENSOR_PRODUCT, COMMIT), "nothing frees"),
        ((*MADE, *WAITED, TENSOR_PRODUCT, COMMIT, FREED[1]), "behind its use"),
        ((*MADE, *WAITED, *FREED, TENSOR_LOAD), "behind its release"),
        ((*MADE, "UTMALDG.2D [UR4], [UR16] ;", TENSOR_PRODUCT, COMMIT, *FREED), "no copy of the device"),
    ],
)
def test_tensor_memory_that_is_misused(lines: tuple[str, ...], reason: str) -> None:
    (fault,) = found(*lines)
    assert reason in fault
