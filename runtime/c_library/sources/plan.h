/* The tables of one plan, which the exporter writes. */
#ifndef NET_PLAN_H
#define NET_PLAN_H

#include "net.h"

/* The value of a number that has none: a division by zero, or beyond 2^62. */
#define NET_NONE INT64_MIN
#define NET_LIMIT ((int64_t)1 << 62)
#define NET_MAX_BYTES ((int64_t)1 << 46)
#define NET_MAX_RANK 64

typedef enum { ADD, SUBTRACT, MULTIPLY, DIVIDE, MODULO, MAXIMUM, MINIMUM, BROADCAST, IF, DIVIDE_BY_ANY, MODULO_ANY } operation;

/* numbers[to] = numbers[a] operation numbers[b]; IF: numbers[b] where numbers[a] >= 0, else numbers[c]. */
typedef struct {
  int32_t operation, to, a, b, c;
} instruction;

typedef enum { ARENA, INPUT, OUTPUT, WEIGHT } buffer_kind;

/* `size` and `offset` are numbers; `offset` is that of a view in the buffer `view_of`, which is -1 for owners. */
typedef struct {
  int32_t kind, size, root, view_of, offset;
  int32_t align;
  int32_t first, last; /* the steps at which it is alive */
  int32_t halo;        /* the class whose buffers share slots, or -1 */
  int32_t fill;        /* the byte of halos */
  int32_t rewritten;   /* whether launches can write its border again */
  int64_t weight;      /* where it lies among the weights */
} buffer;

typedef struct {
  int32_t input, axis, number;
} symbol;

/* A tensor's `dims` are numbers; `texts` are their formulas, `needed_by` the layers that need them, or NULL. */
typedef struct {
  net_tensor known;
  int32_t buffer;
  int32_t is_squeezed;
  const int32_t *dims;
  const char *const *texts;
  const char *const *needed_by;
} tensor;

/* The least and the greatest length of one axis of an input, of a profile. */
typedef struct {
  int32_t profile, input, axis;
  int64_t least, most;
} length_range;

/* An output that is an input of the next run: `begins` is where its first value lies among the weights, or -1 for zeros. */
typedef struct {
  int32_t input, output;
  int64_t begins;
} state_pair;

typedef enum { EQUAL, EQUAL_OR_ONE, AT_LEAST, MULTIPLE } relation;

typedef struct {
  int32_t relation, left, right, where;
  const char *layer, *fault, *formulas;
} requirement;

typedef enum { FIXED, WHOLE, NARROW, POINTER, FIXED_NARROW, MAP } argument_kind;

/* FIXED, FIXED_NARROW: the bits numbers[a], 64 or 32; WHOLE, NARROW: numbers[a], of 64 or 32 bits; POINTER: into buffer a,
 * from byte numbers[b] on, numbers[c] bytes; MAP, of CUDA devices: a tensor in buffer a from byte numbers[b] on, as the map
 * c of the plan describes it. */
typedef struct {
  int32_t kind, a, b, c;
} argument;

/* Numbers that must not be less than 0, and what is touched, where a launch keeps one of its kernel's contracts. */
typedef struct {
  int32_t first_natural, naturals, first_extent, extents;
} contract;

/* Elements numbers[low] to numbers[high] behind a pointer, unless numbers[guard] is less than 0. */
typedef struct {
  int32_t argument, width, low, high, guard;
} extent;

typedef enum { NO_BARRIER = 1, SERIAL = 2, JUMP = 4, SIZE = 8, REQUIRE = 16 } row_flag;

typedef struct {
  int32_t kernel, flags, parameters, first_argument, arguments;
  int32_t is_proved;  /* without looking at its numbers */
  int32_t is_certain; /* whether every run comes to it */
  int32_t first_contract, contracts;
  int32_t first_written, written; /* buffers */
  int32_t first_border, borders, border_parameters;
  const char *layer;
} launch;

/* images, rows, bytes of a row, rows above, bytes beside: numbers. */
typedef struct {
  int32_t buffer, numbers[5];
} border;

typedef enum { LAUNCH, BRANCH, LOOP, SIZE_CHECK, REQUIREMENT, LENGTHS } step_kind;

/* Steps stand one behind the other, those inside of another behind it: from the next one to `middle` the first part
 * (then, before), from there to `end` the second (else, body). LAUNCH: a is its number. BRANCH, LOOP: a is a place.
 * SIZE_CHECK: of size a, by the place b or the number c. REQUIREMENT: of the place a, or never where that is -1, with
 * `message`. LENGTHS: requirement a. */
typedef struct {
  int32_t kind, a, b, c, middle, end;
  const char *message;
} step;

typedef struct {
  int32_t buffer, offset, bytes;
} place;

/* A feature of processors. x86-64: a leaf of CPUID, a register of it, and the bit. Arm under Linux: a word of the auxiliary
   vector and the bit, or, as `which`, the bits of a register of SVE; under macOS what is asked for, or "". */
typedef struct {
  const char *name;
  uint32_t leaf, subleaf, which, bit;
  const char *asked;
} feature;

typedef struct {
  const int64_t *initial_numbers;
  int32_t number_count;
  const instruction *code;
  int32_t code_count;
  const symbol *symbols;
  int32_t symbol_count;
  const int32_t *size_numbers; /* of the sizes that only a run tells */
  const char *const *size_names;
  int32_t size_count;
  int32_t parts; /* the number of parts of a launch, or -1 */
  const tensor *inputs;
  int32_t input_count;
  int32_t counts_runs; /* whether the last input is the number of runs before */
  const tensor *outputs;
  int32_t output_count;
  const int32_t *shown_inputs; /* those that callers give, and `shown_outputs` those that they get */
  int32_t shown_input_count;
  const int32_t *shown_outputs;
  int32_t shown_output_count;
  const state_pair *states;
  int32_t state_count;
  const length_range *ranges;
  int32_t range_count, profile_count;
  const requirement *requirements;
  int32_t requirement_count; /* those of every run; others belong to steps */
  const buffer *buffers;
  int32_t buffer_count;
  int32_t class_count;
  const launch *launches;
  int32_t launch_count;
  int32_t parameter_count; /* words of all launches and their borders */
  const argument *arguments;
  const contract *contracts;
  const extent *extents;
  const int32_t *naturals;
  const int32_t *written;
  const border *borders;
  const int32_t *border_writers; /* borders by launch */
  int32_t border_count;
  const step *steps;
  int32_t step_count;
  const place *places;
  int32_t place_count;
  const feature *features;
  int32_t feature_count;
  int32_t needs_matrix_unit;
  void *const *kernels;
} plan;

extern const plan net_plan;
extern const unsigned char net_weights[];

#endif
