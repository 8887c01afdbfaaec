/* One handle: what shapes determine, the table that the plan's main object runs, memory, and threads. */
#ifndef NET_HANDLE_H
#define NET_HANDLE_H

#include "plan.h"
#include "system.h"

#define NET_ERROR_BYTES 1024

/* Threads that take part in a run besides the caller. */
typedef struct pool pool;

typedef struct {
  const step *step; /* NULL of a jump that is taken always */
  int32_t launch;   /* or -1 */
} row_origin;

/* A value that is kept from run to run, and memory for the next one. */
typedef struct {
  unsigned char *now, *next;
  int64_t now_held, next_held;
  int has_begun;
} kept_state;

struct net_handle {
  int32_t threads;
  pool *pool;
  int64_t runs;
  int64_t *numbers;
  int64_t *lengths;   /* of all inputs, one after the other */
  int32_t *first_dim; /* of each input among them */
  uint8_t *is_set;    /* which inputs have a shape */
  int64_t *size_values, *bound_sizes;
  int is_bound;
  int has_run;
  int64_t *sizes, *starts, *offsets; /* of each buffer: bytes, place in its owner, place in the arena */
  uint8_t *is_rewritten;             /* which borders are written in each run */
  uint8_t *is_used;                  /* which buffers a run may touch */
  uint8_t *is_never_run;             /* which launches no run comes to */
  uint8_t *is_idle;                  /* which launches write to nothing */
  uint8_t *has_fault;                /* which launches would leave their buffers */
  int64_t *pointed;                  /* for each argument that is a pointer its place in the owner of the bytes */
  int64_t *borders;                  /* five numbers of each border */
  unsigned char *arena;
  int64_t arena_bytes, arena_held;
  unsigned char **bases; /* of each buffer that owns its bytes */
  int64_t *parameters;
  int64_t *table;
  row_origin *rows;
  int64_t row_count;
  int needs_one; /* whether other threads would have nothing to do */
  unsigned char **own; /* inputs, outputs, and output buffers that views of are outputs, where they lie in the handle */
  int64_t *own_held;
  const void **found; /* where each output of the last run is */
  const void **given; /* where the inputs of a run are, and `wanted` where its outputs shall be */
  void **wanted;
  kept_state *states;
  int64_t *last_lengths; /* of all outputs of the last run, one after the other */
  char error[NET_ERROR_BYTES];
};

/* Writes the text of an error and returns its code. */
net_status net_fail(net_handle *h, net_status code, const char *form, ...) __attribute__((format(printf, 3, 4)));

int64_t net_tensor_bytes(const net_handle *h, const tensor *t);

/* numbers.c */
void net_evaluate(net_handle *h);
int net_holds(int32_t relation, int64_t left, int64_t right);

/* shapes.c */
net_status net_wrong_rank(net_handle *h, int32_t input, int rank);
net_status net_wrong_length(net_handle *h, int32_t input, int32_t axis, int64_t expected, int64_t came);
net_status net_check_shapes(net_handle *h);
net_status net_violation(net_handle *h, const requirement *one, int adds_shapes);
int net_is_violated(const net_handle *h, const requirement *one);

/* binding.c */
net_status net_bind(net_handle *h);

/* launches.c */
net_status net_bind_launches(net_handle *h);

/* placement.c */
net_status net_place(net_handle *h);

/* table.c */
void net_fill_table(net_handle *h);

/* program.c */
void net_find_never_run(net_handle *h);
void net_refine_sizes(net_handle *h, int32_t known);

/* state.c */
net_status net_begin_states(net_handle *h);
net_status net_place_states(net_handle *h);
void net_keep_states(net_handle *h);

/* workers.c */
pool *net_start_pool(int32_t *threads);
void net_stop_pool(pool *p);
int64_t net_run_rows(net_handle *h);
int32_t net_thread_count(int wanted);

/* processor.c */
net_status net_check_processor(char *error, size_t room);

#endif
