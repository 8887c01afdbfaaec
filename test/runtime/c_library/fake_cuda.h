/* What the parts of the fake driver share; see fake_cuda.c. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL __attribute__((visibility("default"))) int
#define FAILED 719

typedef uint64_t address;

typedef struct {
  char symbol[200];
  int shared;
} function;

enum { MODULES, STREAMS, EVENTS, GRAPHS, EXECUTABLES, CONTEXTS, KINDS };

/* How many of each kind have not been given back. */
extern int fake_alive[KINDS];

/* Lets conditions of graphs be numbered from 0 on. */
void fake_count_anew(void);

/* Notes a copy, or a fill from nowhere, where a stream is captured; 0 where it is not. */
int fake_captures(void *where, address to, address from, unsigned char byte, size_t bytes);

/* Writes a line of the log. */
void fake_say(const char *form, ...) __attribute__((format(printf, 1, 2)));

/* Whether this call of a function is the one that fails. */
int fake_fails(const char *name);

/* Whether a context is current, without which no call makes sense. */
int fake_is_current(void);

/* An address as the number of an allocation and a place in it. */
const char *fake_name(address a, char *text);

/* The kinds of a kernel's arguments. */
const char *fake_kinds(const char *symbol);

#endif
