/* One handle: what shapes determine, memory, and what it has for the target that the network runs on. */
#ifndef NET_HANDLE_H
#define NET_HANDLE_H

#include "plan.h"
#include "system.h"
#include "target.h"

#define NET_ERROR_BYTES 1024

/* A value that is kept from run to run, and memory for the next one. */
typedef struct {
  unsigned char *now, *next;
  int64_t now_held, next_held;
  int has_begun;
} kept_state;

struct net_handle {
  net_target target;
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
int net_is_in_buffer(const argument *one);
net_status net_bind_launches(net_handle *h);

/* placement.c */
net_status net_place(net_handle *h);

/* program.c */
void net_find_never_run(net_handle *h);
void net_refine_sizes(net_handle *h, int32_t known);

/* state.c */
net_status net_begin_states(net_handle *h);
net_status net_place_states(net_handle *h);
void net_keep_states(net_handle *h);

/* What each target has of its own, in the folders cpu/ and cuda/. */

/* Makes the handle's part: `which` is the caller's number of threads, or of a device. The text of an error is the handle's. */
net_status net_open(net_handle *h, int which);
void net_close(net_handle *h);

/* Around calls of a handle that use its memory. */
net_status net_enter(net_handle *h);
void net_leave(net_handle *h);

/* Memory for a state, of which `*memory` has `*held` bytes; what it held before is not kept. */
net_status net_hold(net_handle *h, unsigned char **memory, int64_t *held, int64_t bytes, const tensor *t);
/* Writes its first value: bytes of the weights from a place on, or zeros where that is -1. */
net_status net_write_state(net_handle *h, unsigned char *memory, int64_t begins, int64_t bytes);

/* Where a map begins in the buffer that owns its bytes; 0 where it makes no sense. */
int net_bind_map(net_handle *h, const argument *one, int idle, int64_t *place);
/* The blocks of a launch, where the target has them; a launch without any is idle. */
net_status net_bind_grid(net_handle *h, int32_t number);
/* Whether launches that write nothing are run. */
int net_runs_idle(void);

/* Places buffers that launches side by side may use, where the target has such launches. */
net_status net_place_side_by_side(net_handle *h);
/* Room for the arena, with its borders; what it held before is not kept. */
net_status net_hold_arena(net_handle *h);
/* All is bound: what launches are passed may be written down. */
void net_fill_arguments(net_handle *h);

/* Before anything of a run: whether it may be made now. */
net_status net_begin_run(net_handle *h);
/* Lets kernels find the arrays `given` and `wanted`. */
net_status net_place_arrays(net_handle *h);
/* Runs the steps: to the end, or to the one that `stopped` names, and for a size by a place `word`, what it found there. */
net_status net_run_steps(net_handle *h, const step **stopped, int64_t *word);
/* Brings outputs where they belong, and notes where each is `found`. */
net_status net_fetch(net_handle *h);
/* After a run that failed: nothing of it touches arrays of the caller any more. */
void net_settle(net_handle *h);

#endif
