/* The functions of system.h for Linux and macOS. */
#define _GNU_SOURCE
#include "system.h"

#ifndef _WIN32

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef __APPLE__
#include <dispatch/dispatch.h>
#else
#include <sched.h>
#endif

/* Threads besides the first have half a MiB on macOS, unless they are given more. */
#define STACK_BYTES ((size_t)8 << 20)

void *net_aligned(size_t bytes) {
  void *memory = NULL;
  return posix_memalign(&memory, 4096, bytes ? bytes : 1) == 0 ? memory : NULL;
}

void *net_zeros(size_t count, size_t bytes) { return calloc(count + 1, bytes); }

void net_free(void *memory) { free(memory); }

static void *begin(void *given) {
  net_thread *t = given;
  t->work(t->given);
  return NULL;
}

int net_start_thread(net_thread *thread) {
  pthread_attr_t attributes;
  pthread_t started;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  int is_started = pthread_create(&started, &attributes, begin, thread) == 0;
  pthread_attr_destroy(&attributes);
  thread->handle = is_started ? (uintptr_t)started : 0;
  return is_started;
}

void net_join_thread(net_thread *thread) { pthread_join((pthread_t)thread->handle, NULL); }

double net_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#ifdef __APPLE__

void net_free_semaphore(int64_t *words) { dispatch_release((dispatch_semaphore_t)(uintptr_t)words[0]); }

int32_t net_processor_count(void) {
  long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count < 1 ? 1 : (int32_t)count;
}

#else

void net_free_semaphore(int64_t *words) { (void)words; }

/* The processors' time that the control group of this process has, or a large number. */
static long quota(void) {
  long limit = 0, period = 0;
  FILE *file = fopen("/sys/fs/cgroup/cpu.max", "r");
  int found = file ? fscanf(file, "%ld %ld", &limit, &period) : 0;
  if (file)
    fclose(file);
  return found == 2 && limit > 0 && period > 0 ? (limit + period - 1) / period : INT32_MAX;
}

int32_t net_processor_count(void) {
  cpu_set_t allowed;
  long limit = quota(), count = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
  return (int32_t)(count < limit ? count : limit);
}

#endif
#endif
