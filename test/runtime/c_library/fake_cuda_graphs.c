/* Streams, events, captures, graphs and launches of the fake driver: a graph is a list of nodes, which run in order. */
#include "fake_cuda.h"

#include <math.h>

#define MAX_ARGUMENTS 64
#define MAX_STREAMS 256
#define MAX_CONDITIONS 65536
/* Kernels that nobody knows do nothing, so that their loops would go on. */
#define MAX_ITERATIONS 100

typedef enum { KERNEL, CONDITIONAL, COPY } node_kind;

typedef struct graph graph;

typedef struct {
  node_kind kind;
  int number;
  char symbol[200];
  unsigned char values[MAX_ARGUMENTS][128];
  uint64_t condition;
  address to, from; /* of a copy; a fill is one from nowhere */
  unsigned char byte;
  size_t bytes;
  int is_loop;
  graph *body;
} node;

struct graph {
  int count, held;
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

static int condition_count;
static char conditions[MAX_CONDITIONS];
static stream default_stream;

void fake_count_anew(void) { condition_count = 0; }

static stream *streams[MAX_STREAMS];
CALL cuStreamCreate(void **found, unsigned flags) {
  int i = 0;
  (void)flags;
  while (streams[i])
    i++;
  *found = streams[i] = calloc(1, sizeof(stream));
  fake_alive[STREAMS]++;
  return 0;
}
CALL cuStreamDestroy_v2(void *given) {
  for (int i = 0; i < MAX_STREAMS; i++)
    if (streams[i] == given)
      streams[i] = NULL;
  free(given);
  fake_alive[STREAMS]--;
  return 0;
}
static stream *of(void *given) { return given ? given : &default_stream; }
CALL cuStreamSynchronize(void *given) {
  if (of(given)->is_open)
    fake_say("ERROR: synchronize in a capture");
  return fake_fails("cuStreamSynchronize") ? FAILED : 0;
}
CALL cuStreamIsCapturing(void *given, int *state) {
  *state = of(given)->is_open;
  return 0;
}
CALL cuEventCreate(void **found, unsigned flags) {
  (void)flags;
  *found = calloc(1, sizeof(event));
  fake_alive[EVENTS]++;
  return 0;
}
CALL cuEventDestroy_v2(void *given) {
  free(given);
  fake_alive[EVENTS]--;
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
  fake_alive[GRAPHS]++;
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
  if (fake_fails("cuStreamBeginCapture"))
    return FAILED;
  s->is_open = 1;
  s->lasts = 0;
  s->captured = new_graph();
  fake_say("capture");
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
  fake_say("captured %d", s->captured->count);
  return 0;
}
int fake_captures(void *where, address to, address from, unsigned char byte, size_t bytes) {
  stream *s = of(where);
  char one[64], other[64];
  if (!s->is_open)
    return 0;
  node *n = add(s->captured, COPY);
  n->to = to;
  n->from = from;
  n->byte = byte;
  n->bytes = bytes;
  fake_say("copy %s %s %zu", fake_name(to, one), from ? fake_name(from, other) : "fill", bytes);
  s->last[0] = n->number;
  s->lasts = 1;
  return 1;
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
  for (int i = 0; i < g->count; i++) {
    node *one = add(twin, g->nodes[i]->kind);
    *one = *g->nodes[i];
    one->body = one->body ? copy(one->body) : NULL;
  }
  return twin;
}
CALL cuGraphInstantiateWithFlags(void **found, void *given, unsigned long long flags) {
  (void)flags;
  if (fake_fails("cuGraphInstantiate"))
    return FAILED;
  *found = copy(given);
  fake_alive[EXECUTABLES]++;
  return 0;
}
CALL cuGraphDestroy(void *given) {
  fake_alive[GRAPHS]--;
  free_graph(given);
  return 0;
}
CALL cuGraphExecDestroy(void *given) {
  fake_alive[EXECUTABLES]--;
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
    conditions[a % MAX_CONDITIONS] = (*(unsigned char *)(uintptr_t)b != 0) == holds;
  }
}

static void run(const graph *g) {
  for (int i = 0; i < g->count; i++) {
    const node *n = g->nodes[i];
    if (n->kind == KERNEL)
      work(n);
    else if (n->kind == COPY && n->from)
      memmove((void *)(uintptr_t)n->to, (const void *)(uintptr_t)n->from, n->bytes);
    else if (n->kind == COPY)
      memset((void *)(uintptr_t)n->to, n->byte, n->bytes);
    else if (!n->is_loop && conditions[n->condition])
      run(n->body);
    else
      for (int k = 0; n->is_loop && conditions[n->condition] && k < MAX_ITERATIONS; k++)
        run(n->body);
  }
}
CALL cuGraphLaunch(void *given, void *where) {
  if (!fake_is_current() || of(where)->is_open || fake_fails("cuGraphLaunch"))
    return FAILED;
  fake_say("replay %d", ((graph *)given)->count);
  run(given);
  return 0;
}

/* The values of a launch as text, and kept. */
static void read_values(node *n, void **arguments, char *text, size_t room) {
  const char *kinds = fake_kinds(n->symbol);
  size_t used = 0;
  *text = 0;
  for (int i = 0; *kinds; i++) {
    char name[64];
    int64_t word = 0;
    size_t bytes = strncmp(kinds, "map", 3) == 0 ? 128 : kinds[1] == '3' ? 4 : 8;
    memcpy(n->values[i], arguments[i], bytes);
    memcpy(&word, arguments[i], bytes < 8 ? bytes : 8);
    if (kinds[0] == 'p')
      used += (size_t)snprintf(text + used, room - used, " %s", fake_name((address)word, name));
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
  if (!fake_is_current() || fake_fails("cuLaunchKernel"))
    return FAILED;
  node *n = s->is_open ? add(s->captured, KERNEL) : memset(&loose, 0, sizeof loose);
  snprintf(n->symbol, sizeof n->symbol, "%s", f->symbol);
  read_values(n, arguments, text, sizeof text);
  for (int pass = 0; s->is_open && pass < s->captured->count; pass++)
    for (int i = 0; i < s->lasts; i++)
      if (s->last[i] == pass)
        sprintf(after + strlen(after), " %d", pass);
  fake_say("node %d after%s: %s grid %u,%u,%u block %u,%u,%u shared %u%s:%s", n->number, after, f->symbol, grid[0], grid[1],
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

#ifndef OLD
CALL cuGraphCreate(void **found, unsigned flags) {
  (void)flags;
  *found = new_graph();
  return fake_fails("cuGraphCreate") ? FAILED : 0;
}
CALL cuGraphConditionalHandleCreate(uint64_t *found, void *given, void *context, unsigned first, unsigned flags) {
  (void)given, (void)context, (void)flags;
  *found = (uint64_t)(condition_count++ % MAX_CONDITIONS);
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
  if (p->type != 13 || fake_fails("cuGraphAddNode"))
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
  fake_say("node %d after%s: %s %d", n->number, text, n->is_loop ? "while" : "if", (int)n->condition);
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
