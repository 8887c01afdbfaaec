#pragma once
struct timespec {
  long tv_sec, tv_nsec;
};
enum { CLOCK_MONOTONIC = 6 };
int clock_gettime(int clock, struct timespec *time);
