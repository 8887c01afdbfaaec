/* Stands for the CUDA driver where there is no device: memory of the device is memory of the host, work is done when it is
 * queued, and what is asked for is written to a log, one line each. Both runtimes use it: the Python one through ctypes, C
 * libraries as the libcuda.so.1 that they find.
 *
 * FAKE_CUDA_LOG names the log, FAKE_CUDA_KERNELS a file with a line for each kernel: its symbol and the kinds of its
 * arguments (ptr, map, i64, i32, f32, f64). Addresses are written as the number of an allocation and a place in it.
 * FAKE_CUDA_CAPABILITY (90), FAKE_CUDA_DEVICES (1), FAKE_CUDA_SHARED (0: not told): what there is; FAKE_CUDA_FAILS=NAME:N
 * lets the Nth call of a function fail. With -DOLD there are no graphs that decide.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL __attribute__((visibility("default"))) int
#define MAX_ALLOCATIONS 4096
#define MAX_ARGUMENTS 64
#define MAX_KERNELS 4096
#define MAX_STREAMS 256
#define FAILED 719
/* Kernels that nobody knows do nothing, so that their loops would go on. */
#define MAX_ITERATIONS 100

typedef uint64_t address;

typedef struct {
  unsigned char *start;
  void *memory;
  size_t bytes;
  char kind; /* m: of the device, p: pinned */
  int number;
} allocation;

typedef struct {
  char symbol[200], kinds[400];
} signature;

typedef struct {
  char symbol[200];
  int shared;
} function;

typedef enum { KERNEL, CONDITIONAL } node_kind;

typedef struct graph graph;

typedef struct {
  node_kind kind;
  int number;
  char symbol[200];
  unsigned char values[MAX_ARGUMENTS][128];
  uint64_t condition;
  int is_loop;
  graph *body;
} node;

struct graph {
  int number, count, held;
  node **nodes;
};

typedef struct {
  int is_open, last[64], lasts; /* the nodes that the next one waits for */
  graph *captured;
} stream;

typedef struct {
  int last[64], lasts;
  graph *captured;
} event;

static allocation allocations[MAX_ALLOCATIONS];
static signature signatures[MAX_KERNELS];
static int counts[2], signature_count, graph_count, node_count, condition_count, begun, current_depth;
static int alive[6]; /* modules, streams, events, graphs, executables, contexts */
static char conditions[65536];
static stream default_stream;
static FILE *journal;

static void say(const char *form, ...) __attribute__((format(printf, 1, 2)));

#include <stdarg.h>
static void say(const char *form, ...) {
  va_list given;
  if (!journal)
    return;
  va_start(given, form);
  vfprintf(journal, form, given);
  va_end(given);
  fputc('\n', journal);
  fflush(journal);
}

/* Begins anew: Python calls it, and the first call of the driver otherwise. */
CALL fake_begin(const char *log, const char *kernels) {
  begun = 1;
  signature_count = graph_count = node_count = condition_count = 0;
  counts[0] = counts[1] = 0;
  if (journal)
    fclose(journal);
  journal = log ? fopen(log, "w") : NULL;
  FILE *file = kernels ? fopen(kernels, "r") : NULL;
  while (file && signature_count < MAX_KERNELS &&
         fscanf(file, "%199s %399s", signatures[signature_count].symbol, signatures[signature_count].kinds) == 2)
    signature_count++;
  if (file)
    fclose(file);
  return 0;
}

static int number_of(const char *name, int usual) {
  const char *text = getenv(name);
  return text ? atoi(text) : usual;
}

/* Whether this call of a function is the one that fails. */
static int fails(const char *name) {
  static int calls;
  const char *wanted = getenv("FAKE_CUDA_FAILS");
  size_t length = strlen(name);
  return wanted && strncmp(wanted, name, length) == 0 && wanted[length] == ':' && ++calls == atoi(wanted + length + 1);
}

static const char *named(address a, char *text) {
  for (int i = 0; i < MAX_ALLOCATIONS; i++) {
    const allocation *one = &allocations[i];
    address start = (address)(uintptr_t)one->start;
    if (one->start && a >= start && a < start + one->bytes + 1) {
      sprintf(text, "%c%d+%" PRIu64, one->kind, one->number, a - start);
      return text;
    }
  }
  return strcpy(text, "host");
}

static unsigned digest(const void *memory, size_t bytes) {
  unsigned hash = 2166136261u;
  for (size_t i = 0; i < bytes; i++)
    hash = (hash ^ ((const unsigned char *)memory)[i]) * 16777619u;
  return hash;
}

static int allocate(void **found, size_t bytes, char kind) {
  for (int i = 0; i < MAX_ALLOCATIONS; i++)
    if (!allocations[i].start) {
      allocation *one = &allocations[i];
      one->memory = malloc(bytes + 512);
      one->start = (unsigned char *)(((uintptr_t)one->memory + 255) / 256 * 256);
      memset(one->start, 0xab, bytes);
      one->bytes = bytes;
      one->kind = kind;
      one->number = ++counts[kind == 'p'];
      *found = one->start;
      say("allocate %c%d %zu", kind, one->number, bytes);
      return 0;
    }
  return 2;
}

static int release(address a) {
  for (int i = 0; i < MAX_ALLOCATIONS; i++)
    if (allocations[i].start && (address)(uintptr_t)allocations[i].start == a) {
      say("free %c%d", allocations[i].kind, allocations[i].number);
      memset(allocations[i].start, 0xcd, allocations[i].bytes);
      free(allocations[i].memory);
      memset(&allocations[i], 0, sizeof allocations[i]);
      return 0;
    }
  say("ERROR: free of what is not there");
  return 1;
}

CALL cuInit(unsigned flags) {
  if (!begun)
    fake_begin(getenv("FAKE_CUDA_LOG"), getenv("FAKE_CUDA_KERNELS"));
  return (int)flags + (fails("cuInit") ? 100 : 0);
}
CALL cuGetErrorName(int status, const char **text) {
  *text = status == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : status == 100 ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_LAUNCH_FAILED";
  return 0;
}
CALL cuGetErrorString(int status, const char **text) {
  *text = status == 2 ? "out of memory" : "something is wrong";
  return 0;
}
CALL cuDriverGetVersion(int *version) {
  *version = 13000;
  return 0;
}
CALL cuDeviceGetCount(int *count) {
  *count = number_of("FAKE_CUDA_DEVICES", 1);
  return 0;
}
CALL cuDeviceGet(int *device, int number) {
  *device = number;
  return 0;
}
CALL cuDeviceGetName(char *name, int room, int device) {
  snprintf(name, (size_t)room, "fake %d", device);
  return 0;
}
CALL cuDeviceGetAttribute(int *value, int attribute, int device) {
  int capability = number_of("FAKE_CUDA_CAPABILITY", 90);
  (void)device;
  *value = attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10 : attribute == 16 ? 132 : 0;
  if (attribute == 97)
    *value = number_of("FAKE_CUDA_SHARED", 0);
  return 0;
}
static char contexts[16];
CALL cuDevicePrimaryCtxRetain(void **context, int device) {
  *context = &contexts[device];
  alive[5]++;
  return 0;
}
CALL cuDevicePrimaryCtxRelease_v2(int device) {
  (void)device;
  alive[5]--;
  return 0;
}
static void *stack[64];
CALL cuCtxSetCurrent(void *context) {
  stack[current_depth] = context;
  return 0;
}
CALL cuCtxGetCurrent(void **context) {
  *context = stack[current_depth];
  return 0;
}
CALL cuCtxGetDevice(int *device) {
  *device = (int)((char *)stack[current_depth] - contexts);
  return stack[current_depth] ? 0 : 201;
}
CALL cuCtxPushCurrent_v2(void *context) {
  stack[++current_depth] = context;
  return 0;
}
CALL cuCtxPopCurrent_v2(void **context) {
  *context = stack[current_depth--];
  return 0;
}
static int is_current(void) {
  if (!stack[current_depth])
    say("ERROR: no context is current");
  return stack[current_depth] != NULL;
}

CALL cuMemAlloc_v2(address *found, size_t bytes) {
  void *memory = NULL;
  if (!is_current() || fails("cuMemAlloc"))
    return 2;
  int status = allocate(&memory, bytes, 'm');
  *found = (address)(uintptr_t)memory;
  return status;
}
CALL cuMemFree_v2(address a) { return release(a); }
CALL cuMemHostAlloc(void **found, size_t bytes, unsigned flags) {
  (void)flags;
  return fails("cuMemHostAlloc") ? 2 : allocate(found, bytes, 'p');
}
CALL cuMemFreeHost(void *memory) { return release((address)(uintptr_t)memory); }
CALL cuPointerGetAttributes(unsigned count, int *attributes, void **values, address a) {
  char text[64];
  (void)count, (void)attributes;
  *(int *)values[0] = named(a, text)[0] == 'p' ? 1 : text[0] == 'm' ? 2 : 0;
  return 0;
}

CALL cuModuleGetLoadingMode(int *mode) {
  *mode = 1;
  return 0;
}
CALL cuModuleLoadData(void **module, const void *image) {
  if (!is_current() || fails("cuModuleLoadData"))
    return FAILED;
  *module = malloc(1);
  alive[0]++;
  say("module %s", memcmp(image, "\x7f" "ELF", 4) ? "ptx" : "cubin");
  return 0;
}
CALL cuModuleUnload(void *module) {
  free(module);
  alive[0]--;
  return 0;
}
static function *functions;
static int function_count;
CALL cuModuleGetFunction(void **found, void *module, const char *symbol) {
  (void)module;
  if (!functions)
    functions = calloc(MAX_KERNELS, sizeof *functions);
  snprintf(functions[function_count].symbol, sizeof functions[0].symbol, "%s", symbol);
  *found = &functions[function_count++];
  return 0;
}
CALL cuFuncSetAttribute(void *given, int attribute, int value) {
  say("attribute %s %d %d", ((function *)given)->symbol, attribute, value);
  return 0;
}

static stream *streams[MAX_STREAMS];
CALL cuStreamCreate(void **found, unsigned flags) {
  int i = 0;
  (void)flags;
  while (streams[i])
    i++;
  *found = streams[i] = calloc(1, sizeof(stream));
  alive[1]++;
  return 0;
}
CALL cuStreamDestroy_v2(void *given) {
  for (int i = 0; i < MAX_STREAMS; i++)
    if (streams[i] == given)
      streams[i] = NULL;
  free(given);
  alive[1]--;
  return 0;
}
static stream *of(void *given) { return given ? given : &default_stream; }
CALL cuStreamSynchronize(void *given) {
  if (of(given)->is_open)
    say("ERROR: synchronize in a capture");
  return fails("cuStreamSynchronize") ? FAILED : 0;
}
CALL cuStreamIsCapturing(void *given, int *state) {
  *state = of(given)->is_open;
  return 0;
}
CALL cuEventCreate(void **found, unsigned flags) {
  (void)flags;
  *found = calloc(1, sizeof(event));
  alive[2]++;
  return 0;
}
CALL cuEventDestroy_v2(void *given) {
  free(given);
  alive[2]--;
  return 0;
}
CALL cuEventElapsedTime(float *ms, void *start, void *end) {
  (void)start, (void)end;
  *ms = 1;
  return 0;
}
CALL cuEventRecord(void *given, void *where) {
  event *e = given;
  stream *s = of(where);
  memcpy(e->last, s->last, sizeof e->last);
  e->lasts = s->lasts;
  e->captured = s->is_open ? s->captured : NULL;
  return 0;
}
CALL cuStreamWaitEvent(void *where, void *given, unsigned flags) {
  event *e = given;
  stream *s = of(where);
  (void)flags;
  if (!e->captured)
    return 0;
  if (!s->is_open) {
    s->is_open = 1;
    s->captured = e->captured;
    s->lasts = 0;
  }
  for (int i = 0; i < e->lasts; i++) {
    int is_known = 0;
    for (int k = 0; k < s->lasts; k++)
      is_known |= s->last[k] == e->last[i];
    if (!is_known)
      s->last[s->lasts++] = e->last[i];
  }
  return 0;
}

static graph *new_graph(void) {
  graph *g = calloc(1, sizeof *g);
  g->number = ++graph_count;
  alive[3]++;
  return g;
}
static node *add(graph *g, node_kind kind) {
  if (g->count == g->held)
    g->nodes = realloc(g->nodes, sizeof *g->nodes * (size_t)(g->held = 2 * g->held + 8));
  node *one = calloc(1, sizeof *one);
  one->kind = kind;
  one->number = g->count;
  g->nodes[g->count++] = one;
  return one;
}
CALL cuStreamBeginCapture_v2(void *given, int mode) {
  stream *s = of(given);
  (void)mode;
  if (fails("cuStreamBeginCapture"))
    return FAILED;
  s->is_open = 1;
  s->lasts = 0;
  s->captured = new_graph();
  say("capture");
  return 0;
}
CALL cuStreamEndCapture(void *given, void **found) {
  stream *s = of(given);
  if (!s->is_open)
    return FAILED;
  *found = s->captured;
  for (int i = 0; i < MAX_STREAMS; i++) /* those that have joined it too */
    if (streams[i] && streams[i]->captured == s->captured)
      streams[i]->is_open = 0;
  s->is_open = 0;
  say("captured %d", s->captured->count);
  return 0;
}
static void free_graph(graph *g) {
  for (int i = 0; i < g->count; i++) {
    if (g->nodes[i]->body)
      free_graph(g->nodes[i]->body);
    free(g->nodes[i]);
  }
  free(g->nodes);
  free(g);
}
static graph *copy(const graph *g) {
  graph *twin = calloc(1, sizeof *twin);
  twin->number = g->number;
  for (int i = 0; i < g->count; i++) {
    node *one = add(twin, g->nodes[i]->kind);
    *one = *g->nodes[i];
    one->body = one->body ? copy(one->body) : NULL;
  }
  return twin;
}
CALL cuGraphInstantiateWithFlags(void **found, void *given, unsigned long long flags) {
  (void)flags;
  if (fails("cuGraphInstantiate"))
    return FAILED;
  *found = copy(given);
  alive[4]++;
  return 0;
}
CALL cuGraphDestroy(void *given) {
  alive[3]--;
  free_graph(given);
  return 0;
}
CALL cuGraphExecDestroy(void *given) {
  alive[4]--;
  free_graph(given);
  return 0;
}

static void work(const node *n) {
  address a, b;
  memcpy(&a, n->values[0], sizeof a);
  memcpy(&b, n->values[1], sizeof b);
  const float *x = (const float *)(uintptr_t)a;
  float *y = (float *)(uintptr_t)b;
  if (strcmp(n->symbol, "scale") == 0) {
    int64_t count;
    double factor;
    float addend;
    memcpy(&count, n->values[2], sizeof count);
    memcpy(&factor, n->values[3], sizeof factor);
    memcpy(&addend, n->values[4], sizeof addend);
    for (int64_t i = 0; i < count; i++)
      y[i] = (float)(x[i] * (float)factor) + addend;
  } else if (strcmp(n->symbol, "reverse") == 0) {
    int32_t count;
    memcpy(&count, n->values[2], sizeof count);
    for (int32_t i = 0; i < count; i++)
      y[i] = cosf(x[count - 1 - i]);
  } else if (strcmp(n->symbol, "set_condition") == 0) {
    int32_t holds;
    memcpy(&holds, n->values[2], sizeof holds);
    conditions[a % sizeof conditions] = (*(unsigned char *)(uintptr_t)b != 0) == holds;
  }
}

static void run(const graph *g) {
  for (int i = 0; i < g->count; i++) {
    const node *n = g->nodes[i];
    if (n->kind == KERNEL)
      work(n);
    else if (!n->is_loop && conditions[n->condition])
      run(n->body);
    else
      for (int k = 0; n->is_loop && conditions[n->condition] && k < MAX_ITERATIONS; k++)
        run(n->body);
  }
}
CALL cuGraphLaunch(void *given, void *where) {
  if (!is_current() || of(where)->is_open || fails("cuGraphLaunch"))
    return FAILED;
  say("replay %d", ((graph *)given)->count);
  run(given);
  return 0;
}

/* The values of a launch as text, and kept. */
static void read_values(node *n, void **arguments, char *text, size_t room) {
  const char *kinds = "";
  size_t used = 0;
  for (int i = 0; i < signature_count; i++)
    if (strcmp(signatures[i].symbol, n->symbol) == 0)
      kinds = signatures[i].kinds;
  if (strcmp(n->symbol, "set_condition") == 0)
    kinds = "i64,ptr,i32";
  *text = 0;
  for (int i = 0; *kinds; i++) {
    char name[64];
    int64_t word = 0;
    size_t bytes = strncmp(kinds, "map", 3) == 0 ? 128 : kinds[1] == '3' ? 4 : 8;
    memcpy(n->values[i], arguments[i], bytes);
    memcpy(&word, arguments[i], bytes < 8 ? bytes : 8);
    if (kinds[0] == 'p')
      used += (size_t)snprintf(text + used, room - used, " %s", named((address)word, name));
    else if (bytes == 128)
      used += (size_t)snprintf(text + used, room - used, " map:%s", (const char *)arguments[i] + 8);
    else
      used += (size_t)snprintf(text + used, room - used, " %" PRId64, word);
    kinds += strcspn(kinds, ",");
    kinds += *kinds == ',';
  }
}

static int launch(function *f, const unsigned *grid, const unsigned *block, unsigned shared, void *where, void **arguments,
                  const char *more) {
  static node loose;
  stream *s = of(where);
  char text[8192], after[1024] = "";
  if (!is_current() || fails("cuLaunchKernel"))
    return FAILED;
  node *n = s->is_open ? add(s->captured, KERNEL) : memset(&loose, 0, sizeof loose);
  snprintf(n->symbol, sizeof n->symbol, "%s", f->symbol);
  read_values(n, arguments, text, sizeof text);
  for (int pass = 0; s->is_open && pass < s->captured->count; pass++)
    for (int i = 0; i < s->lasts; i++)
      if (s->last[i] == pass)
        sprintf(after + strlen(after), " %d", pass);
  say("node %d after%s: %s grid %u,%u,%u block %u,%u,%u shared %u%s:%s", n->number, after, f->symbol, grid[0], grid[1],
      grid[2], block[0], block[1], block[2], shared, more, text);
  s->last[0] = n->number;
  s->lasts = 1;
  if (!s->is_open)
    work(n);
  return 0;
}
CALL cuLaunchKernel(void *given, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                    void *where, void **arguments, void **extra) {
  unsigned grid[3] = {x, y, z}, block[3] = {bx, by, bz};
  (void)extra;
  return launch(given, grid, block, shared, where, arguments, "");
}
typedef struct {
  int id, padding;
  uint32_t value[16];
} launch_attribute;
typedef struct {
  unsigned grid[3], block[3], shared_bytes;
  void *where;
  launch_attribute *attributes;
  unsigned attribute_count;
} launch_config;
CALL cuLaunchKernelEx(const launch_config *config, void *given, void **arguments, void **extra) {
  char text[100] = "";
  (void)extra;
  for (unsigned i = 0; i < config->attribute_count; i++)
    sprintf(text + strlen(text), " attribute %d=%u", config->attributes[i].id, config->attributes[i].value[0]);
  return launch(given, config->grid, config->block, config->shared_bytes, config->where, arguments, text);
}

CALL cuMemcpyHtoDAsync_v2(address to, const void *from, size_t bytes, void *where) {
  char one[64], other[64];
  (void)where;
  if (!is_current() || fails("cuMemcpyHtoD"))
    return FAILED;
  say("h2d %s %s %zu %08x", named(to, one), named((address)(uintptr_t)from, other), bytes, digest(from, bytes));
  memcpy((void *)(uintptr_t)to, from, bytes);
  return 0;
}
CALL cuMemcpyDtoHAsync_v2(void *to, address from, size_t bytes, void *where) {
  char one[64], other[64];
  (void)where;
  if (!is_current() || fails("cuMemcpyDtoH"))
    return FAILED;
  say("d2h %s %s %zu", named((address)(uintptr_t)to, one), named(from, other), bytes);
  memcpy(to, (const void *)(uintptr_t)from, bytes);
  return 0;
}
CALL cuMemcpyDtoDAsync_v2(address to, address from, size_t bytes, void *where) {
  char one[64], other[64];
  (void)where;
  say("d2d %s %s %zu", named(to, one), named(from, other), bytes);
  memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
  return is_current() ? 0 : FAILED;
}
CALL cuMemsetD8Async(address to, unsigned char byte, size_t bytes, void *where) {
  char one[64];
  (void)where;
  say("fill %s %d %zu", named(to, one), byte, bytes);
  memset((void *)(uintptr_t)to, byte, bytes);
  return is_current() ? 0 : FAILED;
}

static void list(char *text, const char *what, int count, const uint64_t *wide, const int *narrow) {
  sprintf(text + strlen(text), ",%s", what);
  for (int i = 0; i < count; i++)
    sprintf(text + strlen(text), "_%" PRId64, wide ? (int64_t)wide[i] : (int64_t)narrow[i]);
}
/* A map is the number of a text, which stands behind it as far as there is room: a digest of all that it says. */
static int describe(void *map, int element, uint32_t rank, void *at, const uint64_t *sizes, const uint64_t *steps,
                    const int *box, const int *strides, const int *lower, const int *upper, int swizzle, int promotion) {
  char text[2000] = "", name[64];
  if ((uintptr_t)map % 64 || (uintptr_t)at % 16)
    return 1;
  list(text, "sizes", (int)rank, sizes, NULL);
  list(text, "steps", (int)rank - 1, steps, NULL);
  list(text, "box", lower ? 2 : (int)rank, NULL, box);
  list(text, "strides", (int)rank, NULL, strides);
  if (lower) {
    list(text, "lower", (int)rank - 2, NULL, lower);
    list(text, "upper", (int)rank - 2, NULL, upper);
  }
  say("map %s element %d swizzle %d promotion %d %s", named((address)(uintptr_t)at, name), element, swizzle, promotion, text);
  memset(map, 0, 128);
  memcpy(map, &at, sizeof at);
  snprintf((char *)map + 8, 120, "%s,%08x", name, digest(text, strlen(text)) + (unsigned)(16 * element + swizzle));
  return 0;
}
CALL cuTensorMapEncodeTiled(void *map, int element, uint32_t rank, void *at, const uint64_t *sizes, const uint64_t *steps,
                            const uint32_t *box, const uint32_t *strides, int interleave, int swizzle, int promotion,
                            int fill) {
  return interleave + fill + describe(map, element, rank, at, sizes, steps, (const int *)box, (const int *)strides, NULL,
                                      NULL, swizzle, promotion);
}
CALL cuTensorMapEncodeIm2col(void *map, int element, uint32_t rank, void *at, const uint64_t *sizes, const uint64_t *steps,
                             const int *lower, const int *upper, uint32_t channels, uint32_t pixels,
                             const uint32_t *strides, int interleave, int swizzle, int promotion, int fill) {
  int box[2] = {(int)channels, (int)pixels};
  return interleave + fill + describe(map, element, rank, at, sizes, steps, box, (const int *)strides, lower, upper,
                                      swizzle, promotion);
}

#ifndef OLD
CALL cuGraphCreate(void **found, unsigned flags) {
  (void)flags;
  *found = new_graph();
  return fails("cuGraphCreate") ? FAILED : 0;
}
CALL cuGraphConditionalHandleCreate(uint64_t *found, void *given, void *context, unsigned first, unsigned flags) {
  (void)given, (void)context, (void)flags;
  *found = (uint64_t)condition_count++;
  conditions[*found] = (char)first;
  return 0;
}
typedef struct {
  int type, reserved[3];
  struct {
    uint64_t handle;
    int type;
    unsigned size;
    void **bodies;
    void *context;
  } conditional;
} node_parameters;
CALL cuGraphAddNode_v2(void **found, void *given, void *const *after, const void *edges, size_t count, node_parameters *p) {
  static void *bodies[1];
  graph *g = given;
  char text[1024] = "";
  (void)edges;
  if (p->type != 13 || fails("cuGraphAddNode"))
    return FAILED;
  for (size_t i = 0; i < count; i++)
    sprintf(text + strlen(text), " %d", (int)(uintptr_t)after[i] - 1);
  node *n = add(g, CONDITIONAL);
  n->condition = p->conditional.handle;
  n->is_loop = p->conditional.type;
  n->body = calloc(1, sizeof *n->body);
  bodies[0] = n->body;
  p->conditional.bodies = bodies;
  *found = (void *)(uintptr_t)(n->number + 1);
  say("node %d after%s: %s %d", n->number, text, n->is_loop ? "while" : "if", (int)n->condition);
  return 0;
}
CALL cuStreamBeginCaptureToGraph(void *given, void *where, void *const *after, const void *edges, size_t count, int mode) {
  stream *s = of(given);
  (void)edges, (void)mode;
  s->is_open = 1;
  s->captured = where;
  for (s->lasts = 0; s->lasts < (int)count; s->lasts++)
    s->last[s->lasts] = (int)(uintptr_t)after[s->lasts] - 1;
  return 0;
}
CALL cuStreamGetCaptureInfo_v2(void *given, int *state, uint64_t *number, void **found, void ***nodes, size_t *count) {
  static void *last[64];
  stream *s = of(given);
  for (int i = 0; i < s->lasts; i++)
    last[i] = (void *)(uintptr_t)(s->last[i] + 1);
  *state = s->is_open;
  *number = 0;
  *found = s->captured;
  *nodes = last;
  *count = (size_t)s->lasts;
  return 0;
}
#endif

/* What has not been given back. */
__attribute__((destructor)) static void end(void) {
  int left = 0;
  for (int i = 0; i < MAX_ALLOCATIONS; i++)
    left += allocations[i].start != NULL;
  say("left %d allocations, %d modules, %d streams, %d events, %d graphs, %d executables, %d contexts", left, alive[0],
      alive[1], alive[2], alive[3], alive[4], alive[5]);
  free(functions);
  if (journal)
    fclose(journal);
}
