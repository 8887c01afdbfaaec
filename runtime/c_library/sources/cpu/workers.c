/* Threads that take part in runs: they live in the plan's main object, spin for a moment after a run, then sleep. */
#include "handle.h"

#include <stdlib.h>
#include <string.h>

/* Words of a control block and of what the threads of a run share; see builder/spmd_main.py of mlirt. */
enum { MAIN_WORD = 16, SYNC_WORD = 19, THREADS_WORD = 20, PAUSES_WORD = 21, STOP_WORD = 32, WORKERS_WORD = 48 };
enum { WORDS_OF_A_WORKER = 16, SEMAPHORE_WORD = 4, MAX_THREADS = 256, SYNC_WORDS = 64 + 16 * (MAX_THREADS / 32) + 16 };
enum { JOB_WORDS = 16, ROWS_WORD = 4, TABLE_WORD = 8 };

#define SPIN_SECONDS 1e-3
#define TRIAL 2000

typedef struct {
  pool *p;
  int64_t tid;
  net_thread thread;
} worker;

struct pool {
  int32_t started, prepared; /* threads, and those that have a semaphore */
  int64_t *control;
  worker *workers;
};

/* The pauses that threads spin for, by the shortest of a few trials. */
static int64_t pauses(void) {
  double shortest = 1;
  for (int i = 0; i < 3; i++) {
    double start = net_seconds();
    mlirt_spin(TRIAL);
    double taken = net_seconds() - start;
    shortest = taken < shortest ? taken : shortest;
  }
  return (int64_t)(SPIN_SECONDS * TRIAL / (shortest > 1e-9 ? shortest : 1e-9));
}

static void serve(void *given) {
  worker *w = given;
  mlirt_worker(w->p->control, w->tid);
}

int32_t net_thread_count(int wanted) {
  if (wanted > 0)
    return wanted < MAX_THREADS ? wanted : MAX_THREADS;
  const char *text = getenv("MLIRT_NUM_THREADS");
  long most = text ? strtol(text, NULL, 10) : 0, count = net_processor_count();
  if (most > 0 && most < count)
    count = most;
  return (int32_t)(count < 1 ? 1 : count > MAX_THREADS ? MAX_THREADS : count);
}

/* NULL where there is no memory. `threads` becomes the number of those that could be started, and the caller. */
pool *net_start_pool(int32_t *threads) {
  size_t head = (size_t)(WORKERS_WORD + WORDS_OF_A_WORKER * (*threads + 1) + 15) / 16 * 16;
  pool *p = net_zeros(1, sizeof *p);
  worker *workers = net_zeros((size_t)*threads, sizeof *workers);
  int64_t *control = net_aligned((head + SYNC_WORDS) * sizeof *control);
  if (!p || !workers || !control) {
    net_free(p);
    net_free(workers);
    net_free(control);
    return NULL;
  }
  memset(control, 0, (head + SYNC_WORDS) * sizeof *control);
  p->control = control;
  p->workers = workers;
  mlirt_prepare(control, *threads);
  p->prepared = *threads - 1;
  void (*run)(void) = mlirt_main;
  control[MAIN_WORD] = (int64_t)(uintptr_t)run;
  control[SYNC_WORD] = (int64_t)(uintptr_t)(control + head);
  control[PAUSES_WORD] = pauses();
  while (p->started < *threads - 1) {
    worker *w = &workers[p->started];
    *w = (worker){p, p->started + 1, {serve, w, 0}};
    if (!net_start_thread(&w->thread))
      break;
    p->started++;
  }
  *threads = 1 + p->started;
  control[THREADS_WORD] = *threads;
  return p;
}

void net_stop_pool(pool *p) {
  if (!p)
    return;
  __atomic_store_n(&p->control[STOP_WORD], 1, __ATOMIC_SEQ_CST);
  mlirt_run(p->control, NULL, 0, NULL);
  for (int32_t i = 0; i < p->started; i++)
    net_join_thread(&p->workers[i].thread);
  for (int32_t tid = 1; tid <= p->prepared; tid++)
    net_free_semaphore(p->control + WORKERS_WORD + WORDS_OF_A_WORKER * tid + SEMAPHORE_WORD);
  net_free(p->control);
  net_free(p->workers);
  net_free(p);
}

/* The number, from 1 on, of the row that stopped the run, or 0. */
static int64_t run_rows(net_handle *h) {
  if (h->target.row_count == 0)
    return 0;
  if (h->target.pool && !h->target.needs_one)
    return mlirt_run(h->target.pool->control, h->target.table, h->target.row_count, NULL);
  int64_t job[JOB_WORDS] = {0};
  job[ROWS_WORD] = h->target.row_count;
  job[TABLE_WORD] = (int64_t)(uintptr_t)h->target.table;
  return mlirt_alone(job);
}

net_status net_run_steps(net_handle *h, const step **stopped, int64_t *word) {
  int64_t row = run_rows(h) - 1;
  if (row < 0)
    return NET_OK;
  *stopped = h->target.rows[row].step;
  if ((*stopped)->kind == SIZE_CHECK && (*stopped)->b >= 0)
    memcpy(word, (const void *)(uintptr_t)((int64_t *)(uintptr_t)h->target.table[3 * row + 1])[0], sizeof *word);
  return NET_OK;
}
