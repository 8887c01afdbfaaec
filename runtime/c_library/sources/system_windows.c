/* The functions of system.h for Windows. */
#include "system.h"

#ifdef _WIN32

#include <malloc.h>
#include <process.h>
#include <string.h>
#include <windows.h>

/* Reserved, not taken at once. */
#define STACK_BYTES ((unsigned)8 << 20)

void *net_aligned(size_t bytes) { return _aligned_malloc(bytes ? bytes : 1, 4096); }

void *net_zeros(size_t count, size_t bytes) {
  void *memory = bytes && count < SIZE_MAX / bytes - 1 ? _aligned_malloc((count + 1) * bytes, 64) : NULL;
  return memory ? memset(memory, 0, (count + 1) * bytes) : NULL;
}

void net_free(void *memory) { _aligned_free(memory); }

static unsigned __stdcall begin(void *given) {
  net_thread *t = given;
  t->work(t->given);
  return 0;
}

int net_start_thread(net_thread *thread) {
  thread->handle = _beginthreadex(NULL, STACK_BYTES, begin, thread, STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
  return thread->handle != 0;
}

void net_join_thread(net_thread *thread) {
  WaitForSingleObject((HANDLE)thread->handle, INFINITE);
  CloseHandle((HANDLE)thread->handle);
}

void net_free_semaphore(int64_t *words) { CloseHandle((HANDLE)(uintptr_t)words[0]); }

int32_t net_processor_count(void) {
  DWORD_PTR allowed = 0, all = 0;
  if (!GetProcessAffinityMask(GetCurrentProcess(), &allowed, &all))
    return 1;
  int count = __builtin_popcountll(allowed);
  return count < 1 ? 1 : count;
}

double net_seconds(void) {
  LARGE_INTEGER ticks, rate;
  QueryPerformanceCounter(&ticks);
  QueryPerformanceFrequency(&rate);
  return (double)ticks.QuadPart / (double)rate.QuadPart;
}

#endif
