/* Finds the CUDA driver. */
#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static net_driver driver;
static int is_found;

/* An address of code as a pointer of any kind. */
static void set(void *library, const char *name, void *place) {
  void *found = dlsym(library, name);
  memcpy(place, &found, sizeof found);
}

const net_driver *net_find_driver(char *error, size_t room) {
  if (is_found)
    return &driver;
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    snprintf(error, room, "the library needs a CUDA device, and there is no CUDA driver here (libcuda.so.1)");
    return NULL;
  }
#define FIND_CALL(name, parameters) set(library, #name, &driver.name);
#define NEED_CALL(name, parameters)                                                                                   \
  if (!driver.name) {                                                                                                 \
    snprintf(error, room, "the CUDA driver is too old: it lacks %s", #name);                                          \
    return NULL;                                                                                                      \
  }
  DRIVER_CALLS(FIND_CALL)
  LATER_DRIVER_CALLS(FIND_CALL)
  DRIVER_CALLS(NEED_CALL)
  is_found = 1;
  return &driver;
}

void net_say_status(const net_driver *cuda, int status, char *text, size_t room) {
  const char *name = NULL, *words = NULL;
  cuda->cuGetErrorName(status, &name);
  cuda->cuGetErrorString(status, &words);
  snprintf(text, room, "%s (%d): %s", name ? name : "unknown error", status, words ? words : "");
}
