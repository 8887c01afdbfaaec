/* Devices with the code and the weights of the plan: loaded by the first handle, given back with the last one. */
#define _GNU_SOURCE
#include "handle.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Blocks may have so much shared memory without asking for it. */
#define USUAL_SHARED_BYTES (48 * 1024)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static net_device *opened;

net_status net_device_fail(net_handle *h, const char *call, int status) {
  char words[256];
  net_say_status(h->target.device->cuda, status, words, sizeof words);
  net_status kind = status == CUDA_OUT_OF_MEMORY ? NET_OUT_OF_MEMORY : NET_DEVICE_FAILED;
  return net_fail(h, kind, "CUDA: %s: %s", call, words);
}

/* Chips of Jetson and Drive run their own code alone. */
static int is_tegra(int32_t capability) {
  static const int32_t found[] = {53, 62, 72, 87, 88, 101, 110};
  for (size_t i = 0; i < sizeof found / sizeof *found; i++)
    if (found[i] == capability)
      return 1;
  return 0;
}

/* How well code suits a device, the greatest best; -1 where it does not run there. Machine code goes before PTX. */
static int32_t rank_of(const arch_code *c, int32_t capability) {
  int is_same = c->number == capability, is_older = c->number < capability;
  if (c->is_ptx)
    return is_same || (is_older && !c->suffix) ? c->number : -1;
  int is_fixed = c->suffix == 2 || is_tegra(capability) || is_tegra(c->number);
  if (!is_same && !(is_older && c->number / 10 == capability / 10 && !is_fixed))
    return -1;
  return 10000 + 10 * (c->number % 10) + c->suffix;
}

static int32_t choose(int32_t first, int32_t count, int32_t capability) {
  int32_t best = -1, rank = -1;
  for (int32_t i = first; i < first + count; i++) {
    int32_t own = rank_of(&net_cuda_plan.codes[i], capability);
    if (own > rank) {
      rank = own;
      best = i;
    }
  }
  return best;
}

static net_status refuse(net_handle *h, const kernel *k) {
  char names[256] = "";
  size_t used = 0;
  for (int32_t i = 0; i < k->codes && used < sizeof names; i++)
    used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                             net_cuda_plan.codes[k->first_code + i].name);
  return net_fail(h, NET_NO_DEVICE, "the library has code for %s, but this device is sm_%d; export it for this device",
                  names, (int)h->target.device->capability);
}

static net_status load(net_handle *h, int32_t chosen, const char *symbol, const char *name, void **function) {
  net_device *d = h->target.device;
  void **module = &d->modules[net_cuda_plan.codes[chosen].section];
  const char *call = "cuModuleLoadData";
  int status = CUDA_SUCCESS;
  char text[200];
  if (!*module)
    status = d->cuda->cuModuleLoadData(module, net_cuda_plan.sections[net_cuda_plan.codes[chosen].section]);
  if (status == CUDA_SUCCESS) {
    call = "cuModuleGetFunction";
    status = d->cuda->cuModuleGetFunction(function, *module, symbol);
  }
  snprintf(text, sizeof text, "%s, for kernel %s", call, name);
  return status == CUDA_SUCCESS ? NET_OK : net_device_fail(h, text, status);
}

static net_status load_kernel(net_handle *h, int32_t number) {
  net_device *d = h->target.device;
  const kernel *k = &net_cuda_plan.kernels[number];
  int most = 0;
  d->chosen[number] = choose(k->first_code, k->codes, d->capability);
  if (d->chosen[number] < 0)
    return refuse(h, k);
  d->cuda->cuDeviceGetAttribute(&most, ATTRIBUTE_SHARED_BYTES, d->device);
  if (most && k->shared_bytes > most)
    return net_fail(h, NET_NO_DEVICE,
                    "kernel %s needs %d bytes of shared memory, and a block of this device (sm_%d) has %d; export the "
                    "network for this device",
                    k->name, (int)k->shared_bytes, (int)d->capability, most);
  net_status status = load(h, d->chosen[number], k->symbol, k->name, &d->functions[number]);
  if (status != NET_OK || k->shared_bytes <= USUAL_SHARED_BYTES)
    return status;
  int told = d->cuda->cuFuncSetAttribute(d->functions[number], FUNCTION_DYNAMIC_SHARED, k->shared_bytes);
  return told == CUDA_SUCCESS ? NET_OK : net_device_fail(h, "cuFuncSetAttribute, shared memory", told);
}

static int decides(const net_driver *cuda) {
  return cuda->cuGraphCreate && cuda->cuGraphConditionalHandleCreate && cuda->cuGraphAddNode_v2 &&
         cuda->cuStreamBeginCaptureToGraph && cuda->cuStreamGetCaptureInfo_v2;
}

static net_status load_code(net_handle *h) {
  net_device *d = h->target.device;
  net_status status = NET_OK;
  for (int32_t i = 0; i < net_cuda_plan.kernel_count && status == NET_OK; i++)
    status = load_kernel(h, i);
  int32_t chosen = choose(net_cuda_plan.first_condition, net_cuda_plan.condition_count, d->capability);
  if (status == NET_OK && chosen >= 0 && decides(d->cuda))
    status = load(h, chosen, "set_condition", "set_condition", &d->setter);
  return status;
}

/* On a stream of its own: the default one would wait for others of the process. */
static net_status upload(net_handle *h) {
  net_device *d = h->target.device;
  size_t bytes = (size_t)net_cuda_plan.weight_bytes;
  void *stream = NULL;
  int status = d->cuda->cuMemAlloc_v2(&d->weights, bytes ? bytes : 1);
  if (status != CUDA_SUCCESS)
    return net_device_fail(h, "cuMemAlloc of the weights", status);
  status = d->cuda->cuStreamCreate(&stream, NON_BLOCKING_STREAM);
  if (status != CUDA_SUCCESS)
    return net_device_fail(h, "cuStreamCreate", status);
  if (bytes)
    status = d->cuda->cuMemcpyHtoDAsync_v2(d->weights, net_weights, bytes, stream);
  if (status == CUDA_SUCCESS)
    status = d->cuda->cuStreamSynchronize(stream);
  d->cuda->cuStreamDestroy_v2(stream);
  return status == CUDA_SUCCESS ? NET_OK : net_device_fail(h, "cuMemcpyHtoD of the weights", status);
}

/* The device of a number; -1 is that of the context that is current, or else the first one. */
static net_status find(net_handle *h, int number) {
  net_device *d = h->target.device;
  void *current = NULL;
  int count = 0, major = 0, minor = 0, status = d->cuda->cuDeviceGetCount(&count);
  if (status != CUDA_SUCCESS)
    return net_device_fail(h, "cuDeviceGetCount", status);
  if (count == 0)
    return net_fail(h, NET_NO_DEVICE, "the library needs a CUDA device, and this machine has none");
  if (number >= count)
    return net_fail(h, NET_NO_DEVICE, "there is no CUDA device %d, of %d", number, count);
  if (number < 0 && d->cuda->cuCtxGetCurrent(&current) == CUDA_SUCCESS && current)
    status = d->cuda->cuCtxGetDevice(&d->device);
  else
    status = d->cuda->cuDeviceGet(&d->device, number < 0 ? 0 : number);
  if (status != CUDA_SUCCESS)
    return net_device_fail(h, "cuDeviceGet", status);
  d->cuda->cuDeviceGetAttribute(&major, ATTRIBUTE_MAJOR, d->device);
  d->cuda->cuDeviceGetAttribute(&minor, ATTRIBUTE_MINOR, d->device);
  d->cuda->cuDeviceGetAttribute(&d->processors, ATTRIBUTE_PROCESSORS, d->device);
  d->capability = 10 * major + minor;
  return NET_OK;
}

static net_status fill(net_handle *h) {
  net_device *d = h->target.device;
  d->modules = net_zeros((size_t)net_cuda_plan.section_count, sizeof *d->modules);
  d->functions = net_zeros((size_t)net_cuda_plan.kernel_count, sizeof *d->functions);
  d->chosen = net_zeros((size_t)net_cuda_plan.kernel_count, sizeof *d->chosen);
  if (!d->modules || !d->functions || !d->chosen)
    return net_fail(h, NET_OUT_OF_MEMORY, "there is no memory for a handle");
  int status = d->cuda->cuDevicePrimaryCtxRetain(&d->context, d->device);
  if (status == CUDA_SUCCESS)
    status = d->cuda->cuCtxPushCurrent_v2(d->context);
  if (status != CUDA_SUCCESS)
    return net_device_fail(h, "cuDevicePrimaryCtxRetain", status);
  net_status found = load_code(h);
  if (found == NET_OK)
    found = upload(h);
  void *context;
  d->cuda->cuCtxPopCurrent_v2(&context);
  return found;
}

static void free_device(net_device *d) {
  if (d->context) {
    d->cuda->cuCtxPushCurrent_v2(d->context);
    for (int32_t i = 0; d->modules && i < net_cuda_plan.section_count; i++)
      if (d->modules[i])
        d->cuda->cuModuleUnload(d->modules[i]);
    if (d->weights)
      d->cuda->cuMemFree_v2(d->weights);
    void *context;
    d->cuda->cuCtxPopCurrent_v2(&context);
    d->cuda->cuDevicePrimaryCtxRelease_v2(d->device);
  }
  net_free(d->modules);
  net_free(d->functions);
  net_free(d->chosen);
  net_free(d);
}

static net_device *known(const net_device *wanted) {
  for (net_device *d = opened; d; d = d->next)
    if (d->device == wanted->device)
      return d;
  return NULL;
}

static net_status open_locked(net_handle *h, int number) {
  net_device *d = net_zeros(1, sizeof *d);
  if (!d)
    return net_fail(h, NET_OUT_OF_MEMORY, "there is no memory for a handle");
  h->target.device = d;
  d->cuda = net_find_driver(h->error, sizeof h->error);
  net_status status = d->cuda ? NET_OK : NET_NO_DEVICE;
  if (status == NET_OK) {
    int begun = d->cuda->cuInit(0);
    char words[256];
    net_say_status(d->cuda, begun, words, sizeof words);
    if (begun != CUDA_SUCCESS)
      status = net_fail(h, NET_NO_DEVICE, "the library needs a CUDA device, and the driver does not start: %s", words);
  }
  if (status == NET_OK)
    status = find(h, number);
  net_device *shared = status == NET_OK ? known(d) : NULL;
  if (status == NET_OK && !shared)
    status = fill(h);
  if (status != NET_OK || shared) {
    free_device(d);
    h->target.device = shared;
  } else {
    d->next = opened;
    opened = d;
  }
  if (h->target.device)
    h->target.device->users++;
  return status;
}

net_status net_open_device(net_handle *h, int number) {
  pthread_mutex_lock(&lock);
  net_status status = open_locked(h, number);
  pthread_mutex_unlock(&lock);
  return status;
}

void net_close_device(net_device *device) {
  pthread_mutex_lock(&lock);
  if (--device->users == 0) {
    net_device **at = &opened;
    while (*at != device)
      at = &(*at)->next;
    *at = device->next;
    free_device(device);
  }
  pthread_mutex_unlock(&lock);
}
