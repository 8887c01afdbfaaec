"""Several systems on the same network, in turns: how much faster than the fastest peer ours is.

Each system has a process of its own, which stays open and idle while the others are measured. A ratio is that of the
latencies (SingleStream: p90, MultiStream: p99) or of the samples a second (Offline) in one round; the table has the
median of the rounds. Before that an accuracy test compares our answers with the right ones (answers.py); `error` is how
far the worst is off, `faults` how many are lost or wrong.
"""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

from mlperf.load import load_generator
from mlperf.session import Session, Setup, expected_of

_REST_SECONDS = 0.3


def table(setups: Sequence[Setup], peers: Sequence[str], logs: Path, seconds: float, rounds: int) -> None:
    """Measure and print, a row for each setup; what a system refuses is said in its row."""
    first = setups[0]
    print(f"{first.threads} threads, {rounds} rounds of at least {seconds:g} s, {first.samples} samples", flush=True)
    heads = "".join(f" {side:>12s}" for side in ("mlirt", *peers))
    print(
        f"{'network':14s} {'':5s} {'scenario':13s}{heads} {'ratio':>6s} {'range':>11s} {'error':>8s} faults", flush=True
    )
    for setup in setups:
        label = f"{setup.workload.name:14s} {setup.precision:5s} {setup.scenario:13s}"
        print(label + _row(setup, peers, logs, seconds, rounds), flush=True)


def _row(setup: Setup, peers: Sequence[str], logs: Path, seconds: float, rounds: int) -> str:
    sides = {side: Side(replace(setup, system=side), logs) for side in ("mlirt", *peers)}
    try:
        refused = {side: one.opened() for side, one in sides.items()}
        why = {side: text for side, text in refused.items() if text}
        running = [side for side in sides if side not in why]
        if "mlirt" in why or len(running) < 2:
            return " " + "; ".join(f"{side}: {text}" for side, text in why.items())[:200]
        error, faults = sides["mlirt"].checked()
        scores = {side: list[float]() for side in running}
        for _ in range(rounds):
            for side in running:
                scores[side].append(sides[side].measured(seconds))
    finally:
        for one in sides.values():
            one.close()
    is_time = setup.scenario != "Offline"
    found = sorted(ratios(scores, is_time=is_time))
    medians = {side: statistics.median(values) for side, values in scores.items()}
    cells = "".join(f" {_cell(medians.get(side), is_time=is_time):>12s}" for side in sides)
    spread = f"{found[0]:.2f}-{found[-1]:.2f}"
    return f"{cells} {statistics.median(found):6.2f} {spread:>11s} {error:8.1e} {faults:d}"


def ratios(scores: dict[str, list[float]], *, is_time: bool) -> list[float]:
    """Of each round: the best peer's score to ours, so that more is faster, whether scores are seconds or rates."""
    ours = scores["mlirt"]
    peers = [values for side, values in scores.items() if side != "mlirt"]
    best = [min(round_) if is_time else max(round_) for round_ in zip(*peers, strict=True)]
    return [other / own if is_time else own / other for own, other in zip(ours, best, strict=True)]


def _cell(score: float | None, *, is_time: bool) -> str:
    if score is None:
        return "refused"
    return f"{1e3 * score:.2f} ms" if is_time else f"{score:.2f}/s"


class Side:
    """A system in a process of its own."""

    def __init__(self, setup: Setup, logs: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(setup, logs, there), daemon=True)
        self._process.start()

    def opened(self) -> str:
        """Wait until it is; why it is not, else nothing."""
        try:
            return str(self._pipe.recv())
        except EOFError:
            return "its process has ended"

    def checked(self) -> tuple[float, int]:
        """The largest error of its answers, and how many are lost or wrong."""
        self._pipe.send(None)
        return self._pipe.recv()

    def measured(self, seconds: float) -> float:
        """The score of one test: seconds, or samples a second."""
        time.sleep(_REST_SECONDS)
        self._pipe.send(seconds)
        return self._pipe.recv()

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join(10)
        if self._process.is_alive():
            self._process.terminate()


def _serve(setup: Setup, logs: Path, pipe: Connection) -> None:
    try:
        load_generator()  # that it is missing is said now, not by a process that ends
        session = Session(setup)
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}"[:160])
        return
    pipe.send("")
    while True:
        try:
            seconds = pipe.recv()
        except EOFError:
            session.close()
            return
        if seconds is None:
            check = session.check(setup.logs(logs, "accuracy"), expected_of(setup))
            pipe.send((max(check.errors)[0], check.lost + check.wrong))
            continue
        summary = session.measure(setup.logs(logs, "performance"), seconds)
        if setup.scenario == "Offline":
            pipe.send(summary.samples_per_second)
        else:
            pipe.send(summary.percentile(90 if setup.scenario == "SingleStream" else 99))
