/* What differs between operating systems: memory, threads, a clock, and how functions are exported. */
#ifndef NET_SYSTEM_H
#define NET_SYSTEM_H

#include <stddef.h>
#include <stdint.h>

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

/* Memory whose address is a multiple of 4096, zeros, of which there is always at least one byte; NULL where there is no
 * memory. Both are given back by `net_free`. */
void *net_aligned(size_t bytes);
void *net_zeros(size_t count, size_t bytes);
void net_free(void *memory);

/* A thread that calls a function once; whoever starts it keeps this until it has ended. */
typedef struct {
  void (*work)(void *given);
  void *given;
  uintptr_t handle;
} net_thread;

/* 0 where there is no memory for it. */
int net_start_thread(net_thread *thread);
void net_join_thread(net_thread *thread);

/* Gives back what `mlirt_prepare` has made for a worker in the four words of its semaphore. */
void net_free_semaphore(int64_t *words);

/* The processors that this process may use, or has time for. */
int32_t net_processor_count(void);

double net_seconds(void);

#endif
