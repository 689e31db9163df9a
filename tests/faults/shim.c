/* Makes the file system fail on purpose. Loaded with LD_PRELOAD by shim.py, which documents the settings.
 *
 * Every call that changes a file or folder at or below EVERT_FAULT_DIR takes the next number of one counter,
 * which lies in a mapped file: all threads and child processes share it, and it outlives a SIGKILL. When the
 * number is EVERT_FAULT_AT, EVERT_FAULT_KIND says what happens. Writes through a mapping are not seen.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name)                                                      \
    ({                                                                  \
        static __typeof__(&name) found;                                 \
        if (!found) found = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
        found;                                                          \
    })

/* What a call asks of a disk: room for bytes, room for a name or for blocks, or nothing that can run out. */
enum needs { BYTES, ROOM, NOTHING };
enum verdict { PASS, HALF, FAIL };
enum kind { COUNT_ONLY, ONE_EIO, ONE_ENOSPC, DISK_FULL, KILL, SHORT_WRITE };

struct shared {
    _Atomic uint64_t calls;
    _Atomic uint64_t short_writes;
};

static struct shared *shared;
static char folder[PATH_MAX];
static size_t folder_length;
static uint64_t fault_at;
static enum kind fault_kind;
static int log_file = -1;

static enum kind kind_named(const char *name) {
    if (!name || !*name) return COUNT_ONLY;
    if (!strcmp(name, "EIO")) return ONE_EIO;
    if (!strcmp(name, "ENOSPC")) return ONE_ENOSPC;
    if (!strcmp(name, "ENOSPC+")) return DISK_FULL;
    if (!strcmp(name, "KILL")) return KILL;
    if (!strcmp(name, "SHORT")) return SHORT_WRITE;
    fprintf(stderr, "shim: EVERT_FAULT_KIND=%s is unknown\n", name);
    _exit(97);
}

/* Called when the library is loaded, and again by a forked child that was given settings of its own. */
__attribute__((constructor)) void evert_fault_begin(void) {
    const char *dir = getenv("EVERT_FAULT_DIR"), *counter = getenv("EVERT_FAULT_COUNTER");
    const char *at = getenv("EVERT_FAULT_AT"), *log = getenv("EVERT_FAULT_LOG");
    if (!dir || !counter || !realpath(dir, folder)) return;
    folder_length = strlen(folder);
    fault_at = at ? strtoull(at, NULL, 10) : 0;
    fault_kind = kind_named(getenv("EVERT_FAULT_KIND"));
    if (log && *log)
        log_file = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int file = syscall(SYS_openat, AT_FDCWD, counter, O_RDWR | O_CLOEXEC, 0);
    void *map = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || map == MAP_FAILED) {
        perror("shim: the counter cannot be mapped");
        _exit(97);
    }
    close(file);
    shared = map;
}

static int below(const char *path) {
    return !strncmp(path, folder, folder_length) && (path[folder_length] == '/' || !path[folder_length]);
}

/* Both give an absolute path in `out` (PATH_MAX bytes), or an empty one if there is none. */
static const char *path_of(int fd, char *out) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, out, PATH_MAX - 1);
    out[length < 0 ? 0 : length] = 0;
    return out;
}

static const char *path_at(int dir, const char *path, char *out) {
    char joined[PATH_MAX], parent[PATH_MAX], base[PATH_MAX] = "";
    *out = 0;
    if (path[0] == '/')
        snprintf(joined, sizeof joined, "%s", path);
    else {
        if (dir == AT_FDCWD ? !getcwd(base, sizeof base) : !*path_of(dir, base)) return out;
        if ((size_t)snprintf(joined, sizeof joined, "%s/%s", base, path) >= sizeof joined) return out;
    }
    /* The last part is not resolved: rename and unlink act on a link, not on what it points to. */
    char *slash = strrchr(joined, '/');
    *slash = 0;
    if (!realpath(*joined ? joined : "/", parent)) return out;
    if ((size_t)snprintf(out, PATH_MAX, "%s/%s", parent[1] ? parent : "", slash + 1) >= PATH_MAX) *out = 0;
    return out;
}

static enum verdict fail(int error) {
    errno = error;
    return FAIL;
}

static enum verdict decide(uint64_t number, enum needs needs) {
    if (!fault_at || number < fault_at) return PASS;
    int exactly = number == fault_at;
    switch (fault_kind) {
    case ONE_EIO:
        return exactly ? fail(EIO) : PASS;
    case ONE_ENOSPC:
        return exactly ? fail(ENOSPC) : PASS;
    case DISK_FULL:
        return needs == NOTHING ? PASS : fail(ENOSPC);
    case KILL:
        if (exactly) {
            kill(getpid(), SIGKILL);
            for (;;) pause();
        }
        return PASS;
    case SHORT_WRITE:
        if (needs != BYTES) return PASS;
        switch (atomic_fetch_add(&shared->short_writes, 1)) {
        case 0:
            return HALF;
        case 1:
            return fail(ENOSPC);
        default:
            return PASS;
        }
    default:
        return PASS;
    }
}

static enum verdict judge(const char *path, enum needs needs) {
    if (!*path || !below(path)) return PASS;
    return decide(atomic_fetch_add(&shared->calls, 1) + 1, needs);
}

static enum verdict judge_fd(int fd, enum needs needs) {
    if (!shared) return PASS;
    int before = errno;
    char path[PATH_MAX];
    enum verdict verdict = judge(path_of(fd, path), needs);
    if (verdict != FAIL) errno = before;
    return verdict;
}

static void record(const char *what, long long size, const char *path, const char *other) {
    char line[2 * PATH_MAX + 64];
    if (log_file < 0 || !below(path)) return;
    int before = errno;
    int length = snprintf(line, sizeof line, "%s\t%lld\t%s%s%s\n", what, size, path, *other ? "\t" : "", other);
    if (syscall(SYS_write, log_file, line, (size_t)length) != length) _exit(98);
    errno = before;
}

#define HALF_OF(count) ((count) > 1 ? (count) / 2 : (count))

ssize_t write(int fd, const void *bytes, size_t count) {
    enum verdict verdict = judge_fd(fd, BYTES);
    if (verdict == FAIL) return -1;
    return REAL(write)(fd, bytes, verdict == HALF ? HALF_OF(count) : count);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
    enum verdict verdict = judge_fd(fd, BYTES);
    if (verdict == FAIL) return -1;
    return REAL(pwrite)(fd, bytes, verdict == HALF ? HALF_OF(count) : count, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
    enum verdict verdict = judge_fd(fd, BYTES);
    if (verdict == FAIL) return -1;
    return REAL(pwrite64)(fd, bytes, verdict == HALF ? HALF_OF(count) : count, offset);
}

ssize_t sendfile(int to, int from, off_t *offset, size_t count) {
    enum verdict verdict = judge_fd(to, BYTES);
    if (verdict == FAIL) return -1;
    return REAL(sendfile)(to, from, offset, verdict == HALF ? HALF_OF(count) : count);
}

ssize_t sendfile64(int to, int from, off64_t *offset, size_t count) {
    enum verdict verdict = judge_fd(to, BYTES);
    if (verdict == FAIL) return -1;
    return REAL(sendfile64)(to, from, offset, verdict == HALF ? HALF_OF(count) : count);
}

ssize_t copy_file_range(int from, off64_t *out_of, int to, off64_t *into, size_t count, unsigned flags) {
    enum verdict verdict = judge_fd(to, BYTES);
    if (verdict == FAIL) return -1;
    return REAL(copy_file_range)(from, out_of, to, into, verdict == HALF ? HALF_OF(count) : count, flags);
}

/* A vector cut to half its bytes: the parts that fit, the last of them shortened. */
static int halve(const struct iovec *vector, int count, struct iovec *half) {
    size_t total = 0;
    for (int i = 0; i < count; i++) total += vector[i].iov_len;
    size_t left = HALF_OF(total);
    int used = 0;
    for (int i = 0; i < count && left; i++) {
        half[used] = vector[i];
        if (half[used].iov_len > left) half[used].iov_len = left;
        left -= half[used++].iov_len;
    }
    return used;
}

#define VECTOR_CALL(name, signature, ...)                                \
    ssize_t name signature {                                             \
        struct iovec half[IOV_MAX];                                      \
        enum verdict verdict = judge_fd(fd, BYTES);                      \
        if (verdict == FAIL) return -1;                                  \
        if (verdict == HALF && count > 0 && count <= IOV_MAX) {          \
            count = halve(vector, count, half);                          \
            vector = half;                                               \
        }                                                                \
        return REAL(name)(fd, vector, count __VA_OPT__(, ) __VA_ARGS__); \
    }

VECTOR_CALL(writev, (int fd, const struct iovec *vector, int count))
VECTOR_CALL(pwritev, (int fd, const struct iovec *vector, int count, off_t offset), offset)
VECTOR_CALL(pwritev64, (int fd, const struct iovec *vector, int count, off64_t offset), offset)
VECTOR_CALL(pwritev2, (int fd, const struct iovec *vector, int count, off_t offset, int flags), offset, flags)
VECTOR_CALL(pwritev64v2, (int fd, const struct iovec *vector, int count, off64_t offset, int flags), offset,
            flags)

static int synced(int fd, const char *what, int (*real)(int)) {
    if (judge_fd(fd, NOTHING) == FAIL) return -1;
    int result = real(fd);
    struct stat64 status;
    char path[PATH_MAX];
    if (!result && shared && !fstat64(fd, &status)) record(what, status.st_size, path_of(fd, path), "");
    return result;
}

int fsync(int fd) { return synced(fd, "fsync", REAL(fsync)); }
int fdatasync(int fd) { return synced(fd, "fdatasync", REAL(fdatasync)); }

int sync_file_range(int fd, off64_t offset, off64_t count, unsigned flags) {
    return judge_fd(fd, NOTHING) == FAIL ? -1 : REAL(sync_file_range)(fd, offset, count, flags);
}

static enum needs needs_to_resize(int fd, off64_t size) {
    struct stat64 status;
    return !fstat64(fd, &status) && size > status.st_size ? ROOM : NOTHING;
}

int ftruncate(int fd, off_t size) {
    return judge_fd(fd, needs_to_resize(fd, size)) == FAIL ? -1 : REAL(ftruncate)(fd, size);
}

int ftruncate64(int fd, off64_t size) {
    return judge_fd(fd, needs_to_resize(fd, size)) == FAIL ? -1 : REAL(ftruncate64)(fd, size);
}

int fallocate(int fd, int mode, off_t offset, off_t count) {
    return judge_fd(fd, ROOM) == FAIL ? -1 : REAL(fallocate)(fd, mode, offset, count);
}

int fallocate64(int fd, int mode, off64_t offset, off64_t count) {
    return judge_fd(fd, ROOM) == FAIL ? -1 : REAL(fallocate64)(fd, mode, offset, count);
}

int posix_fallocate(int fd, off_t offset, off_t count) {
    return judge_fd(fd, ROOM) == FAIL ? errno : REAL(posix_fallocate)(fd, offset, count);
}

int posix_fallocate64(int fd, off64_t offset, off64_t count) {
    return judge_fd(fd, ROOM) == FAIL ? errno : REAL(posix_fallocate64)(fd, offset, count);
}

/* Calls on names. A rename into or out of the folder counts too: either side decides. */
static int named(const char *what, int dir, const char *path, int to_dir, const char *to, enum needs needs,
                 int (*call)(int, const char *, int, const char *, unsigned), unsigned flags) {
    char from[PATH_MAX], other[PATH_MAX] = "";
    if (!shared) return call(dir, path, to_dir, to, flags);
    int before = errno;
    path_at(dir, path, from);
    if (to) path_at(to_dir, to, other);
    if (judge(below(from) ? from : other, needs) == FAIL) return -1;
    errno = before;
    int result = call(dir, path, to_dir, to, flags);
    if (!result && what) record(what, 0, from, other);
    return result;
}

static int do_rename(int dir, const char *path, int to_dir, const char *to, unsigned flags) {
    return flags ? REAL(renameat2)(dir, path, to_dir, to, flags) : REAL(renameat)(dir, path, to_dir, to);
}

static int do_unlink(int dir, const char *path, int to_dir, const char *to, unsigned flags) {
    (void)to_dir, (void)to;
    return REAL(unlinkat)(dir, path, flags);
}

static int do_link(int dir, const char *path, int to_dir, const char *to, unsigned flags) {
    return REAL(linkat)(dir, path, to_dir, to, flags);
}

static int do_mkdir(int dir, const char *path, int to_dir, const char *to, unsigned mode) {
    (void)to_dir, (void)to;
    return REAL(mkdirat)(dir, path, mode);
}

int renameat2(int dir, const char *path, int to_dir, const char *to, unsigned flags) {
    return named("rename", dir, path, to_dir, to, NOTHING, do_rename, flags);
}

int renameat(int dir, const char *path, int to_dir, const char *to) {
    return renameat2(dir, path, to_dir, to, 0);
}

int rename(const char *path, const char *to) { return renameat2(AT_FDCWD, path, AT_FDCWD, to, 0); }

int unlinkat(int dir, const char *path, int flags) {
    return named("unlink", dir, path, 0, NULL, NOTHING, do_unlink, flags);
}

int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }

int linkat(int dir, const char *path, int to_dir, const char *to, int flags) {
    return named("link", dir, path, to_dir, to, ROOM, do_link, flags);
}

int link(const char *path, const char *to) { return linkat(AT_FDCWD, path, AT_FDCWD, to, 0); }

int mkdirat(int dir, const char *path, mode_t mode) {
    return named(NULL, dir, path, 0, NULL, ROOM, do_mkdir, mode);
}

int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

/* Opening counts only where it makes a file that was not there. */
static enum verdict judge_open(int dir, const char *path, int flags) {
    char absolute[PATH_MAX];
    struct stat64 status;
    if (!shared || !(flags & O_CREAT)) return PASS;
    int before = errno;
    enum verdict verdict = PASS;
    if (fstatat64(dir, path, &status, 0)) verdict = judge(path_at(dir, path, absolute), ROOM);
    if (verdict != FAIL) errno = before;
    return verdict;
}

static mode_t mode_of(int flags, va_list *arguments) {
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(*arguments, mode_t) : 0;
}

#define OPEN_AT(name)                                          \
    int name(int dir, const char *path, int flags, ...) {      \
        va_list arguments;                                     \
        va_start(arguments, flags);                            \
        mode_t mode = mode_of(flags, &arguments);              \
        va_end(arguments);                                     \
        if (judge_open(dir, path, flags) == FAIL) return -1;   \
        return REAL(name)(dir, path, flags, mode);             \
    }

#define OPEN(name)                                                \
    int name(const char *path, int flags, ...) {                  \
        va_list arguments;                                        \
        va_start(arguments, flags);                               \
        mode_t mode = mode_of(flags, &arguments);                 \
        va_end(arguments);                                        \
        if (judge_open(AT_FDCWD, path, flags) == FAIL) return -1; \
        return REAL(name)(path, flags, mode);                     \
    }

OPEN_AT(openat)
OPEN_AT(openat64)
OPEN(open)
OPEN(open64)
