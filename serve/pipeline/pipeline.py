"""Runs of a network whose stages lie on several devices."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self, TypeAlias

import numpy as np

from mlirt.errors import InvalidInputError, UnavailableError
from mlirt.runtime.engine import load
from mlirt.runtime.manifest import Manifest, Tensor
from mlirt.runtime.plan_file import read_plan
from mlirt.serve.pipeline.cuda_stage import CudaStage
from mlirt.serve.pipeline.nccl import Communicator, communicators
from mlirt.serve.pipeline.stage import History, HostStage, Job, Results, Stage, Wiring

Plan: TypeAlias = "str | os.PathLike[str] | bytes"


@dataclass(frozen=True)
class _Forget:
    sequence: Hashable


class Pipeline:
    """The stages of a network, each in a thread and, for plans of GPUs, on a GPU of its own.

        engines = mlirt.compile_stages("decoder.onnx", 2, "cuda", state={"past": "present"})
        for number, engine in enumerate(engines):
            engine.save(f"decoder.{number}.plan")
        with Pipeline(["decoder.0.plan", "decoder.1.plan"], state={"past": "present"}) as pipeline:
            logits = pipeline.run({"ids": ids, "past": nothing})["logits"]

    plans: of the stages, in the order in which they run; what one reads of another has the same name in both.
    devices: CUDA's numbers of the GPUs, one for each stage; else 0, 1, and so on. state: inputs with the outputs that
    they are in the next run; they stay on their devices, the caller gives them in the first run of a sequence.
    outputs: what runs return; else what no later stage reads and is no state.

    Raises `InvalidInputError` for stages that do not fit each other, `PlanError` and `NoDeviceError` as `mlirt.load`.
    """

    def __init__(
        self,
        plans: Sequence[Plan],
        *,
        devices: Sequence[int] | None = None,
        state: Mapping[str, str] | None = None,
        outputs: Sequence[str] | None = None,
    ) -> None:
        sources = [one if isinstance(one, bytes) else str(Path(one)) for one in plans]
        manifests = [read_plan(one, check_weights=False).manifest for one in sources]
        wirings = _wirings(manifests, dict(state or {}), outputs)
        self.inputs: tuple[Tensor, ...] = _caller_inputs(manifests, wirings)
        self.outputs: tuple[str, ...] = tuple(name for wiring in wirings for name in wiring.results)
        self._queues: list[queue.Queue[Job | _Forget | None]] = [queue.Queue() for _ in sources]
        self._lock, self._closed = threading.Lock(), False
        self._state = frozenset(state or {})
        self._histories: dict[Hashable, History] = {}
        makers = _makers(sources, manifests, wirings, devices)
        ready = [Future[None]() for _ in makers]
        self._threads = [
            threading.Thread(target=self._serve, args=(number, make, ready[number]), daemon=True)
            for number, make in enumerate(makers)
        ]
        for thread in self._threads:
            thread.start()
        try:
            for one in ready:
                one.result()
        except BaseException:
            self.close()
            raise

    def run(self, feeds: Mapping[str, np.ndarray], *, sequence: Hashable = None) -> Results:
        """The outputs by name. feeds: arrays on the host. sequence: whose state is read and kept."""
        return self.submit(feeds, sequence=sequence).result()

    def submit(self, feeds: Mapping[str, np.ndarray], *, sequence: Hashable = None) -> Future[Results]:
        """Queue a run; those of several callers are in different stages at the same time, in order in each.

        Runs of one sequence with state follow each other; one that is given all of the state is a first run. Where a
        run fails behind a stage that has gone on, the future of each later one has an `UnavailableError` until there is
        a first run again. `InvalidInputError` for a name that is no input.
        """
        known = {one.name for one in self.inputs}
        for name in feeds:
            if name not in known:
                raise InvalidInputError(f"the pipeline has no input {name!r}; it has {sorted(known)}")
        with self._lock:
            if self._state <= feeds.keys():
                self._histories.pop(sequence, None)
            history = self._histories.setdefault(sequence, History()) if self._state else History()
            job = Job(dict(feeds), sequence, history, stages=len(self._threads))
            self._put(job)
        return job.future

    def forget(self, sequence: Hashable = None) -> None:
        """Drop the state of a sequence: its next run is a first one."""
        with self._lock:
            self._histories.pop(sequence, None)
            self._put(_Forget(sequence))

    def close(self) -> None:
        """End the stages when what was queued is done."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queues[0].put(None)
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _put(self, job: Job | _Forget) -> None:
        if self._closed:
            raise UnavailableError("the pipeline is closed")
        self._queues[0].put(job)

    def _serve(self, number: int, make: Callable[[], Stage], ready: Future[None]) -> None:
        """A stage's thread."""
        behind = self._queues[number + 1].put if number + 1 < len(self._queues) else None
        try:
            stage = make()
        except BaseException as error:  # told to who makes the pipeline
            ready.set_exception(error)
            self._refuse(number, behind)
            return
        ready.set_result(None)
        while (job := self._queues[number].get()) is not None:
            if isinstance(job, _Forget):
                stage.forget(job.sequence)
                if behind is not None:
                    behind(job)
            else:
                _run(stage, job, behind)
        if behind is not None:
            behind(None)
        stage.close()

    def _refuse(self, number: int, behind: Callable[[None], None] | None) -> None:
        """In place of a stage that did not start: nothing runs, and the next one ends."""
        while self._queues[number].get() is not None:
            pass
        if behind is not None:
            behind(None)


def _run(stage: Stage, job: Job, behind: Callable[[Job], None] | None) -> None:
    """One job in one stage; the next one gets it in any case."""
    handed_on = False

    def hand_on() -> None:
        nonlocal handed_on
        handed_on = True
        if behind is not None:
            behind(job)

    try:
        if job.history.is_broken and not job.has_failed:
            job.fail(
                UnavailableError(
                    f"an earlier run of the sequence {job.sequence!r} failed, and only some stages have gone on: give "
                    "its state again, or forget it"
                )
            )
        if job.has_failed:
            stage.drain(job)
        else:
            stage.run(job, hand_on)
            job.end_stage()
    except Exception as error:
        job.fail(error)
    if not handed_on:
        hand_on()


def _makers(
    sources: Sequence[str | bytes],
    manifests: Sequence[Manifest],
    wirings: Sequence[Wiring],
    devices: Sequence[int] | None,
) -> list[Callable[[], Stage]]:
    kinds = {manifest.target.kind for manifest in manifests}
    if len(kinds) > 1:
        raise InvalidInputError(f"the stages are for {sorted(kinds)}: expected plans for one kind of device")
    if kinds == {"cpu"}:
        return [partial(_host_stage, source, wiring) for source, wiring in zip(sources, wirings, strict=True)]
    numbers = list(range(len(sources))) if devices is None else list(devices)
    if len(numbers) != len(sources):
        raise InvalidInputError(f"devices: expected one for each of {len(sources)} stages, got {numbers}")
    ends: Sequence[Communicator | None] = communicators(numbers) if len(numbers) > 1 else [None]
    return [partial(CudaStage, *one) for one in zip(sources, numbers, wirings, ends, strict=True)]


def _host_stage(source: str | bytes, wiring: Wiring) -> Stage:
    return HostStage(load(source), wiring)


def _wirings(manifests: Sequence[Manifest], state: dict[str, str], outputs: Sequence[str] | None) -> list[Wiring]:
    """Where each tensor goes; checks that every name has its place."""
    made: dict[str, int] = {}
    received: list[dict[str, int]] = []
    for number, manifest in enumerate(manifests):
        received.append({one.name: made[one.name] for one in manifest.given_inputs if one.name in made})
        made |= {one.name: number for one in manifest.outputs}
    sent: list[dict[str, list[int]]] = [{} for _ in manifests]
    for number, names in enumerate(received):
        for name, source in names.items():
            sent[source].setdefault(name, []).append(number)
    inner = {name for names in sent for name in names} | set(state.values())
    results = [name for name in made if name not in inner] if outputs is None else list(outputs)
    for name in results:
        if name not in made:
            raise InvalidInputError(f"the stages have no output {name!r}; they have {sorted(made)}")
    own = _states(manifests, made, state)
    return [
        Wiring(received[number], sent[number], own[number], [name for name in results if made[name] == number])
        for number in range(len(manifests))
    ]


def _states(manifests: Sequence[Manifest], made: Mapping[str, int], state: Mapping[str, str]) -> list[dict[str, str]]:
    found: list[dict[str, str]] = [{} for _ in manifests]
    for name, output in state.items():
        readers = [k for k, manifest in enumerate(manifests) if any(one.name == name for one in manifest.given_inputs)]
        if not readers or output not in made:
            raise InvalidInputError(f"state {name!r}: {output!r}: no stage has this input, or none this output")
        if readers != [made[output]]:
            raise InvalidInputError(
                f"state {name!r}: {output!r}: stages {readers} read it and stage {made[output]} makes it, expected one "
                "stage; give compile_stages the same state"
            )
        found[made[output]][name] = output
    return found


def _caller_inputs(manifests: Sequence[Manifest], wirings: Sequence[Wiring]) -> tuple[Tensor, ...]:
    found: dict[str, Tensor] = {}
    for manifest, wiring in zip(manifests, wirings, strict=True):
        found |= {one.name: one for one in manifest.given_inputs if one.name not in wiring.received}
    return tuple(found.values())
