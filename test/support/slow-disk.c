// Lets the disk take its time: preloaded into a daemon, every sync takes up to a tenth of a second longer. What is told before it
// is on the disk, and tests that count on a fast one, are found by that and by nothing else.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#define SLOW(name) \
  int name(int file) { \
    static int (*real)(int); \
    if (!real) real = dlsym(RTLD_NEXT, #name); \
    usleep(rand() % 100000); \
    return real(file); \
  }

SLOW(fsync)
SLOW(fdatasync)
