/* Stands for the CUDA driver where there is no device: memory of the device is memory of the host, work is done when it is
 * queued, and what is asked for is written to a log, one line each. Both runtimes use it: the Python one through ctypes, C
 * libraries as the libcuda.so.1 that they find.
 *
 * FAKE_CUDA_LOG names the log, FAKE_CUDA_KERNELS a file with a line for each kernel: its symbol and the kinds of its
 * arguments (ptr, map, i64, i32, f32, f64). Addresses are written as the number of an allocation and a place in it.
 * FAKE_CUDA_CAPABILITY (90), FAKE_CUDA_DEVICES (1), FAKE_CUDA_SHARED (0: not told): what there is; FAKE_CUDA_FILL (171): the
 * byte of fresh memory, which stays where kernels that nobody knows would write; FAKE_CUDA_FAILS=NAME:N lets the Nth call of
 * a function fail. With -DOLD there are no graphs that decide.
 */
#include "fake_cuda.h"

#include <stdarg.h>

#define MAX_ALLOCATIONS 4096
#define MAX_KERNELS 4096

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

int fake_alive[KINDS];

static allocation allocations[MAX_ALLOCATIONS];
static signature signatures[MAX_KERNELS];
static int counts[2], signature_count, begun;
static FILE *journal;

void fake_say(const char *form, ...) {
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
  signature_count = 0;
  fake_count_anew();
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
int fake_fails(const char *name) {
  static int calls;
  const char *wanted = getenv("FAKE_CUDA_FAILS");
  size_t length = strlen(name);
  return wanted && strncmp(wanted, name, length) == 0 && wanted[length] == ':' && ++calls == atoi(wanted + length + 1);
}

const char *fake_name(address a, char *text) {
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

const char *fake_kinds(const char *symbol) {
  for (int i = 0; i < signature_count; i++)
    if (strcmp(signatures[i].symbol, symbol) == 0)
      return signatures[i].kinds;
  return strcmp(symbol, "set_condition") == 0 ? "i64,ptr,i32" : "";
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
      memset(one->start, number_of("FAKE_CUDA_FILL", 0xab), bytes);
      one->bytes = bytes;
      one->kind = kind;
      one->number = ++counts[kind == 'p'];
      *found = one->start;
      fake_say("allocate %c%d %zu", kind, one->number, bytes);
      return 0;
    }
  return 2;
}

static int release(address a) {
  for (int i = 0; i < MAX_ALLOCATIONS; i++)
    if (allocations[i].start && (address)(uintptr_t)allocations[i].start == a) {
      fake_say("free %c%d", allocations[i].kind, allocations[i].number);
      memset(allocations[i].start, 0xcd, allocations[i].bytes);
      free(allocations[i].memory);
      memset(&allocations[i], 0, sizeof allocations[i]);
      return 0;
    }
  fake_say("ERROR: free of what is not there");
  return 1;
}

CALL cuInit(unsigned flags) {
  if (!begun)
    fake_begin(getenv("FAKE_CUDA_LOG"), getenv("FAKE_CUDA_KERNELS"));
  return (int)flags + (fake_fails("cuInit") ? 100 : 0);
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
  fake_alive[CONTEXTS]++;
  return 0;
}
CALL cuDevicePrimaryCtxRelease_v2(int device) {
  (void)device;
  fake_alive[CONTEXTS]--;
  return 0;
}
static _Thread_local void *stack[64];
static _Thread_local int current_depth;
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
int fake_is_current(void) {
  if (!stack[current_depth])
    fake_say("ERROR: no context is current");
  return stack[current_depth] != NULL;
}

CALL cuMemAlloc_v2(address *found, size_t bytes) {
  void *memory = NULL;
  if (!fake_is_current() || fake_fails("cuMemAlloc"))
    return 2;
  int status = allocate(&memory, bytes, 'm');
  *found = (address)(uintptr_t)memory;
  return status;
}
CALL cuMemFree_v2(address a) { return release(a); }
CALL cuMemHostAlloc(void **found, size_t bytes, unsigned flags) {
  (void)flags;
  return fake_fails("cuMemHostAlloc") ? 2 : allocate(found, bytes, 'p');
}
CALL cuMemFreeHost(void *memory) { return release((address)(uintptr_t)memory); }
CALL cuPointerGetAttributes(unsigned count, int *attributes, void **values, address a) {
  char text[64];
  (void)count, (void)attributes;
  *(int *)values[0] = fake_name(a, text)[0] == 'p' ? 1 : text[0] == 'm' ? 2 : 0;
  return 0;
}

CALL cuModuleGetLoadingMode(int *mode) {
  *mode = 1;
  return 0;
}
CALL cuModuleLoadData(void **module, const void *image) {
  if (!fake_is_current() || fake_fails("cuModuleLoadData"))
    return FAILED;
  *module = malloc(1);
  fake_alive[MODULES]++;
  fake_say("module %s", memcmp(image, "\x7f" "ELF", 4) ? "ptx" : "cubin");
  return 0;
}
CALL cuModuleUnload(void *module) {
  free(module);
  fake_alive[MODULES]--;
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
  fake_say("attribute %s %d %d", ((function *)given)->symbol, attribute, value);
  return 0;
}

CALL cuMemcpyHtoDAsync_v2(address to, const void *from, size_t bytes, void *where) {
  char one[64], other[64];
  (void)where;
  if (!fake_is_current() || fake_fails("cuMemcpyHtoD"))
    return FAILED;
  fake_say("h2d %s %s %zu %08x", fake_name(to, one), fake_name((address)(uintptr_t)from, other), bytes, digest(from, bytes));
  memcpy((void *)(uintptr_t)to, from, bytes);
  return 0;
}
CALL cuMemcpyDtoHAsync_v2(void *to, address from, size_t bytes, void *where) {
  char one[64], other[64];
  (void)where;
  if (!fake_is_current() || fake_fails("cuMemcpyDtoH"))
    return FAILED;
  fake_say("d2h %s %s %zu", fake_name((address)(uintptr_t)to, one), fake_name(from, other), bytes);
  memcpy(to, (const void *)(uintptr_t)from, bytes);
  return 0;
}
CALL cuMemcpyDtoDAsync_v2(address to, address from, size_t bytes, void *where) {
  char one[64], other[64];
  if (fake_captures(where, to, from, 0, bytes))
    return 0;
  fake_say("d2d %s %s %zu", fake_name(to, one), fake_name(from, other), bytes);
  memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
  return fake_is_current() ? 0 : FAILED;
}
CALL cuMemsetD8Async(address to, unsigned char byte, size_t bytes, void *where) {
  char one[64];
  if (fake_captures(where, to, 0, byte, bytes))
    return 0;
  fake_say("fill %s %d %zu", fake_name(to, one), byte, bytes);
  memset((void *)(uintptr_t)to, byte, bytes);
  return fake_is_current() ? 0 : FAILED;
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
  fake_name((address)(uintptr_t)at, name);
  fake_say("map %s element %d swizzle %d promotion %d %s", name, element, swizzle, promotion, text);
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

/* What has not been given back. */
__attribute__((destructor)) static void end(void) {
  int left = 0;
  for (int i = 0; i < MAX_ALLOCATIONS; i++)
    left += allocations[i].start != NULL;
  fake_say("left %d allocations, %d modules, %d streams, %d events, %d graphs, %d executables, %d contexts", left,
           fake_alive[MODULES], fake_alive[STREAMS], fake_alive[EVENTS], fake_alive[GRAPHS], fake_alive[EXECUTABLES], fake_alive[CONTEXTS]);
  free(functions);
  if (journal)
    fclose(journal);
}
