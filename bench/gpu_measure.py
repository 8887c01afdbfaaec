"""Measures one case after the other: our plan and its peers in turns on one stream, then each layer."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gpu_cases import Arrays, Case, data_of, worst_error
from gpu_engine import ResidentPlan
from gpu_peers import Peer, Recipe, TorchPeers, onnxruntime_peer
from gpu_plans import plan_path
from gpu_timing import Stopwatch
from kernel_trace import kernel_times
from roofline import PEAKS, layer_times

from mlirt.runtime.cuda_driver import open_driver

Row = dict[str, Any]
_REPEATS = 10


class Bench:
    """The GPU of this machine with one stream for everybody."""

    def __init__(self, folder: Path, rounds: int, profile: bool) -> None:
        self._folder, self._rounds, self._profile = folder, rounds, profile
        self.has_torch = find_spec("torch") is not None
        if self.has_torch:
            import torch

            self.device: str = torch.cuda.get_device_name()
            self._torch_stream: Any = torch.cuda.Stream()
            self._stream: int = self._torch_stream.cuda_stream
        else:
            self.device = "a GPU"
            self._stream = open_driver().new_stream()
        self._watch = Stopwatch(self._stream)
        self._cases: dict[str, Case] = {}

    def failed(self, case: Case, why: str) -> Row:
        """The row of a case that was not built."""
        return self._empty(case) | {"why": why}

    def _empty(self, case: Case) -> Row:
        self._cases[case.name] = case
        row: Row = {"name": case.name, "network": case.network, "batch": case.batch, "precision": case.precision}
        return row | {"times": {}, "errors": {}, "why": ""}

    def measure(self, case: Case) -> Row:
        """Errors and times of our plan and of the peers that need no compiler."""
        row = self._empty(case)
        feeds, want = data_of(case, self._folder)
        try:
            ours = self._ours(case, feeds, want, row)
        except Exception as error:
            row["why"] = _short(error)
            ours = None
        peers = list(self._made(self._makers(case, feeds), want, row))
        self._race(ours, peers, row)
        if ours is not None and self._profile:
            try:
                self._add_layers(ours, row)
            except Exception as error:
                row["profile"] = _short(error)
        del ours, peers
        self._clean()
        return row

    def measure_compiled(self, row: Row, mode: str) -> None:
        """Add PyTorch's compiler to a row; our plan runs again in turns with it."""
        case = self._cases[row["name"]]
        feeds, want = data_of(case, self._folder)
        if not self.has_torch:
            return
        peers = TorchPeers(case, feeds, self._torch_stream)
        found = list(self._made([_maker(peers, one) for one in peers.compiled_recipes(mode)], want, row))
        if found and not row["why"]:
            first = row["times"].get("ours")
            self._race(ResidentPlan(plan_path(case, self._folder), feeds, self._stream), found, row)
            row["ours again"], row["times"]["ours"] = row["times"]["ours"], first
        del peers, found
        self._clean()

    def _ours(self, case: Case, feeds: Arrays, want: Arrays, row: Row) -> ResidentPlan:
        start = time.perf_counter()
        plan = ResidentPlan(plan_path(case, self._folder), feeds, self._stream)
        row["load s"] = round(time.perf_counter() - start, 2)
        plan()
        outputs = plan.outputs()
        plan()
        again = plan.outputs()
        row["errors"]["ours"] = worst_error(outputs, want)
        row["same bits"] = all(array.tobytes() == again[name].tobytes() for name, array in outputs.items())
        row["launches"] = len(plan.manifest.launches)
        return plan

    def _makers(self, case: Case, feeds: Arrays) -> Iterable[tuple[str, Callable[[], Peer | None]]]:
        if self.has_torch:
            peers = TorchPeers(case, feeds, self._torch_stream)
            for recipe in peers.recipes():
                yield _maker(peers, recipe)
        yield "onnxruntime", lambda: onnxruntime_peer(case, feeds, self._stream)

    @staticmethod
    def _made(makers: Iterable[tuple[str, Callable[[], Peer | None]]], want: Arrays, row: Row) -> Iterable[Peer]:
        """The peers that work; the others say why not."""
        for name, make in makers:
            try:
                peer = make()
                if peer is not None:
                    row["errors"][name] = worst_error(peer.outputs(), want)
                    yield peer
            except Exception as error:
                row.setdefault("peers that failed", {})[name] = _short(error)

    def _race(self, ours: ResidentPlan | None, peers: list[Peer], row: Row) -> None:
        contestants: dict[str, Callable[[], object]] = {} if ours is None else {"ours": ours}
        contestants |= {peer.name: peer.call for peer in peers}
        times = self._watch.in_turns(contestants, self._rounds)
        row["times"] |= {name: round(ms, 5) for name, ms in times.items()}

    def _add_layers(self, ours: ResidentPlan, row: Row) -> None:
        """Time each launch, inside replays where PyTorch's profiler can see them, else each alone."""
        peaks = PEAKS.get(self.device)
        if peaks is None:
            row["layers"] = f"no peaks are known for {self.device}"
            return
        count = len(ours.manifest.launches)
        times = kernel_times(ours, self._watch.wait, count, _REPEATS) if self.has_torch else None
        row["profile"] = "alone" if times is None else "in replays"
        if times is None:
            runs = [ours.launch_times() for _ in range(_REPEATS)]
            times = [statistics.median(column) for column in zip(*runs, strict=True)]
        row["layers"] = [one.record() for one in layer_times(ours.manifest.layers, times, peaks)]

    def _clean(self) -> None:
        """Give memory back before the next network."""
        gc.collect()
        if self.has_torch:
            import torch

            torch.cuda.empty_cache()


def _maker(peers: TorchPeers, recipe: Recipe) -> tuple[str, Callable[[], Peer]]:
    return recipe.name, lambda: peers.make(recipe)


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
