/* Makes graphs of launches, captured from streams: what need not wait for each other may run side by side. */
#include "handle.h"

#include <string.h>

static net_status told(net_handle *h, const char *call, int status) {
  return status == CUDA_SUCCESS ? NET_OK : net_device_fail(h, call, status);
}

static net_status lanes_of(net_handle *h, int32_t count) {
  net_target *t = &h->target;
  int status = CUDA_SUCCESS;
  while (t->stream_count < count && status == CUDA_SUCCESS) {
    status = t->device->cuda->cuStreamCreate(&t->streams[t->stream_count], NON_BLOCKING_STREAM);
    t->stream_count += status == CUDA_SUCCESS;
  }
  return told(h, "cuStreamCreate", status);
}

/* An event for each launch of the plan at most, and one more. */
static net_status event_of(net_handle *h, int32_t number, void **event) {
  net_target *t = &h->target;
  int status = CUDA_SUCCESS;
  while (t->event_count <= number && status == CUDA_SUCCESS) {
    status = t->device->cuda->cuEventCreate(&t->events[t->event_count], NO_TIMES);
    t->event_count += status == CUDA_SUCCESS;
  }
  *event = t->events[number];
  return told(h, "cuEventCreate", status);
}

static net_status record(net_handle *h, int32_t number, void *stream) {
  void *event;
  net_status status = event_of(h, number, &event);
  return status == NET_OK ? told(h, "cuEventRecord", h->target.device->cuda->cuEventRecord(event, stream)) : status;
}

static net_status await(net_handle *h, int32_t number, void *stream) {
  void *event;
  net_status status = event_of(h, number, &event);
  if (status != NET_OK)
    return status;
  return told(h, "cuStreamWaitEvent", h->target.device->cuda->cuStreamWaitEvent(stream, event, 0));
}

static int waits_for(const order *o, int32_t one, int32_t earlier) {
  return o->waits[(size_t)o->words * (size_t)one + (size_t)(earlier / 64)] >> (earlier % 64) & 1;
}

static int is_awaited(const order *o, const int32_t *lanes, int32_t one) {
  for (int32_t i = one + 1; i < o->count; i++)
    if (lanes[i] != lanes[one] && waits_for(o, i, one))
      return 1;
  return 0;
}

/* One launch in its lane, behind what it waits for in other ones. */
static net_status queue_one(net_handle *h, const int32_t *launches, const order *o, const int32_t *lanes, int32_t *last,
                            int32_t i) {
  int32_t lane = lanes[i], waits = 0, crossing = 0;
  void *stream = h->target.streams[lane];
  net_status status = NET_OK;
  for (int32_t k = 0; k < i; k++)
    waits += waits_for(o, i, k);
  if (lane && !waits && last[lane] < 0)
    status = await(h, o->count, stream);
  for (int32_t k = 0; k < i && status == NET_OK; k++)
    if (waits_for(o, i, k) && lanes[k] != lane) {
      status = await(h, k, stream);
      crossing++;
    }
  int follows = last[lane] >= 0 && waits == 1 && !crossing && waits_for(o, i, last[lane]);
  if (status == NET_OK)
    status = net_queue_launch(h, launches[i], stream, follows);
  last[lane] = i;
  return status == NET_OK && is_awaited(o, lanes, i) ? record(h, i, stream) : status;
}

static net_status queue_in_lanes(net_handle *h, const int32_t *launches, const order *o, const int32_t *lanes) {
  int32_t last[NET_MAX_LANES], used = 1;
  for (int32_t i = 0; i < o->count; i++)
    used = lanes[i] + 1 > used ? lanes[i] + 1 : used;
  memset(last, 0xff, sizeof last);
  net_status status = used > 1 ? record(h, o->count, h->target.streams[0]) : NET_OK;
  for (int32_t i = 0; i < o->count && status == NET_OK; i++)
    status = queue_one(h, launches, o, lanes, last, i);
  for (int32_t lane = 1; lane < used && status == NET_OK; lane++) {
    status = record(h, last[lane], h->target.streams[lane]);
    if (status == NET_OK)
      status = await(h, last[lane], h->target.streams[0]);
  }
  return status;
}

static net_status instantiate(net_handle *h, void *graph, void **executable) {
  const net_driver *cuda = h->target.device->cuda;
  int status = cuda->cuGraphInstantiateWithFlags(executable, graph, 0);
  if (status != CUDA_SUCCESS)
    *executable = NULL;
  cuda->cuGraphDestroy(graph);
  return told(h, "cuGraphInstantiateWithFlags", status);
}

static net_status capture_ordered(net_handle *h, const int32_t *launches, const order *o, const int32_t *lanes,
                                  void **executable) {
  const net_driver *cuda = h->target.device->cuda;
  void *stream = h->target.streams[0], *graph = NULL;
  int32_t used = 1;
  for (int32_t i = 0; i < o->count; i++)
    used = lanes[i] + 1 > used ? lanes[i] + 1 : used;
  net_status status = lanes_of(h, used);
  if (status == NET_OK && !executable)
    return queue_in_lanes(h, launches, o, lanes);
  if (status == NET_OK)
    status = told(h, "cuStreamBeginCapture", cuda->cuStreamBeginCapture_v2(stream, RELAXED_CAPTURE));
  if (status != NET_OK)
    return status;
  status = queue_in_lanes(h, launches, o, lanes);
  int ended = cuda->cuStreamEndCapture(stream, &graph); /* a stream whose capture is not ended is of no use */
  if (status == NET_OK && ended == CUDA_SUCCESS)
    return instantiate(h, graph, executable);
  if (ended == CUDA_SUCCESS && graph)
    cuda->cuGraphDestroy(graph);
  return status == NET_OK ? told(h, "cuStreamEndCapture", ended) : status;
}

net_status net_capture(net_handle *h, const int32_t *launches, int32_t count, void **graph) {
  int64_t *starts = net_zeros((size_t)net_plan.buffer_count, sizeof *starts);
  int32_t *lanes = net_zeros((size_t)count, sizeof *lanes);
  order o = {.count = 0};
  net_status status = net_fail(h, NET_OUT_OF_MEMORY, "there is no memory for a graph");
  for (int32_t i = 0; starts && i < net_plan.buffer_count; i++)
    starts[i] = (int64_t)(uintptr_t)h->bases[i];
  if (starts && lanes && net_order(h, launches, count, starts, 1, &o)) {
    net_find_lanes(&o, lanes);
    h->target.streams[0] = graph ? h->target.own : h->target.stream;
    status = capture_ordered(h, launches, &o, lanes, graph);
    h->target.streams[0] = h->target.own;
  }
  net_free_order(&o);
  net_free(starts);
  net_free(lanes);
  return status;
}

/* What goes into a graph at its end: a launch, or what sets the condition of a node that follows. */
typedef struct {
  int32_t launch; /* or -1 */
  uint64_t condition;
  int32_t place, holds;
} item;

typedef struct {
  net_handle *h;
  void *root, *graph;
  void *after[NET_MAX_LANES];
  size_t afters;
  item *items;
  int32_t count;
  net_status status;
} chain;

static void failed(chain *c, const char *call, int status) {
  if (c->status == NET_OK && status != CUDA_SUCCESS)
    c->status = net_device_fail(c->h, call, status);
}

/* What the stream's next node would wait for. */
static void find_ends(chain *c, void *stream) {
  void *graph = NULL, **nodes = NULL;
  uint64_t number;
  int state;
  size_t count = 0;
  failed(c, "cuStreamGetCaptureInfo",
         c->h->target.device->cuda->cuStreamGetCaptureInfo_v2(stream, &state, &number, &graph, &nodes, &count));
  for (c->afters = 0; c->status == NET_OK && c->afters < count && c->afters < NET_MAX_LANES; c->afters++)
    c->after[c->afters] = nodes[c->afters];
}

static void flush(chain *c) {
  const net_driver *cuda = c->h->target.device->cuda;
  void *stream = c->h->target.streams[0], *graph = NULL;
  if (c->count == 0 || c->status != NET_OK)
    return;
  int begun = cuda->cuStreamBeginCaptureToGraph(stream, c->graph, c->after, NULL, c->afters, RELAXED_CAPTURE);
  failed(c, "cuStreamBeginCaptureToGraph", begun);
  if (begun != CUDA_SUCCESS)
    return;
  for (int32_t i = 0; i < c->count && c->status == NET_OK; i++) {
    const item *one = &c->items[i];
    c->status = one->launch >= 0 ? net_queue_launch(c->h, one->launch, stream, 0)
                                 : net_queue_setting(c->h, one->condition, one->place, one->holds, stream);
  }
  if (c->status == NET_OK)
    find_ends(c, stream);
  failed(c, "cuStreamEndCapture", cuda->cuStreamEndCapture(stream, &graph));
  c->count = 0;
}

static uint64_t new_condition(chain *c) {
  const net_device *d = c->h->target.device;
  uint64_t condition = 0;
  if (c->status == NET_OK)
    failed(c, "cuGraphConditionalHandleCreate",
           d->cuda->cuGraphConditionalHandleCreate(&condition, c->root, d->context, 0, CONDITION_HAS_DEFAULT));
  return condition;
}

/* A node that runs its body where, or as long as, a condition holds. */
static void *add_node(chain *c, uint64_t condition, int is_loop) {
  const net_device *d = c->h->target.device;
  node_parameters wanted;
  void *node = NULL;
  memset(&wanted, 0, sizeof wanted);
  wanted.type = NODE_CONDITIONAL;
  wanted.of.conditional = (conditional_node){condition, is_loop ? CONDITION_WHILE : CONDITION_IF, 1, NULL, d->context};
  if (c->status != NET_OK)
    return NULL;
  failed(c, "cuGraphAddNode", d->cuda->cuGraphAddNode_v2(&node, c->graph, c->after, NULL, c->afters, &wanted));
  if (c->status != NET_OK)
    return NULL;
  c->after[0] = node;
  c->afters = 1;
  return wanted.of.conditional.bodies[0];
}

static void add_steps(chain *c, int32_t from, int32_t to);

static chain body_of(const chain *c, void *graph) {
  chain body = *c;
  body.graph = graph;
  body.afters = 0;
  body.items = c->items + c->count;
  body.count = 0;
  return body;
}

static void add_branch(chain *c, const step *s, int32_t i) {
  int32_t from[2] = {i + 1, s->middle}, to[2] = {s->middle, s->end};
  uint64_t conditions[2];
  for (int side = 0; side < 2; side++)
    if (from[side] < to[side]) {
      conditions[side] = new_condition(c);
      c->items[c->count++] = (item){-1, conditions[side], s->a, side == 0};
    }
  flush(c);
  for (int side = 0; side < 2; side++)
    if (from[side] < to[side]) {
      chain body = body_of(c, add_node(c, conditions[side], 0));
      body.status = c->status;
      add_steps(&body, from[side], to[side]);
      flush(&body);
      c->status = body.status;
    }
}

static void add_loop(chain *c, const step *s, int32_t i) {
  add_steps(c, i + 1, s->middle);
  uint64_t condition = new_condition(c);
  item decides = {-1, condition, s->a, 1};
  c->items[c->count++] = decides;
  flush(c);
  chain body = body_of(c, add_node(c, condition, 1));
  body.status = c->status;
  add_steps(&body, s->middle, s->end);
  add_steps(&body, i + 1, s->middle);
  body.items[body.count++] = decides;
  flush(&body);
  c->status = body.status;
}

static void add_steps(chain *c, int32_t from, int32_t to) {
  for (int32_t i = from; i < to && c->status == NET_OK; i = net_plan.steps[i].end) {
    const step *s = &net_plan.steps[i];
    if (s->kind == LAUNCH && !c->h->is_idle[s->a] && !c->h->is_never_run[s->a])
      c->items[c->count++] = (item){s->a, 0, 0, 0};
    else if (s->kind == BRANCH)
      add_branch(c, s, i);
    else if (s->kind == LOOP)
      add_loop(c, s, i);
  }
}

/* A graph whose branches and loops the device decides about. */
net_status net_deciding_graph(net_handle *h, int32_t from, int32_t to, void **graph) {
  const net_driver *cuda = h->target.device->cuda;
  /* Each step is at most two items, and those before the condition of a loop stand there twice. */
  chain c = {.h = h, .status = NET_OK};
  item *items = net_zeros(4 * (size_t)(to - from) + 4, sizeof *items);
  c.items = items;
  if (!items)
    return net_fail(h, NET_OUT_OF_MEMORY, "there is no memory for a graph");
  failed(&c, "cuGraphCreate", cuda->cuGraphCreate(&c.root, 0));
  c.graph = c.root;
  add_steps(&c, from, to);
  flush(&c);
  net_free(items);
  if (c.status == NET_OK)
    return instantiate(h, c.root, graph);
  if (c.root)
    cuda->cuGraphDestroy(c.root);
  return c.status;
}
