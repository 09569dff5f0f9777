#include "pages.h"

#include "../../common/array.h"
#include "../../common/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PAGES_MAX     (1u << 25) /* 128 GiB: three bytes each while they are looked at */
#define GAP_PAGES     64u        /* a smaller gap is read along */
#define ENTRIES       65536u     /* of pagemap at a time */
#define ENTRIES_MAX   (1u << 26) /* without PM_SCAN, which passes over what is not there: 256 GiB of addresses */
#define REGIONS       1024
#define ADDRESSES_END 0x7ffffffff000ull
#define TEXT_MAX      (64u << 20)

/* Entries of /proc/PID/pagemap */
#define ENTRY_EXCLUSIVE (1ull << 56)
#define ENTRY_FILE      (1ull << 61)
#define ENTRY_SWAPPED   (1ull << 62)
#define ENTRY_PRESENT   (1ull << 63)

/* From Linux 6.7 on: finds what is there in an address space that is mostly empty. Older headers lack it. */
struct pm_region {
    uint64_t start, end, categories;
};
struct pm_scan {
    uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
#define PM_SCAN    _IOWR('f', 16, struct pm_scan)
#define IS_PRESENT (1u << 3)
#define IS_SWAPPED (1u << 4)
#define IS_PFNZERO (1u << 5)
#define IS_HUGE    (1u << 6)
#define FLAG_ZERO  0x40 /* in flags, until the entries are read */

struct reader {
    struct resident_pages *pages;
    int fd; /* pagemap */
    uint64_t entries_read;
    uint64_t entries[ENTRIES];
};

/* Room for the pages from start to end, joined to the range before where the gap is small. Returns the index of the
 * first, or -errno. */
static long add_pages(struct resident_pages *p, uint64_t start, uint64_t end)
{
    struct resident_range *r = p->range_count ? &p->ranges[p->range_count - 1] : NULL;
    uint64_t gap = r ? (start - r->end) / RESIDENT_PAGE : UINT64_MAX;
    if (gap > GAP_PAGES) {
        r = ARRAY_ADD(p->ranges, p->range_count, p->range_capacity);
        *r = (struct resident_range){start, start, p->page_count};
        gap = 0;
    }
    uint64_t count = (end - start) / RESIDENT_PAGE;
    if (count > PAGES_MAX || p->page_count + gap + count > PAGES_MAX)
        return -E2BIG;
    ARRAY_ROOM(p->flags, p->page_count + gap + count, p->page_capacity);
    memset(p->flags + p->page_count, 0, gap + count);
    p->page_count += gap + count;
    r->end = end;
    return (long)(p->page_count - count);
}

static uint8_t flags_of_region(const struct pm_region *g)
{
    if (g->categories & IS_PFNZERO)
        return FLAG_ZERO;
    if (g->categories & IS_SWAPPED)
        return RESIDENT_SWAPPED;
    return (uint8_t)(RESIDENT_PRESENT | (g->categories & IS_HUGE ? RESIDENT_HUGE : 0));
}

/* Until ENOTTY (older kernels): what is present or swapped, and of which kind. */
static int find_pages(struct reader *rd)
{
    struct pm_region regions[REGIONS];
    struct pm_scan scan = {.size = sizeof scan,
                           .end = ADDRESSES_END,
                           .vec = (uint64_t)(uintptr_t)regions,
                           .vec_len = REGIONS,
                           .category_anyof_mask = IS_PRESENT | IS_SWAPPED,
                           .return_mask = IS_PRESENT | IS_SWAPPED | IS_PFNZERO | IS_HUGE};
    int n = REGIONS;
    /* from the last region on: walk_end lies before it where the kernel filled its own buffer in between */
    for (; n == REGIONS; scan.start = regions[REGIONS - 1].end) {
        n = ioctl(rd->fd, PM_SCAN, &scan);
        if (n < 0)
            return -errno;
        for (int i = 0; i < n; i++) {
            const struct pm_region *g = &regions[i];
            long at = add_pages(rd->pages, g->start, g->end);
            if (at < 0)
                return (int)at;
            memset(rd->pages->flags + at, flags_of_region(g), (g->end - g->start) / RESIDENT_PAGE);
        }
    }
    rd->pages->has_kinds = 1;
    return 0;
}

/* Entries of pagemap from an address on. Returns how many. */
static ssize_t read_entries(struct reader *rd, uint64_t start, uint64_t count)
{
    ssize_t n = pread(rd->fd, rd->entries, (count < ENTRIES ? count : ENTRIES) * sizeof *rd->entries,
                      (off_t)(start / RESIDENT_PAGE * sizeof *rd->entries));
    return n < 0 ? -errno : n / (ssize_t)sizeof *rd->entries;
}

/* kinds: what find_pages said of the page a moment before. */
static uint8_t flags_of(struct resident_pages *p, uint64_t entry, uint8_t kinds)
{
    if (entry & ENTRY_SWAPPED)
        return RESIDENT_SWAPPED;
    if (!(entry & ENTRY_PRESENT))
        return 0;
    if ((kinds & FLAG_ZERO) && !(entry & (ENTRY_FILE | ENTRY_EXCLUSIVE))) {
        p->zero_pages++;
        return 0;
    }
    int is_shared = (entry & ENTRY_FILE) || !(entry & ENTRY_EXCLUSIVE);
    return (uint8_t)(RESIDENT_PRESENT | (is_shared ? RESIDENT_SHARED : 0) | (kinds & RESIDENT_HUGE) |
                     (entry & ENTRY_FILE ? RESIDENT_FILE : 0));
}

/* Pages from index i on: what the scan said of them is all. */
static void take_regions(struct resident_pages *p, size_t i, size_t count)
{
    for (size_t end = i + count; i < end; i++)
        if (p->flags[i] == FLAG_ZERO) {
            p->flags[i] = 0;
            p->zero_pages++;
        }
}

static int ask_entries(struct reader *rd, uint64_t start, uint64_t end, size_t i)
{
    struct resident_pages *p = rd->pages;
    while (start < end) {
        ssize_t n = read_entries(rd, start, (end - start) / RESIDENT_PAGE);
        if (n <= 0)
            return n < 0 ? (int)n : -ESRCH;
        for (ssize_t e = 0; e < n; e++, i++)
            p->flags[i] = flags_of(p, rd->entries[e], p->flags[i]);
        start += (uint64_t)n * RESIDENT_PAGE;
    }
    return 0;
}

static int is_anonymous(const struct resident_map *m)
{
    return m->rest == REST_anonymous || m->rest == REST_heap || m->rest == REST_stack;
}

/* Of a process that is alone, anonymous pages are its own: that need not be asked, which takes the kernel four times as
 * long as to find them. */
static int read_ranges(struct reader *rd, int is_alone)
{
    const struct resident_pages *p = rd->pages;
    size_t map = 0;
    int rc = 0;
    for (size_t k = 0; k < p->range_count; k++) {
        const struct resident_range *r = &p->ranges[k];
        for (uint64_t at = r->start, end; rc == 0 && at < r->end; at = end) {
            size_t i = r->first + (at - r->start) / RESIDENT_PAGE;
            while (map < p->map_count && p->maps[map].end <= at)
                map++;
            const struct resident_map *m = map < p->map_count ? &p->maps[map] : NULL;
            int is_in = m && m->start <= at;
            end = is_in ? m->end : m ? m->start : r->end;
            end = !is_alone || end > r->end ? r->end : end;
            if (is_alone && is_in && is_anonymous(m))
                take_regions(rd->pages, i, (end - at) / RESIDENT_PAGE);
            else
                rc = ask_entries(rd, at, end, i);
        }
    }
    return rc;
}

/* Without PM_SCAN: all entries of a mapping that has resident or swapped bytes. */
static int read_mapping(struct reader *rd, uint64_t start, uint64_t end)
{
    rd->entries_read += (end - start) / RESIDENT_PAGE;
    if (rd->entries_read > ENTRIES_MAX)
        return -E2BIG;
    while (start < end) {
        ssize_t n = read_entries(rd, start, (end - start) / RESIDENT_PAGE), e = 0;
        if (n <= 0)
            return n < 0 ? (int)n : -ESRCH;
        while (e < n) {
            while (e < n && !(rd->entries[e] & (ENTRY_PRESENT | ENTRY_SWAPPED)))
                e++;
            ssize_t first = e;
            while (e < n && (rd->entries[e] & (ENTRY_PRESENT | ENTRY_SWAPPED)))
                e++;
            if (e == first)
                break;
            long at =
                add_pages(rd->pages, start + (uint64_t)first * RESIDENT_PAGE, start + (uint64_t)e * RESIDENT_PAGE);
            if (at < 0)
                return (int)at;
            for (ssize_t i = first; i < e; i++)
                rd->pages->flags[at + i - first] = flags_of(rd->pages, rd->entries[i], 0);
        }
        start += (uint64_t)n * RESIDENT_PAGE;
    }
    return 0;
}

/* --- mappings --- */

static int read_text(int pid, const char *name, struct buf *text)
{
    char path[64], part[16384];
    ssize_t n;
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    while ((n = read(fd, part, sizeof part)) > 0)
        buf_add(text, part, (size_t)n);
    int rc = n < 0 ? -errno : text->failed ? -E2BIG : text->length == 0 ? -ESRCH : 0;
    close(fd);
    return rc;
}

static int begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static enum resident_rest rest_of(const char *permissions, const char *path)
{
    if (strstr(path, "libmemprof") || begins(path, "/memfd:memprof"))
        return REST_memprof;
    if (begins(path, "[heap]"))
        return REST_heap;
    if (begins(path, "[stack]"))
        return REST_stack;
    if (!*path || begins(path, "[anon"))
        return REST_anonymous;
    if (permissions[3] == 's' && (begins(path, "/memfd:") || begins(path, "/dev/") || begins(path, "/SYSV")))
        return REST_shared;
    return REST_file;
}

const char *const pages_mallocs[] = {"jemalloc", "tcmalloc", "mimalloc", NULL};

static unsigned mallocs_of(const char *path)
{
    const char *base = strrchr(path, '/');
    for (unsigned i = 0; base && begins(base, "/lib") && pages_mallocs[i]; i++)
        if (begins(base + 4, pages_mallocs[i]))
            return 1u << i;
    return 0;
}

/* "7f..-7f.. rw-p 00000000 00:00 0   [heap]"; 0: another line. */
static int parse_mapping(const char *line, struct resident_map *m)
{
    unsigned long long start, end, offset = 0, inode = 0;
    unsigned major = 0, minor = 0;
    char permissions[5];
    int path = 0;
    if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end, permissions, &offset, &major, &minor, &inode,
               &path) < 3 ||
        start >= end || strlen(permissions) < 4)
        return 0;
    *m = (struct resident_map){.start = start,
                               .end = end,
                               .rest = (uint8_t)rest_of(permissions, path ? line + path : ""),
                               .is_shared = permissions[3] == 's',
                               .device = (uint64_t)major << 32 | minor,
                               .inode = inode,
                               .offset = offset};
    return 1;
}

/* A line of text (its end becomes 0), and where the next one begins; NULL: no more. */
static char *next_line(char **text)
{
    char *line = *text, *end = line ? strchr(line, '\n') : NULL;
    if (!line || !*line)
        return NULL;
    *text = end ? end + 1 : NULL;
    if (end)
        *end = 0;
    return line;
}

/* What of a private mapping is the recorder's own is a mapping by itself: the kernel joins it to what lies beside it.
 * next: of own, from one mapping to the one above it. */
static void add_mapping(struct resident_pages *p, struct resident_map m, size_t *next)
{
    const uint64_t end = m.end;
    for (; m.start < end; m.start = m.end) {
        while (*next < p->own_count && p->own[*next].end <= m.start)
            ++*next;
        const struct resident_own *own = *next < p->own_count ? &p->own[*next] : NULL;
        int is_split = own && own->start < end && m.rest == REST_anonymous, is_own = is_split && own->start <= m.start;
        m.end = !is_split ? end : !is_own ? own->start : own->end < end ? own->end : end;
        struct resident_map *part = ARRAY_ADD(p->maps, p->map_count, p->map_capacity);
        *part = m;
        if (is_own)
            part->rest = REST_memprof;
    }
}

static int read_maps(int pid, struct resident_pages *p)
{
    struct buf text = BUF(TEXT_MAX);
    int rc = read_text(pid, "maps", &text);
    struct resident_map map;
    char *at = text.data, *line;
    size_t own = 0;
    while (rc == 0 && (line = next_line(&at))) {
        p->mallocs |= mallocs_of(line);
        if (parse_mapping(line, &map) && (!p->map_count || map.start >= p->maps[p->map_count - 1].end))
            add_mapping(p, map, &own);
    }
    buf_free(&text);
    return rc;
}

/* Mappings without a page are passed over: one may be a reserve of 64 GiB. */
static int read_by_smaps(int pid, struct reader *rd)
{
    struct buf text = BUF(TEXT_MAX);
    int rc = read_text(pid, "smaps", &text), is_read = 1;
    struct resident_map map = {0}, next;
    unsigned long long kib;
    uint64_t end = 0;
    char *at = text.data, *line;
    while (rc == 0 && (line = next_line(&at))) {
        if (parse_mapping(line, &next)) {
            is_read = next.start < end || next.end > ADDRESSES_END;
            end = next.end > end ? next.end : end;
            map = next;
        } else if (!is_read && (sscanf(line, "Rss: %llu", &kib) == 1 || sscanf(line, "Swap: %llu", &kib) == 1) && kib) {
            is_read = 1;
            rc = read_mapping(rd, map.start, map.end);
        }
    }
    buf_free(&text);
    return rc;
}

/* Without memory its /proc files are root's, and who asks may not open them: a zombie, or one that is about to be. */
static int has_memory(int pid)
{
    char path[64], first = '0';
    snprintf(path, sizeof path, "/proc/%d/statm", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    int is_read = read(fd, &first, 1) == 1;
    close(fd);
    return is_read && first != '0';
}

int pages_read(int pid, int is_alone, struct resident_pages *pages)
{
    static struct reader *kept; /* one thread, the collector's; not in .bss, which ulimit -d is held against */
    char path[64];
    if (!kept)
        kept = xmalloc(sizeof *kept);
    struct reader *const rd = kept;
    snprintf(path, sizeof path, "/proc/%d/pagemap", pid);
    pages->range_count = pages->page_count = pages->map_count = 0;
    pages->zero_pages = 0;
    pages->mallocs = 0;
    pages->has_kinds = 0;
    rd->pages = pages;
    rd->entries_read = 0;
    rd->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (rd->fd < 0) {
        int rc = -errno;
        return rc == -EACCES && !has_memory(pid) ? -ESRCH : rc;
    }
    /* the mappings first: what the program unmaps after its pages were found was there */
    int rc = read_maps(pid, pages), is_old = 0;
    if (rc == 0) {
        rc = find_pages(rd);
        is_old = rc == -ENOTTY || rc == -EINVAL;
    }
    if (is_old)
        rc = read_by_smaps(pid, rd);
    else if (rc == 0)
        rc = read_ranges(rd, is_alone);
    close(rd->fd);
    return rc;
}

int pages_mappings(int pid, struct resident_map **maps, size_t *count)
{
    struct resident_pages pages = {0};
    int rc = read_maps(pid, &pages);
    if (rc) {
        pages_free(&pages);
        return rc;
    }
    size_t kept = 0;
    for (size_t i = 0; i < pages.map_count; i++)
        if (kept && pages.maps[kept - 1].end == pages.maps[i].start)
            pages.maps[kept - 1].end = pages.maps[i].end;
        else
            pages.maps[kept++] = pages.maps[i];
    *maps = pages.maps;
    *count = kept;
    return 0;
}

void pages_free(struct resident_pages *pages)
{
    free(pages->ranges);
    free(pages->flags);
    free(pages->maps);
    *pages = (struct resident_pages){0};
}
