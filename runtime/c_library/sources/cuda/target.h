/* What a plan has for CUDA devices beside its other tables, and what a handle has there. */
#ifndef NET_TARGET_H
#define NET_TARGET_H

#include "driver.h"
#include "plan.h"

#define NET_MAP_RANK 5
#define NET_MAP_BYTES 128
#define NET_ALIGNMENT 256
#define NET_KEPT_GRAPHS 16
#define NET_MAX_LANES 8

/* Code of an architecture such as sm_90a: its number, 0, 1 (f) or 2 (a) for what stands behind it, and the section. */
typedef struct {
  const char *name;
  int32_t number, suffix, is_ptx, section;
} arch_code;

typedef struct {
  const char *name, *symbol;
  int32_t block[3], shared_bytes, is_dependent, is_cooperative;
  int32_t first_code, codes;
} kernel;

/* The blocks of a launch along x, y and z: numbers. */
typedef struct {
  int32_t size[3];
} grid_numbers;

/* Whether a launch writes through an argument, and which part of the buffer it touches. */
typedef struct {
  int32_t writes, first_part, parts;
} argument_use;

/* A tensor that copies of the device bring boxes of; dimensions outermost first, sizes and steps are numbers. */
typedef struct {
  int32_t rank, element, element_bytes, swizzle, has_window;
  int32_t sizes[NET_MAP_RANK], steps[NET_MAP_RANK];
  int32_t box[NET_MAP_RANK], lower[NET_MAP_RANK], upper[NET_MAP_RANK], stride[NET_MAP_RANK];
} tensor_map;

typedef struct {
  int64_t weight_bytes;
  const unsigned char *const *sections;
  int32_t section_count;
  const kernel *kernels;
  int32_t kernel_count;
  const arch_code *codes;
  int32_t first_condition, condition_count; /* codes of the kernel that sets conditions of graphs */
  const grid_numbers *grids;                /* of launches */
  const argument_use *uses;                 /* of arguments */
  const int64_t *parts;
  const tensor_map *maps;
} cuda_plan;

extern const cuda_plan net_cuda_plan;

/* A device with the code and the weights of the plan, which handles share. */
typedef struct net_device {
  const net_driver *cuda;
  int32_t number, users;
  int device;
  void *context;
  int32_t capability; /* 90 for 9.0 */
  int processors;
  void **modules;    /* of sections */
  void **functions;  /* of kernels */
  int32_t *chosen;   /* the code of each */
  void *setter;      /* sets conditions of graphs; NULL where the host decides */
  device_address weights;
  struct net_device *next;
} net_device;

/* The graphs of one set of shapes and addresses, by the steps that they begin with. */
typedef struct {
  int64_t *key;
  void **graphs;
  int is_made;
  int64_t last_used;
} kept_graphs;

typedef struct {
  net_device *device;
  void *stream, *own; /* where runs go, and the handle's own stream */
  device_address block;
  int64_t block_held;
  unsigned char *staging; /* of inputs, outputs, and a word; the device reads and writes it */
  int64_t staging_held, staged_inputs, staged;
  int takes_addresses; /* whether the arrays of the run are memory of the device */
  int on_device;       /* whether the device decides about branches and loops */
  int is_captured;     /* whether the run becomes part of a graph of the caller */
  int is_in_graphs;    /* whether such a graph may write the handle's memory at any time */
  device_address *outgrown; /* memory that such graphs may use still */
  int32_t outgrown_count;
  kept_graphs *kept;
  int64_t *key;
  int64_t key_words, uses;
  void *streams[NET_MAX_LANES]; /* the lanes of a capture: the first is the handle's own stream */
  int32_t stream_count;
  void **events;
  int32_t event_count;
  uint8_t *is_written;     /* which buffers launches write */
  void *turn;              /* an event between a stream and the next one */
  unsigned char *values;   /* the arguments of one launch */
  void **pointers;
} net_target;

/* device.c */
net_status net_open_device(net_handle *h, int number);
void net_close_device(net_device *device);
net_status net_device_fail(net_handle *h, const char *call, int status);

/* arguments.c */
net_status net_queue_launch(net_handle *h, int32_t number, void *stream, int follows);
net_status net_queue_setting(net_handle *h, uint64_t condition, int32_t place, int holds, void *stream);
device_address net_place_address(const net_handle *h, int32_t place);

/* order.c */
typedef struct {
  int64_t start, end;
  int32_t writes, parts;
  const int64_t *part;
} access;

/* Launches that touch memory, and which of the earlier ones each has to wait for. */
typedef struct {
  int32_t count, words;
  access *accesses;
  int32_t *first;           /* access of each launch, and behind the last one */
  uint64_t *before, *waits; /* for each launch, as bits, all that are over when it starts, and those that it waits for */
} order;

/* `starts` says where each buffer that owns its bytes begins; with `seats` launches whose blocks wait for each other have
 * room. 0 where there is no memory; `net_free_order` gives back what there is in any case. */
int net_order(const net_handle *h, const int32_t *launches, int32_t count, const int64_t *starts, int seats, order *o);
void net_free_order(order *o);
void net_find_lanes(const order *o, int32_t *lanes);

/* graphs.c */
/* The executable graph of launches; with NULL for it they are queued on the run's stream, which is captured. */
net_status net_capture(net_handle *h, const int32_t *launches, int32_t count, void **graph);
net_status net_deciding_graph(net_handle *h, int32_t from, int32_t to, void **graph);

/* decisions.c */
int net_is_straight(void);
kept_graphs *net_graphs_of(net_handle *h, int notes);
void net_drop_graphs(net_handle *h);

/* memory.c */
int64_t net_place_own_arrays(net_handle *h);

#endif
