"""Callers take turns: in the order of arrival, with a limit in time, and whatever fails nobody waits for ever."""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from mlirt.runtime import fair_queue
from mlirt.runtime.fair_queue import FairQueue, QueueUse


def wait_until(condition: object, seconds: float = 30.0) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(1e-3)


def test_things_are_made_when_they_are_needed() -> None:
    made: list[int] = []
    queue = FairQueue(3, lambda number: made.append(number) or number)
    first = queue.take()
    assert first == 0
    queue.give_back(first)
    assert queue.take() == 0
    assert queue.take() == 1
    assert made == [0, 1]
    assert queue.use == QueueUse(2, 2, 0)


def test_who_waits_longest_is_next() -> None:
    queue = FairQueue(1, lambda number: number)
    thing = queue.take()
    assert thing is not None
    order: list[int] = []

    def work(number: int) -> None:
        got = queue.take()
        assert got is not None
        order.append(number)
        queue.give_back(got)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for number, thread in enumerate(threads):
        thread.start()
        wait_until(lambda number=number: queue.use.waited == number + 1)
    queue.give_back(thing)
    for thread in threads:
        thread.join()
    assert order == list(range(8))
    assert queue.use == QueueUse(0, 1, 8)


def test_who_cannot_wait_longer_leaves_the_queue() -> None:
    queue = FairQueue(1, lambda number: number)
    thing = queue.take()
    assert thing is not None
    assert queue.take(time.monotonic() - 1) is None
    assert queue.take(time.monotonic() + 0.01) is None
    queue.give_back(thing)
    assert queue.take(time.monotonic()) == 0


def test_what_cannot_be_made_is_tried_again_by_who_waits() -> None:
    entered, go_on = threading.Event(), threading.Event()
    tries: list[int] = []

    def make(number: int) -> int:
        tries.append(number)
        if len(tries) == 1:
            entered.set()
            go_on.wait()
            raise MemoryError
        return number

    queue = FairQueue(1, make)
    faults: list[BaseException] = []
    got: list[int | None] = []

    def fail() -> None:
        try:
            queue.take()
        except MemoryError as error:
            faults.append(error)

    first, second = threading.Thread(target=fail), threading.Thread(target=lambda: got.append(queue.take()))
    first.start()
    entered.wait()
    second.start()
    wait_until(lambda: queue.use.waited == 1)
    go_on.set()
    first.join()
    second.join()
    assert (len(faults), got, tries) == (1, [0], [0, 0])
    assert queue.use.running == 1


@pytest.mark.parametrize("count", [1, 2, 5])
def test_nobody_shares_a_thing(count: int) -> None:
    queue = FairQueue(count, lambda number: [number])
    used = [0] * count

    def work() -> None:
        for _ in range(200):
            thing = queue.take()
            assert thing is not None
            used[thing[0]] += 1
            assert used[thing[0]] == 1
            used[thing[0]] -= 1
            queue.give_back(thing)

    faults: list[object] = []
    threads = [threading.Thread(target=work) for _ in range(8)]
    before = threading.excepthook
    threading.excepthook = faults.append
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        threading.excepthook = before
    assert faults == []
    assert queue.use.running == 0
    assert queue.use.most_running <= count


def test_things_that_come_back_beside_takers_are_never_lost() -> None:
    """A caller who finds none may be about to wait when one comes back."""
    queue = FairQueue(2, lambda number: number)
    held: set[int] = set()

    def work() -> None:
        for _ in range(3000):
            thing = queue.take(time.monotonic() + 30)
            assert thing is not None
            assert thing not in held
            held.add(thing)
            held.discard(thing)
            queue.give_back(thing)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            for future in [pool.submit(work) for _ in range(8)]:
                future.result()
    finally:
        sys.setswitchinterval(interval)
    assert queue.use.running == 0
    assert queue.use.most_running in (1, 2)  # one core may never have two at once


def test_who_has_waited_long_enough_is_not_overtaken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_queue, "PATIENCE", 0.0)
    queue = FairQueue(1, lambda number: number)
    assert queue.take() == 0
    go_on = threading.Event()

    def work() -> None:
        got = queue.take()
        go_on.wait()
        assert got is not None
        queue.give_back(got)

    thread = threading.Thread(target=work)
    thread.start()
    wait_until(lambda: queue.use.waited == 1)
    queue.give_back(0)
    assert queue.take(time.monotonic()) is None
    go_on.set()
    thread.join()
    assert queue.take() == 0


def test_who_comes_back_at_once_may_overtake_but_not_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller that waits is woken once, and finds nothing; then it is handed what comes back."""
    monkeypatch.setattr(fair_queue, "PATIENCE", 0.2)
    queue = FairQueue(1, lambda number: number)
    assert queue.take() == 0
    waited: list[float] = []

    def work() -> None:
        start = time.monotonic()
        got = queue.take()
        waited.append(time.monotonic() - start)
        assert got is not None
        queue.give_back(got)

    thread = threading.Thread(target=work)
    thread.start()
    wait_until(lambda: queue.use.waited == 1)
    queue.give_back(0)
    if queue.take(time.monotonic()) == 0:  # but where the other thread was quicker
        time.sleep(0.25)
        queue.give_back(0)
        assert queue.take(time.monotonic() + 30) == 0  # behind the other one
        assert waited[0] > 0.2
        queue.give_back(0)
    thread.join(30)
    assert len(waited) == 1


def test_what_is_free_is_found_where_a_call_came_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody comes back to hand it on."""
    monkeypatch.setattr(fair_queue, "PATIENCE", 0.1)
    queue = FairQueue(1, lambda number: number)
    assert queue.take() == 0
    got: list[int | None] = []
    thread = threading.Thread(target=lambda: got.append(queue.take()))
    thread.start()
    wait_until(lambda: queue.use.waited == 1)
    for _ in range(3):
        queue.give_back(0)
        if queue.take(time.monotonic()) is None:
            break
    else:
        queue.give_back(0)
    thread.join(30)
    assert got == [0]
