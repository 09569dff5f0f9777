#include "symbols_private.h"

#include "../../common/array.h"
#include "../../common/io.h"
#include "../../common/search.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAP_BYTES_MAX (128u << 20)
#define MAP_ROWS_MAX  (4u << 20)

struct row {
    uint64_t start, end;
    uint32_t name;  /* where in text */
    uint32_t order; /* line number: of two entries at one address the later one is what runs */
};

struct symbols_perf {
    char *text;
    struct row *rows; /* by start */
    size_t count;
};

static int by_start(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* The file's text, NUL-terminated; NULL with why. */
static char *read_text(const char *path, size_t *length, char *why, size_t why_size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        snprintf(why, why_size, "%s: %s", path, strerror(errno));
        return NULL;
    }
    struct stat st;
    char *text = NULL;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        snprintf(why, why_size, "%s: not a regular file", path);
    } else if (st.st_uid != geteuid() && st.st_uid != 0) {
        snprintf(why, why_size, "%s: belongs to another user", path);
    } else {
        size_t limit = st.st_size < MAP_BYTES_MAX ? (size_t)st.st_size : MAP_BYTES_MAX;
        text = xmalloc(limit + 1);
        *length = io_read(fd, text, limit);
        text[*length] = 0;
    }
    close(fd);
    return text;
}

/* "START SIZE NAME", hexadecimal. Returns 0 for a line that is something else. */
static int parse_row(char *line, struct row *row, const char *text)
{
    char *end;
    errno = 0;
    if (*line == '-' || *line == '+' || *line == ' ')
        return 0;
    row->start = strtoull(line, &end, 16);
    if (errno || end == line || *end != ' ')
        return 0;
    char *size_text = end + 1;
    uint64_t size = strtoull(size_text, &end, 16);
    if (errno || end == size_text || *size_text == '-' || *end != ' ' || !end[1] || size == 0)
        return 0;
    if (__builtin_add_overflow(row->start, size, &row->end))
        return 0;
    row->name = (uint32_t)(end + 1 - text);
    return 1;
}

static void parse(struct symbols_perf *p, size_t length)
{
    size_t capacity = 0;
    char *line = p->text;
    for (uint32_t order = 0; line < p->text + length && p->count < MAP_ROWS_MAX; order++) {
        char *newline = memchr(line, '\n', (size_t)(p->text + length - line));
        if (!newline)
            break; /* the last line may be half-written */
        *newline = 0;
        if (newline > line && newline[-1] == '\r')
            newline[-1] = 0;
        ARRAY_ROOM(p->rows, p->count + 1ul, capacity);
        struct row *row = &p->rows[p->count];
        row->order = order;
        p->count += (size_t)parse_row(line, row, p->text);
        line = newline + 1;
    }
    if (p->count)
        qsort(p->rows, p->count, sizeof *p->rows, by_start);
}

struct symbols_perf *symbols_perf_open(const char *path, char *why, size_t why_size)
{
    size_t length;
    char *text = read_text(path, &length, why, why_size);
    if (!text)
        return NULL;
    struct symbols_perf *p = xcalloc(1, sizeof *p);
    p->text = text;
    parse(p, length);
    return p;
}

void symbols_perf_close(struct symbols_perf *p)
{
    if (!p)
        return;
    free(p->rows);
    free(p->text);
    free(p);
}

const char *symbols_perf_name(struct symbols_perf *p, uint64_t address)
{
    const size_t low = SEARCH_FIRST(p->count, i, p->rows[i].start <= address);
    /* The nearest start before the address; a stale, shorter entry may hide a longer one that began earlier. */
    for (size_t i = low, tries = 0; i-- > 0 && tries < 64; tries++)
        if (address < p->rows[i].end)
            return p->text + p->rows[i].name;
    return NULL;
}
