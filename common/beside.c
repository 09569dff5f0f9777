#include "beside.h"

#include "db.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD_BYTES    28
#define INDEX_VERSION 3007000u /* how SQLite's index of a log begins, as this machine writes numbers */
#define INDEX_PAGE    4096     /* what it grows by, with zeros; all of it is there before it is begun */
#define INDEX_BYTES   32768

static uint32_t big_endian(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static int is_size(uint32_t bytes, uint32_t least)
{
    return bytes >= least && bytes <= 65536 && !(bytes & (bytes - 1));
}

/* SQLite writes the first 12 bytes last: who is killed before that leaves zeros and the sizes of sectors and pages. */
static int is_journal(const unsigned char *head, size_t length)
{
    static const unsigned char magic[] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7}, none[12] = {0};
    return (length >= sizeof magic && memcmp(head, magic, sizeof magic) == 0) ||
           (length >= HEAD_BYTES && memcmp(head, none, sizeof none) == 0 && is_size(big_endian(head + 20), 32) &&
            is_size(big_endian(head + 24), 512));
}

static int begins(enum beside which, const unsigned char *head, size_t length)
{
    const uint64_t symbols = BESIDE_SYMBOLS_MAGIC;
    const uint32_t version = INDEX_VERSION;
    switch (which) {
    case BESIDE_SYMBOLS:
        return length >= sizeof symbols && memcmp(head, &symbols, sizeof symbols) == 0;
    case BESIDE_JOURNAL:
        return is_journal(head, length);
    case BESIDE_SHM:
        return length >= sizeof version && memcmp(head, &version, sizeof version) == 0;
    default:
        return length >= 4 && (big_endian(head) & ~1u) == 0x377f0682;
    }
}

static char *name_of(const char *path, enum beside which)
{
    size_t n = strlen(path) + 16;
    char *name = xmalloc(n);
    snprintf(name, n, "%s%s", path, beside_suffix(which));
    return name;
}

/* An index that SQLite could not make as long as it needs (ulimit -f) is left with what it had: zeros alone. */
static int is_unbegun_index(int fd, off_t size)
{
    unsigned char page[INDEX_PAGE];
    if (size > INDEX_BYTES || size % INDEX_PAGE)
        return 0;
    for (off_t at = 0; at < size; at += INDEX_PAGE) {
        if (pread(fd, page, sizeof page, at) != INDEX_PAGE)
            return 0;
        for (size_t i = 0; i < sizeof page; i++)
            if (page[i])
                return 0;
    }
    return 1;
}

/* has_bytes: it is not empty. */
static enum beside_what look(const char *path, enum beside which, int *has_bytes)
{
    unsigned char head[HEAD_BYTES];
    struct stat st;
    char *name = name_of(path, which);
    int is_there = lstat(name, &st) == 0, is_file = is_there && S_ISREG(st.st_mode);
    int fd = is_file && st.st_size ? open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    ssize_t length = fd >= 0 ? pread(fd, head, sizeof head, 0) : -1;
    int is_own = length >= 0 &&
                 (begins(which, head, (size_t)length) || (which == BESIDE_SHM && is_unbegun_index(fd, st.st_size)));
    if (fd >= 0)
        close(fd);
    free(name);
    *has_bytes = is_file && st.st_size;
    if (!is_there)
        return BESIDE_NONE;
    if (!is_file)
        return BESIDE_SPECIAL;
    if (!*has_bytes)
        return BESIDE_OWN;
    return length < 0 ? BESIDE_SPECIAL : is_own ? BESIDE_OWN : BESIDE_OTHER;
}

const char *beside_suffix(enum beside which)
{
    static const char *const suffixes[BESIDE_COUNT] = {"-symbols", "-journal", "-shm", "-wal"};
    return suffixes[which];
}

enum beside_what beside_look(const char *path, enum beside which)
{
    int has_bytes;
    enum beside_what what = look(path, which, &has_bytes);
    /* where the log has changes, its index may be half begun */
    if (which == BESIDE_SHM && what == BESIDE_OTHER && look(path, BESIDE_WAL, &has_bytes) == BESIDE_OWN && has_bytes)
        return BESIDE_OWN;
    return what;
}

int beside_check(const char *path, struct error *err)
{
    for (int i = 0; i < BESIDE_COUNT; i++) {
        enum beside_what what = beside_look(path, i);
        if (what == BESIDE_OTHER || what == BESIDE_SPECIAL)
            return error_set(err, EEXIST,
                             "%s%s: has the name of a file beside %s and is none; it is left as it is: choose another "
                             "name with -o",
                             path, beside_suffix(i), path);
    }
    return 0;
}

void beside_remove_one(const char *path, enum beside which)
{
    char *name = name_of(path, which);
    if (beside_look(path, which) == BESIDE_OWN)
        unlink(name);
    free(name);
}

/* The log comes last: what its index is, it says. */
void beside_remove(const char *path)
{
    for (int i = 0; i < BESIDE_COUNT; i++)
        beside_remove_one(path, i);
}

int beside_is_name(const char *path, const char *name)
{
    int is = 0;
    for (int i = 0; i < BESIDE_COUNT; i++) {
        char *beside = name_of(path, i);
        is |= db_same_file(beside, name);
        free(beside);
    }
    return is;
}
