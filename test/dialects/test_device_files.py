"""Device files: what they say, what follows from the figures of a device that is like another one, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlirt.dialects.cpu_device import CpuDevice
from mlirt.dialects.device_files import cpu_device, device_names, gpu_device, read_device
from mlirt.dialects.gpu_device import GpuDevice
from mlirt.dialects.target import Target
from mlirt.errors import InvalidInputError
from mlirt.kernels.attention.cuda.group_shape import group_shapes
from mlirt.kernels.lib.cuda.warpgroups.group_tile import tiles_for
from mlirt.kernels.rnn.cuda.persistent_shape import one_block_shape


@pytest.mark.parametrize("name", device_names())
def test_every_file_can_be_read(name: str) -> None:
    device = read_device(name)
    assert device.name == name
    assert device.full_name
    assert isinstance(device, CpuDevice) == name.startswith("cpu-")


def test_numbers_of_data_sheets() -> None:
    processors = {name: gpu_device(name).processors for name in ("h100-sxm", "h100-pcie", "h200", "a100", "l4")}
    assert processors == {"h100-sxm": 132, "h100-pcie": 114, "h200": 132, "a100": 108, "l4": 58}
    assert [cpu_device(name).registers for name in ("cpu-avx512", "cpu-avx2", "cpu-128")] == [32, 16, 16]
    assert cpu_device("cpu-amx").special == ("avx512vnni", "amx-tile", "amx-int8")


def test_equal_figures_change_no_bit() -> None:
    """An H100 SXM differs from an H200 in its memory alone, and so do its times."""
    one, other = gpu_device("h200"), gpu_device("h100-sxm")
    assert (one.warpgroups, one.tiles, one.clusters) == (other.warpgroups, other.tiles, other.clusters)
    assert other.boxes.far_bytes == one.boxes.far_bytes * (3350 / 1980) / (4800 / 1980)
    assert other.moves.copied_bytes == pytest.approx(one.moves.copied_bytes * 3350 / 4800)


def test_times_follow_from_figures() -> None:
    one, other = gpu_device("h200"), gpu_device("h200+processors=66+clock_mhz=990")
    assert other.processors == 66
    assert other.clusters == (66, 33, 16, 7)
    assert [other.clusters_of(blocks) for blocks in (1, 2, 4, 8)] == [66, 33, 16, 7]
    assert other.warpgroups.cycles_per_microsecond == one.warpgroups.cycles_per_microsecond / 2
    assert other.warpgroups.moved_bytes == one.warpgroups.moved_bytes / 2
    assert other.attention.slower == 2 * one.attention.slower
    assert other.moves.threads == one.moves.threads / 2
    assert (other.recurrent.register, other.recurrent.step) == (2 * one.recurrent.register, one.recurrent.step)
    assert other.warpgroups.latency == one.warpgroups.latency
    assert gpu_device("a100").tiles.halves == one.tiles.halves / 2


def test_blocks_share_the_memory_of_a_processor() -> None:
    """Each block takes 1 KiB more than it may have itself."""
    assert [gpu_device("h200").shared_bytes_of(blocks) for blocks in (1, 2)] == [227 * 1024, 113 * 1024]
    assert gpu_device("l4").shared_bytes_of(1) == 99 * 1024


def test_tiles_and_shapes_are_those_that_a_device_holds() -> None:
    """With less shared memory there are fewer tiles; with fewer registers fewer weights stay in them."""
    whole, small = gpu_device("h200"), gpu_device("h200+shared_bytes=131072+registers=32768")
    tiles, fewer = (tiles_for(device) for device in (whole, small))
    assert max(tile.shared_bytes for tile in fewer) <= 128 * 1024 < max(tile.shared_bytes for tile in tiles)
    assert {shape.name for shape in group_shapes(128, 128, small)} < {one.name for one in group_shapes(128, 128, whole)}
    assert one_block_shape(4, 128, 1, True, whole) is not None
    assert one_block_shape(4, 128, 1, True, small) is None


def test_a_target_has_the_usual_device_of_its_architecture() -> None:
    assert Target("cuda").gpu.name == "h200"
    assert Target("cuda", arch="sm_80").gpu.name == "a100"
    assert Target("cuda", device="h100-pcie").described == "h100-pcie: 114 processors, 1755 MHz, 2000 GB/s"
    assert [Target("cpu", bits).cpu.name for bits in (512, 256, 128)] == ["cpu-avx512", "cpu-avx2", "cpu-128"]
    assert Target("cpu", special=frozenset({"amx-tile", "amx-int8"})).cpu.name == "cpu-amx"


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'kind = "gpu"\nfull_name = "Mine"\nlike = "h100-pcie"\nprocessors = 57\n[warpgroups]\nlatency = 9\n'
        "[tiles.shapes]\nhalf_64x64 = { floor = 7 }\n"
    )
    device = gpu_device(str(path))
    assert (device.name, device.processors, device.clock_mhz) == ("mine", 57, 1755)
    assert device.warpgroups.latency == 9
    assert device.warpgroups.moved_bytes == pytest.approx(22230 * 57 / 132)
    assert device.tiles.shapes["half_64x64"].floor == 7
    assert device.tiles.shapes["half_128x128"].floor == 1000
    beside = tmp_path / "other.toml"
    beside.write_text('kind = "gpu"\nfull_name = "Other"\nlike = "mine.toml"\n')
    assert gpu_device(str(beside)).warpgroups == device.warpgroups


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("h100", "there is no device 'h100': expected one of a10, a100, b200, .*did you mean 'h200'"),
        ("h200+cores=3", r"'cores=3' is no change of a figure: expected \+NAME=NUMBER of processors, "),
        ("h200+processors=no", "'processors=no' is no change"),
        ("h200+processors=0", "'processors=0' is no change"),
        ("cpu-avx2+processors=3", "only figures of GPUs can be changed"),
        ("/nowhere/mine.toml", "mine.toml cannot be read"),
    ],
)
def test_descriptions_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        read_device(text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("kind = 3", "kind is 3, expected one of gpu, cpu"),
        ("kind = ", "cannot be read"),
        ('kind = "gpu"\nlike = "h200"\ncores = 3', "'cores' is unknown: expected name, full_name, arch"),
        ('kind = "gpu"\nlike = "h200"\nprocessors = "many"', "'many' is no int"),
        ('kind = "gpu"\nlike = "h200"\nwarpgroups = 3', "expected a table"),
        ('kind = "gpu"\nlike = "h200"\nclusters = 3', "expected a list"),
        ('kind = "cpu"\nvector_bits = 512', "does not say full_name, registers"),
        ('kind = "gpu"\nlike = "mine.toml"', "are like each other"),
    ],
)
def test_files_that_are_refused(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(content)
    with pytest.raises(InvalidInputError, match=message):
        read_device(str(path))


def test_a_gpu_is_no_processor() -> None:
    with pytest.raises(InvalidInputError, match="the device cpu-avx2 is no GPU"):
        gpu_device("cpu-avx2")
    with pytest.raises(InvalidInputError, match="the device a100 is a GPU"):
        cpu_device("a100")
    assert isinstance(read_device("l4"), GpuDevice)
