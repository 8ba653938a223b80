/* Writes down every call of a process that changes the files below one folder, in their order, with the bytes.

   To be preloaded (LD_PRELOAD). A process is followed from the first call on before which DISK_CALLS_ROOT names the
   folder and DISK_CALLS_LOG the log, which must exist and stand outside of it. A record is a head and what it says the
   lengths of: two paths and data. Calls take turns, each is made and written down before the next one, and so are words
   to clients of a Unix socket: the log has everything in the order in which it was. Its kinds:

       C created   K folder made   W written   T cut to a size   F synced      P mode    R renamed   L linked
       D removed   S said          M mapped to be changed, which then is not seen        U anything else

   The caller gets what it would have got, but that the kernel copies nothing between files by itself. */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

struct head {
    char kind;
    uint64_t file, offset, size;
    uint16_t path, other;
    uint32_t data;
} __attribute__((packed));

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static size_t root_length;
static int log_fd = -1;

static int followed(void) {
    if (log_fd >= 0) return 1;
    const char *folder = getenv("DISK_CALLS_ROOT"), *file = getenv("DISK_CALLS_LOG");
    if (!folder || !file) return 0;
    pthread_mutex_lock(&turn);
    if (log_fd < 0) {
        root_length = (size_t)snprintf(root, sizeof root, "%s/", folder);
        int fd = (int)syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
        log_fd = fd >= 0 ? (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 1000) : -1;
        if (log_fd < 0) abort();
        syscall(SYS_close, fd);
    }
    pthread_mutex_unlock(&turn);
    return 1;
}

static int below(const char *path) {
    return !strncmp(path, root, root_length) || (strlen(path) + 1 == root_length && !strncmp(path, root, root_length - 1));
}

static void append(struct iovec *parts, int count) {
    size_t whole = 0;
    for (int i = 0; i < count; i++) whole += parts[i].iov_len;
    if (syscall(SYS_writev, log_fd, parts, count) != (long)whole) abort(); /* half a log proves nothing */
}

/* Write a record with the first `size` bytes of the data. */
static void put_data(char kind, uint64_t file, uint64_t offset, size_t size, const char *path, const struct iovec *data,
                     int count) {
    struct head head = {.kind = kind, .file = file, .offset = offset, .size = size, .data = (uint32_t)size};
    head.path = (uint16_t)strlen(path);
    append((struct iovec[]){{&head, sizeof head}, {(void *)path, head.path}}, 2);
    for (int i = 0; i < count && size; i++) {
        struct iovec part = {data[i].iov_base, data[i].iov_len < size ? data[i].iov_len : size};
        append(&part, 1);
        size -= part.iov_len;
    }
}

static void put(char kind, uint64_t file, uint64_t offset, uint64_t size, const char *path, const char *other) {
    struct head head = {.kind = kind, .file = file, .offset = offset, .size = size};
    head.path = (uint16_t)strlen(path);
    head.other = (uint16_t)strlen(other);
    append((struct iovec[]){{&head, sizeof head}, {(void *)path, head.path}, {(void *)other, head.other}}, 3);
}

/* The path of an open file or folder below the root, or NULL. */
static const char *opened(int fd, char *path, struct stat *found) {
    char link[32];
    if (!followed() || fstat(fd, found) || (!S_ISREG(found->st_mode) && !S_ISDIR(found->st_mode))) return NULL;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return NULL;
    path[length] = 0;
    return below(path) ? path : NULL;
}

/* The same of a name in a folder that is open, its last part as it is. */
static const char *named(int folder, const char *name, char *path) {
    char parent[PATH_MAX], joined[PATH_MAX];
    if (!followed() || !name) return NULL;
    if (name[0] == '/') {
        snprintf(joined, sizeof joined, "%s", name);
    } else {
        char link[32] = "/proc/self/cwd";
        if (folder != AT_FDCWD) snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t length = readlink(link, parent, sizeof parent - 1);
        if (length < 0) return NULL;
        parent[length] = 0;
        if ((size_t)snprintf(joined, sizeof joined, "%s/%s", parent, name) >= sizeof joined) return NULL;
    }
    char *last = strrchr(joined, '/');
    while (last > joined && !last[1]) *last = 0, last = strrchr(joined, '/');
    *last = 0;
    if (!realpath(last == joined ? "/" : joined, parent)) return NULL;
    if ((size_t)snprintf(path, PATH_MAX, "%s/%s", parent, last + 1) >= PATH_MAX) return NULL;
    return below(path) ? path : NULL;
}

static int done(int result) {
    int code = errno;
    pthread_mutex_unlock(&turn);
    errno = code;
    return result;
}

/* Open files. */

static int open_noting(int folder, const char *name, int flags, unsigned mode) {
    char path[PATH_MAX];
    struct stat found;
    const char *place = flags & (O_CREAT | O_TRUNC) ? named(folder, name, path) : NULL;
    if (!place && (flags & O_TMPFILE) != O_TMPFILE) return (int)syscall(SYS_openat, folder, name, flags, mode);
    pthread_mutex_lock(&turn);
    int is_new = place && syscall(SYS_newfstatat, folder, name, &found, AT_SYMLINK_NOFOLLOW) && errno == ENOENT;
    errno = 0;
    int fd = (int)syscall(SYS_openat, folder, name, flags, mode), code = errno;
    if (fd >= 0 && (place = opened(fd, path, &found))) {
        if ((flags & O_TMPFILE) == O_TMPFILE) put('U', found.st_ino, 0, 0, "O_TMPFILE", "");
        else if (is_new) put('C', found.st_ino, found.st_mode & 07777, 0, place, "");
        else if (flags & O_TRUNC) put('T', found.st_ino, 0, 0, place, "");
    }
    errno = code;
    return done(fd);
}

#define OPEN(name)                                                               \
    int name(const char *path, int flags, ...) {                                 \
        va_list more;                                                            \
        va_start(more, flags);                                                   \
        unsigned mode = va_arg(more, unsigned);                                  \
        va_end(more);                                                            \
        return open_noting(AT_FDCWD, path, flags, mode);                         \
    }
#define OPENAT(name)                                                             \
    int name(int folder, const char *path, int flags, ...) {                     \
        va_list more;                                                            \
        va_start(more, flags);                                                   \
        unsigned mode = va_arg(more, unsigned);                                  \
        va_end(more);                                                            \
        return open_noting(folder, path, flags, mode);                           \
    }
OPEN(open)
OPEN(open64)
OPEN(__open)
OPENAT(openat)
OPENAT(openat64)
int __open_2(const char *path, int flags) { return open_noting(AT_FDCWD, path, flags, 0); }
int __open64_2(const char *path, int flags) { return open_noting(AT_FDCWD, path, flags, 0); }
int __openat_2(int folder, const char *path, int flags) { return open_noting(folder, path, flags, 0); }
int __openat64_2(int folder, const char *path, int flags) { return open_noting(folder, path, flags, 0); }
int creat(const char *path, mode_t mode) { return open_noting(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

/* Bytes. */

static ssize_t write_noting(int fd, const struct iovec *data, int parts, off_t offset, int is_at) {
    char path[PATH_MAX];
    struct stat found;
    const char *place = opened(fd, path, &found);
    if (!place) {
        return is_at ? syscall(SYS_pwritev, fd, data, parts, offset, 0) : syscall(SYS_writev, fd, data, parts);
    }
    pthread_mutex_lock(&turn);
    ssize_t n = is_at ? syscall(SYS_pwritev, fd, data, parts, offset, 0) : syscall(SYS_writev, fd, data, parts);
    int code = errno;
    if (n > 0) {
        off_t at = is_at ? offset : lseek(fd, 0, SEEK_CUR) - n;
        put_data('W', found.st_ino, (uint64_t)at, (size_t)n, place, data, parts);
    }
    errno = code;
    done(0);
    return n;
}

/* Whether it is a connection to a socket that has a name. */
static int is_client(int fd) {
    struct sockaddr_un name;
    struct stat found;
    socklen_t length = sizeof name;
    return followed() && !fstat(fd, &found) && S_ISSOCK(found.st_mode) &&
           !getsockname(fd, (struct sockaddr *)&name, &length) && name.sun_family == AF_UNIX &&
           length > sizeof(sa_family_t);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    if (!is_client(fd)) return syscall(SYS_sendmsg, fd, message, flags);
    pthread_mutex_lock(&turn);
    ssize_t n = syscall(SYS_sendmsg, fd, message, flags);
    int code = errno;
    if (n > 0) put_data('S', (uint64_t)fd, 0, (size_t)n, "", message->msg_iov, (int)message->msg_iovlen);
    errno = code;
    done(0);
    return n;
}
ssize_t send(int fd, const void *data, size_t size, int flags) {
    struct iovec one = {(void *)data, size};
    return sendmsg(fd, &(struct msghdr){.msg_iov = &one, .msg_iovlen = 1}, flags);
}
ssize_t writev(int fd, const struct iovec *data, int parts) {
    if (is_client(fd))
        return sendmsg(fd, &(struct msghdr){.msg_iov = (struct iovec *)data, .msg_iovlen = (size_t)parts}, 0);
    return write_noting(fd, data, parts, 0, 0);
}
ssize_t write(int fd, const void *data, size_t size) {
    struct iovec one = {(void *)data, size};
    return writev(fd, &one, 1);
}
ssize_t pwritev(int fd, const struct iovec *data, int parts, off_t offset) {
    return write_noting(fd, data, parts, offset, 1);
}
ssize_t pwritev64(int fd, const struct iovec *data, int parts, off64_t offset) {
    return pwritev(fd, data, parts, offset);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
    struct iovec one = {(void *)data, size};
    return pwritev(fd, &one, 1, offset);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) { return pwrite(fd, data, size, offset); }

/* The kernel's own copying is answered as on a file system that cannot do it: callers write the bytes themselves. */
ssize_t sendfile(int to, int from, off_t *offset, size_t size) {
    char path[PATH_MAX];
    struct stat found;
    if (!opened(to, path, &found)) return syscall(SYS_sendfile, to, from, offset, size);
    errno = EINVAL;
    return -1;
}
ssize_t sendfile64(int to, int from, off64_t *offset, size_t size) { return sendfile(to, from, offset, size); }
ssize_t copy_file_range(int from, off64_t *start, int to, off64_t *end, size_t size, unsigned flags) {
    char path[PATH_MAX];
    struct stat found;
    if (!opened(to, path, &found)) return syscall(SYS_copy_file_range, from, start, to, end, size, flags);
    errno = EXDEV;
    return -1;
}
int fallocate(int fd, int mode, off_t offset, off_t size) {
    char path[PATH_MAX];
    struct stat found;
    if (!opened(fd, path, &found)) return (int)syscall(SYS_fallocate, fd, mode, offset, size);
    errno = EOPNOTSUPP;
    return -1;
}
int fallocate64(int fd, int mode, off64_t offset, off64_t size) { return fallocate(fd, mode, offset, size); }

int ftruncate(int fd, off_t size) {
    char path[PATH_MAX];
    struct stat found;
    const char *place = opened(fd, path, &found);
    if (!place) return (int)syscall(SYS_ftruncate, fd, size);
    pthread_mutex_lock(&turn);
    int result = (int)syscall(SYS_ftruncate, fd, size);
    if (!result) put('T', found.st_ino, 0, (uint64_t)size, place, "");
    return done(result);
}
int ftruncate64(int fd, off64_t size) { return ftruncate(fd, size); }
int truncate(const char *name, off_t size) {
    int fd = open(name, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    int result = ftruncate(fd, size), code = errno;
    close(fd);
    errno = code;
    return result;
}
int truncate64(const char *name, off64_t size) { return truncate(name, size); }

static int sync_noting(int fd, long call) {
    char path[PATH_MAX];
    struct stat found;
    const char *place = opened(fd, path, &found);
    if (!place) return (int)syscall(call, fd);
    pthread_mutex_lock(&turn);
    int result = (int)syscall(call, fd);
    if (!result) put('F', found.st_ino, 0, 0, place, "");
    return done(result);
}
int fsync(int fd) { return sync_noting(fd, SYS_fsync); }
int fdatasync(int fd) { return sync_noting(fd, SYS_fdatasync); }

static void *map_noting(void *at, size_t size, int access, int flags, int fd, off_t offset) {
    char path[PATH_MAX];
    struct stat found;
    if ((flags & MAP_TYPE) != MAP_PRIVATE && access & PROT_WRITE && fd >= 0 && opened(fd, path, &found)) {
        pthread_mutex_lock(&turn);
        put('M', found.st_ino, 0, 0, path, "");
        done(0);
    }
    return (void *)syscall(SYS_mmap, at, size, access, flags, fd, offset);
}
void *mmap(void *at, size_t size, int access, int flags, int fd, off_t offset) {
    return map_noting(at, size, access, flags, fd, offset);
}
void *mmap64(void *at, size_t size, int access, int flags, int fd, off64_t offset) {
    return map_noting(at, size, access, flags, fd, offset);
}

/* Names. */

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
    char path[PATH_MAX], other[PATH_MAX];
    const char *before = named(from_folder, from, path), *after = named(to_folder, to, other);
    if (!before && !after) return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
    pthread_mutex_lock(&turn);
    int result = (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
    int is_plain = before && after && !(flags & ~RENAME_NOREPLACE);
    if (!result) put(is_plain ? 'R' : 'U', 0, flags, 0, before ? before : "", after ? after : "");
    return done(result);
}
int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    return renameat2(from_folder, from, to_folder, to, 0);
}
int rename(const char *from, const char *to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    char path[PATH_MAX];
    struct stat found;
    const char *after = named(to_folder, to, path);
    if (!after) return (int)syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
    pthread_mutex_lock(&turn);
    int result = (int)syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
    if (!result && !syscall(SYS_newfstatat, to_folder, to, &found, AT_SYMLINK_NOFOLLOW))
        put('L', found.st_ino, 0, 0, after, "");
    return done(result);
}
int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

int symlinkat(const char *target, int folder, const char *name) {
    char path[PATH_MAX];
    const char *place = named(folder, name, path);
    if (!place) return (int)syscall(SYS_symlinkat, target, folder, name);
    pthread_mutex_lock(&turn);
    int result = (int)syscall(SYS_symlinkat, target, folder, name);
    if (!result) put('U', 0, 0, 0, "symlink", place);
    return done(result);
}
int symlink(const char *target, const char *name) { return symlinkat(target, AT_FDCWD, name); }

int unlinkat(int folder, const char *name, int flags) {
    char path[PATH_MAX];
    const char *place = named(folder, name, path);
    if (!place) return (int)syscall(SYS_unlinkat, folder, name, flags);
    pthread_mutex_lock(&turn);
    int result = (int)syscall(SYS_unlinkat, folder, name, flags);
    if (!result) put('D', 0, 0, 0, place, "");
    return done(result);
}
int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }
int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }
int remove(const char *name) {
    int result = unlink(name);
    return result && errno == EISDIR ? rmdir(name) : result;
}

int mkdirat(int folder, const char *name, mode_t mode) {
    char path[PATH_MAX];
    struct stat found;
    const char *place = named(folder, name, path);
    if (!place) return (int)syscall(SYS_mkdirat, folder, name, mode);
    pthread_mutex_lock(&turn);
    int result = (int)syscall(SYS_mkdirat, folder, name, mode);
    if (!result && !syscall(SYS_newfstatat, folder, name, &found, AT_SYMLINK_NOFOLLOW))
        put('K', found.st_ino, found.st_mode & 07777, 0, place, "");
    return done(result);
}
int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }

/* Modes belong to names and bytes that are synced: they are taken as they are, at once. */

static int mode_noting(const char *path, const struct stat *found, int result) {
    pthread_mutex_lock(&turn);
    if (!result) put('P', found->st_ino, found->st_mode & 07777, 0, path, "");
    return done(result);
}
int fchmod(int fd, mode_t mode) {
    char path[PATH_MAX];
    struct stat found;
    int result = (int)syscall(SYS_fchmod, fd, mode);
    return opened(fd, path, &found) ? mode_noting(path, &found, result) : result;
}
int chmod(const char *name, mode_t mode) {
    char path[PATH_MAX];
    struct stat found;
    int result = (int)syscall(SYS_fchmodat, AT_FDCWD, name, mode);
    return named(AT_FDCWD, name, path) && !stat(path, &found) ? mode_noting(path, &found, result) : result;
}
