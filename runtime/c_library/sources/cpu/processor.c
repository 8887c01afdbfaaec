/* Whether this processor, and its system, have what the object code of the plan uses. */
#define _GNU_SOURCE
#include "handle.h"

#include <stdio.h>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif
#ifdef __linux__
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA): the registers of the matrix unit. */
enum { REQUEST_PERMISSION = 0x1023, MATRIX_REGISTERS = 18 };

#if defined(__x86_64__)
/* What the system has to save for registers of 256 and of 512 bits. */
enum { SAVES_256 = 0x6, SAVES_512 = 0xe6, OSXSAVE_BIT = 27 };

static uint64_t saved_state(void) {
  uint32_t low, high, a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> OSXSAVE_BIT & 1))
    return 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

static int starts_with(const char *text, const char *start) {
  while (*start && *text == *start)
    text++, start++;
  return !*start;
}

static int is_saved(const feature *f, uint64_t state) {
  if (starts_with(f->name, "avx512"))
    return (state & SAVES_512) == SAVES_512;
  if (starts_with(f->name, "avx") || starts_with(f->name, "f16c") || starts_with(f->name, "fma"))
    return (state & SAVES_256) == SAVES_256;
  return 1;
}

static int has(const feature *f) {
  uint32_t registers[4];
  if (!__get_cpuid_count(f->leaf, f->subleaf, &registers[0], &registers[1], &registers[2], &registers[3]))
    return 0;
  return (registers[f->which] >> f->bit & 1) && is_saved(f, saved_state());
}
#elif defined(__APPLE__)
/* All of Apple's processors have NEON; others are asked for by Arm's names. */
static int has(const feature *f) {
  int value = 0;
  size_t size = sizeof value;
  return !*f->asked || (sysctlbyname(f->asked, &value, &size, NULL, 0) == 0 && value);
}
#elif defined(__aarch64__) && defined(__linux__)
/* prctl(PR_SVE_GET_VL): bytes of a register, as threads of this process have it, and flags. */
enum { SVE_GET_VL = 51, SVE_LENGTH = 0xffff };

static int has(const feature *f) {
  if (f->which) {
    int found = prctl(SVE_GET_VL, 0, 0, 0, 0);
    return found > 0 && 8 * (uint32_t)(found & SVE_LENGTH) == f->which;
  }
  return getauxval(f->leaf) >> f->bit & 1;
}
#else
#error "there is no test for the features of this processor"
#endif

static int allows_matrix_unit(void) {
#if defined(__linux__) && defined(__x86_64__)
  return syscall(SYS_arch_prctl, REQUEST_PERMISSION, MATRIX_REGISTERS) == 0;
#else
  return 0;
#endif
}

net_status net_check_processor(char *error, size_t room) {
  for (int32_t i = 0; i < net_plan.feature_count; i++) {
    const feature *f = &net_plan.features[i];
    if (!has(f)) {
      snprintf(error, room, "the library was made for processors with %s, which this one, or its system, lacks", f->name);
      return NET_WRONG_PROCESSOR;
    }
  }
  if (net_plan.needs_matrix_unit && !allows_matrix_unit()) {
    snprintf(error, room, "the library needs the processor's matrix unit (amx-int8), which this system does not allow");
    return NET_WRONG_PROCESSOR;
  }
  return NET_OK;
}
