// Makes system calls fail on command. Preloaded into a daemon, it stands before the C library, so that what Node, libuv and
// SQLite ask of the kernel fails alike. The file that FAULTS names is mapped: a test writes there what shall fail, and reads
// how often it did. The shapes of both are in faults.ts.

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum kind { SPAWN, OPEN, ACCEPT, CONNECT, FSYNC, RENAME, THREAD, LOOKUP, KINDS };

struct fault {
  _Atomic int error;    // errno; 0 is none
  _Atomic int skip;     // calls that still succeed
  _Atomic int times;    // calls that still fail; negative is without end
  _Atomic int permille; // of the calls
  _Atomic unsigned chance;
  _Atomic int failed;
  _Atomic int seen;
  int unused;
};

static struct fault *faults;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("FAULTS");
  int (*really_open)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
  int file = path ? really_open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *map = mmap(NULL, KINDS * sizeof(struct fault), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (map != MAP_FAILED) faults = map;
}

static int fails(enum kind kind) {
  if (!faults) return 0;
  struct fault *fault = &faults[kind];
  int error = fault->error;
  fault->seen++;
  if (error == 0) return 0;
  if (fault->skip > 0 && fault->skip-- > 0) return 0;
  unsigned chance = fault->chance = fault->chance * 1664525u + 1013904223u;
  if ((int)((chance >> 8) % 1000) >= fault->permille) return 0;
  if (fault->times == 0) return 0;
  if (fault->times > 0 && fault->times-- <= 0) return 0;
  fault->failed++;
  errno = error;
  return error;
}

#define REAL(name, result, ...) \
  static result (*real)(__VA_ARGS__); \
  if (!real) real = dlsym(RTLD_NEXT, name)

pid_t fork(void) {
  REAL("fork", pid_t, void);
  return fails(SPAWN) ? -1 : real();
}

#define MODE \
  mode_t mode = 0; \
  if (flags & (O_CREAT | O_TMPFILE)) { \
    va_list rest; \
    va_start(rest, flags); \
    mode = va_arg(rest, mode_t); \
    va_end(rest); \
  }

int open(const char *path, int flags, ...) {
  MODE;
  REAL("open", int, const char *, int, ...);
  return fails(OPEN) ? -1 : real(path, flags, mode);
}
int open64(const char *path, int flags, ...) {
  MODE;
  REAL("open64", int, const char *, int, ...);
  return fails(OPEN) ? -1 : real(path, flags, mode);
}
int scandir(const char *path, struct dirent ***names, int (*wanted)(const struct dirent *),
            int (*order)(const struct dirent **, const struct dirent **)) {
  REAL("scandir", int, const char *, struct dirent ***, int (*)(const struct dirent *),
       int (*)(const struct dirent **, const struct dirent **));
  return fails(OPEN) ? -1 : real(path, names, wanted, order);
}
int scandir64(const char *path, struct dirent64 ***names, int (*wanted)(const struct dirent64 *),
              int (*order)(const struct dirent64 **, const struct dirent64 **)) {
  REAL("scandir64", int, const char *, struct dirent64 ***, int (*)(const struct dirent64 *),
       int (*)(const struct dirent64 **, const struct dirent64 **));
  return fails(OPEN) ? -1 : real(path, names, wanted, order);
}
DIR *opendir(const char *path) {
  REAL("opendir", DIR *, const char *);
  return fails(OPEN) ? NULL : real(path);
}
int accept4(int listener, struct sockaddr *address, socklen_t *length, int flags) {
  REAL("accept4", int, int, struct sockaddr *, socklen_t *, int);
  int taken = real(listener, address, length, flags);
  // The connection stays in the line of the kernel when it cannot be accepted; here it is gone, as after ECONNABORTED.
  if (taken < 0 || !fails(ACCEPT)) return taken;
  int error = errno;
  close(taken);
  errno = error;
  return -1;
}
int connect(int socket, const struct sockaddr *address, socklen_t length) {
  REAL("connect", int, int, const struct sockaddr *, socklen_t);
  return fails(CONNECT) ? -1 : real(socket, address, length);
}
int fsync(int file) {
  REAL("fsync", int, int);
  return fails(FSYNC) ? -1 : real(file);
}
int fdatasync(int file) {
  REAL("fdatasync", int, int);
  return fails(FSYNC) ? -1 : real(file);
}
int rename(const char *from, const char *to) {
  REAL("rename", int, const char *, const char *);
  return fails(RENAME) ? -1 : real(from, to);
}
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *given) {
  REAL("pthread_create", int, pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  int error = fails(THREAD);
  return error ? error : real(thread, attributes, start, given);
}
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
  REAL("getaddrinfo", int, const char *, const char *, const struct addrinfo *, struct addrinfo **);
  return fails(LOOKUP) ? EAI_AGAIN : real(node, service, hints, found);
}
