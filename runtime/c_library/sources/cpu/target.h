/* What a handle has where processors run the network: threads, memory for arrays, and the table of rows. */
#ifndef NET_TARGET_H
#define NET_TARGET_H

#include "plan.h"

/* Threads that take part in a run besides the caller. */
typedef struct pool pool;

typedef struct {
  const step *step; /* NULL of a jump that is taken always */
  int32_t launch;   /* or -1 */
} row_origin;

typedef struct {
  int32_t threads;
  pool *pool;
  int64_t *parameters;
  int64_t *table;
  row_origin *rows;
  int64_t row_count;
  int needs_one;       /* whether other threads would have nothing to do */
  unsigned char **own; /* inputs, outputs, and output buffers that views of are outputs, where they lie in the handle */
  int64_t *own_held;
} net_target;

/* The plan's main object: builder/spmd_main.py of mlirt describes the words that these read. */
void mlirt_main(void);
int64_t mlirt_run(void *control, void *table, int64_t rows, void *request);
int64_t mlirt_alone(void *job);
void mlirt_worker(void *control, int64_t tid);
void mlirt_prepare(void *control, int64_t threads);
void mlirt_spin(int64_t pauses);
void mlirt_bordered(void *parameters, int64_t part, int64_t parts);

/* table.c */
void net_fill_table(net_handle *h);

/* workers.c */
pool *net_start_pool(int32_t *threads);
void net_stop_pool(pool *p);
int32_t net_thread_count(int wanted);

/* processor.c */
net_status net_check_processor(char *error, size_t room);

#endif
