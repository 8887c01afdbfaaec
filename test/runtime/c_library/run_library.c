/* Runs an exported network: run_library THREADS HANDLES RUNS KEEP [INPUT_FILE SHAPE]..
 *
 * Each handle lives in a thread of its own and makes so many runs; all have to give the same bytes, unless KEEP is 2. With
 * KEEP the outputs stay with the handle, else they are in memory that begins at an odd place. Those of the last run are
 * written to output_N.bin, and their shapes to the standard output. With a KEEP of 3 the state begins anew before the last.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net.h"

#define MAX_TENSORS 64

typedef struct {
  int threads, runs, keeps;
  int rank[MAX_TENSORS];
  int64_t shape[MAX_TENSORS][64];
  void *inputs[MAX_TENSORS];
  void *outputs[MAX_TENSORS];
  size_t bytes[MAX_TENSORS];
  int64_t output_shape[MAX_TENSORS][64];
  int output_rank[MAX_TENSORS];
  int status;
  char error[1024];
} job;

static void *read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file)
    exit(70);
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  void *memory = malloc((size_t)size + 1);
  if (!memory || fread(memory, 1, (size_t)size, file) != (size_t)size)
    exit(71);
  fclose(file);
  return memory;
}

static net_status fetch(job *j, net_handle *handle, void *const *outputs) {
  for (int i = 0; i < net_output_count(); i++) {
    net_status status = net_output_shape(handle, i, j->output_shape[i], &j->output_rank[i]);
    if (status == NET_OK)
      status = net_output_bytes(handle, i, &j->bytes[i]);
    if (status != NET_OK)
      return status;
    if (outputs[i] && outputs[i] != net_output_data(handle, i))
      exit(72);
    void *copy = malloc(j->bytes[i] + 1);
    memcpy(copy, net_output_data(handle, i), j->bytes[i]);
    if (j->keeps < 2 && j->outputs[i] && memcmp(copy, j->outputs[i], j->bytes[i]) != 0)
      exit(73);
    free(j->outputs[i]);
    j->outputs[i] = copy;
  }
  return NET_OK;
}

static net_status run_once(job *j, net_handle *handle) {
  void *outputs[MAX_TENSORS] = {NULL}, *memory[MAX_TENSORS] = {NULL};
  for (int i = 0; i < net_output_count() && !j->keeps; i++) {
    size_t bytes;
    if (net_output(i)->follows_data)
      continue;
    net_status status = net_output_bytes(handle, i, &bytes);
    if (status != NET_OK)
      return status;
    memory[i] = malloc(bytes + 2);
    outputs[i] = (char *)memory[i] + 1;
  }
  net_status status = net_run(handle, (const void *const *)j->inputs, outputs);
  if (status == NET_OK)
    status = fetch(j, handle, outputs);
  for (int i = 0; i < MAX_TENSORS; i++)
    free(memory[i]);
  return status;
}

static void *work(void *given) {
  job *j = given;
  net_handle *handle;
  net_status status = net_create(&handle, j->threads);
  for (int i = 0; status == NET_OK && i < net_input_count(); i++)
    status = net_set_input_shape(handle, i, j->shape[i], j->rank[i]);
  for (int k = 0; status == NET_OK && k < j->runs; k++) {
    if (j->keeps == 3 && k == j->runs - 1)
      net_reset_state(handle);
    status = run_once(j, handle);
  }
  j->status = status;
  snprintf(j->error, sizeof j->error, "%s", status == NET_OK ? "" : net_error(handle));
  net_destroy(handle);
  return NULL;
}

static int report(const job *j) {
  if (j->status != NET_OK) {
    printf("status %d: %s\n", j->status, j->error);
    return 1;
  }
  for (int i = 0; i < net_output_count(); i++) {
    char path[32];
    snprintf(path, sizeof path, "output_%d.bin", i);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(j->outputs[i], 1, j->bytes[i], file) != j->bytes[i] || fclose(file) != 0)
      exit(74);
    printf("%s", net_output(i)->name);
    for (int axis = 0; axis < j->output_rank[i]; axis++)
      printf(" %" PRId64, j->output_shape[i][axis]);
    printf("\n");
  }
  return 0;
}

int main(int count, char **arguments) {
  job first = {.threads = atoi(arguments[1]), .runs = atoi(arguments[3]), .keeps = atoi(arguments[4])};
  int handles = atoi(arguments[2]), tensors = (count - 5) / 2;
  if (tensors != net_input_count() || tensors > MAX_TENSORS || net_output_count() > MAX_TENSORS)
    return 75;
  for (int i = 0; i < tensors; i++) {
    first.inputs[i] = read_file(arguments[5 + 2 * i]);
    for (char *at = arguments[6 + 2 * i]; *at; at += *at == ',')
      first.shape[i][first.rank[i]++] = strtoll(at, &at, 10);
  }
  job *jobs = calloc((size_t)handles, sizeof *jobs);
  pthread_t *threads = calloc((size_t)handles, sizeof *threads);
  for (int k = 0; k < handles; k++) {
    jobs[k] = first;
    if (pthread_create(&threads[k], NULL, work, &jobs[k]) != 0)
      return 76;
  }
  for (int k = 0; k < handles; k++)
    pthread_join(threads[k], NULL);
  int code = report(&jobs[0]);
  for (int k = 0; k < handles; k++) {
    for (int i = 0; code == 0 && i < net_output_count(); i++)
      if (jobs[k].bytes[i] != jobs[0].bytes[i] || memcmp(jobs[k].outputs[i], jobs[0].outputs[i], jobs[0].bytes[i]) != 0)
        code = 77;
    for (int i = 0; i < MAX_TENSORS && k > 0; i++)
      free(jobs[k].outputs[i]);
  }
  for (int i = 0; i < MAX_TENSORS; i++) {
    free(jobs[0].outputs[i]);
    free(first.inputs[i]);
  }
  free(jobs);
  free(threads);
  return code;
}
