"""What the code calls of the operating system: a semaphore for each worker, another thread's turn, and a clock."""

from dataclasses import dataclass

from mlirt.systems import DARWIN, LINUX, WINDOWS, system_of


@dataclass(frozen=True)
class SystemCode:
    """Declarations, and instructions in place of which the code has the names of these fields.

    A semaphore has four words at `%semaphore`; `sleep` gives `%failed`, which is not 0 where it has to be called again.
    `now` gives the nanoseconds of a clock that never goes back as `%now`, and has the 16 bytes at `%time`.
    """

    declarations: str
    make_semaphore: str
    wake: str
    sleep: str
    give_way: str
    now: str


_SYSTEMS = {
    LINUX: SystemCode(
        declarations="""
declare i32 @sched_yield()
declare i32 @sem_init(ptr, i32, i32)
declare i32 @sem_wait(ptr)
declare i32 @sem_post(ptr)
declare i32 @clock_gettime(i32, ptr)
""",
        make_semaphore="call i32 @sem_init(ptr %semaphore, i32 0, i32 0)",
        wake="call i32 @sem_post(ptr %semaphore)",
        sleep="%failed = call i32 @sem_wait(ptr %semaphore)",
        give_way="call i32 @sched_yield()",
        now="""call i32 @clock_gettime(i32 1, ptr %time)
  %nanos_at = getelementptr i64, ptr %time, i64 1
  %seconds = load i64, ptr %time, align 8
  %nanos = load i64, ptr %nanos_at, align 8
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %nanos""",
    ),
    # Clock 8 is CLOCK_UPTIME_RAW, which Python's `time.monotonic` is.
    DARWIN: SystemCode(
        declarations="""
declare i32 @sched_yield()
declare ptr @dispatch_semaphore_create(i64)
declare i64 @dispatch_semaphore_wait(ptr, i64)
declare i64 @dispatch_semaphore_signal(ptr)
declare i64 @clock_gettime_nsec_np(i32)
""",
        make_semaphore="""%made = call ptr @dispatch_semaphore_create(i64 0)
  store ptr %made, ptr %semaphore, align 8""",
        wake="""%theirs = load ptr, ptr %semaphore, align 8
  call i64 @dispatch_semaphore_signal(ptr %theirs)""",
        sleep="""%own = load ptr, ptr %semaphore, align 8
  %late_by = call i64 @dispatch_semaphore_wait(ptr %own, i64 -1)
  %failed = trunc i64 %late_by to i32""",
        give_way="call i32 @sched_yield()",
        now="%now = call i64 @clock_gettime_nsec_np(i32 8)",
    ),
    # Ticks of the performance counter, which Python's `time.perf_counter` is.
    WINDOWS: SystemCode(
        declarations="""
declare i32 @SwitchToThread()
declare ptr @CreateSemaphoreA(ptr, i32, i32, ptr)
declare i32 @WaitForSingleObject(ptr, i32)
declare i32 @ReleaseSemaphore(ptr, i32, ptr)
declare i32 @QueryPerformanceCounter(ptr)
declare i32 @QueryPerformanceFrequency(ptr)
""",
        make_semaphore="""%made = call ptr @CreateSemaphoreA(ptr null, i32 0, i32 2147483647, ptr null)
  store ptr %made, ptr %semaphore, align 8""",
        wake="""%theirs = load ptr, ptr %semaphore, align 8
  call i32 @ReleaseSemaphore(ptr %theirs, i32 1, ptr null)""",
        sleep="""%own = load ptr, ptr %semaphore, align 8
  %failed = call i32 @WaitForSingleObject(ptr %own, i32 -1)""",
        give_way="call i32 @SwitchToThread()",
        now="""%rate_at = getelementptr i64, ptr %time, i64 1
  call i32 @QueryPerformanceCounter(ptr %time)
  call i32 @QueryPerformanceFrequency(ptr %rate_at)
  %ticks = load i64, ptr %time, align 8
  %rate = load i64, ptr %rate_at, align 8
  %seconds = sdiv i64 %ticks, %rate
  %rest = srem i64 %ticks, %rate
  %scaled = mul i64 %rest, 1000000000
  %nanos = sdiv i64 %scaled, %rate
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %nanos""",
    ),
}


def system_code(triple: str) -> SystemCode:
    """That of the operating system of a triple; Linux's for one that is not known, as many have its functions."""
    return _SYSTEMS.get(system_of(triple), _SYSTEMS[LINUX])
