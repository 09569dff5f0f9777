/*
 * Source text for the functions that matter: from the database, else from the disk where the file is older than the
 * run. The database says which files, so only what looks like source is read: a hostile one must not make a page out
 * of somebody's keys.
 */
#include "page_data.h"

#include "../../common/db.h"
#include "../../common/io.h"
#include "../../common/module_kind.h"
#include "../../common/zip.h"
#include "../query/source.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX     (8u << 20)
#define FUNCTION_LINES_MAX 400
#define FUNCTIONS_MOST     (8u * PAGE_SOURCE_FUNCTIONS) /* with those whose files are not here */
#define LINES_AROUND       3

struct extent { /* the lines of a function that hold something */
    int32_t function, file, first, last;
    double score;
};

static int by_score(const void *a, const void *b)
{
    const struct extent *left = a, *right = b;
    if (left->score != right->score)
        return left->score < right->score ? 1 : -1;
    return left->function - right->function;
}

static int by_place(const void *a, const void *b)
{
    const struct extent *left = a, *right = b;
    if (left->file != right->file)
        return left->file - right->file;
    return left->first != right->first ? left->first - right->first : left->function - right->function;
}

/* A node's share of what is shown, callees included: summed from the leaves, which are numbered after their callers. */
static double *node_scores(const struct page *page)
{
    static const uint8_t columns[] = {STAT_at_peak_bytes, STAT_end_bytes, STAT_alloc_bytes, STAT_alloc_count};
    double *scores = xcalloc(page->node_count + 1ul, sizeof *scores);
    for (unsigned c = 0; c < sizeof columns; c++) {
        double sum = 0;
        for (uint32_t i = 0; i < page->site_count; i++)
            sum += (double)page->sites[i].stats[columns[c]];
        for (uint32_t i = 0; i < page->site_count && sum > 0; i++)
            scores[page->sites[i].node] += (double)page->sites[i].stats[columns[c]] / sum;
    }
    for (uint32_t i = page->node_count; i--;) {
        uint32_t node = page->node_order[i];
        if (page->nodes[node].parent >= 0)
            scores[page->nodes[node].parent] += scores[node];
    }
    return scores;
}

static struct extent *find_extents(const struct page *page, uint32_t *count)
{
    struct extent *extents = NULL;
    struct map known = {0};
    uint32_t capacity = 0;
    double *scores = node_scores(page);
    *count = 0;
    for (uint32_t i = 0; i < page->node_count; i++) {
        const struct page_frame *f = &page->frames[page->nodes[i].frame];
        if (f->file < 0 || f->line <= 0 || (f->module >= 0 && module_is_ours(page->modules[f->module])))
            continue;
        uint32_t index = map_number(&known, (uint32_t)f->function, (uint32_t)f->file);
        if (index == MAP_NONE) {
            index = *count;
            *ARRAY_ADD(extents, *count, capacity) = (struct extent){f->function, f->file, f->line, f->line, 0};
            map_set_number(&known, (uint32_t)f->function, (uint32_t)f->file, index);
        }
        struct extent *e = &extents[index];
        e->first = f->line < e->first ? f->line : e->first;
        e->last = f->line > e->last ? f->line : e->last;
        e->score += scores[i];
    }
    for (uint32_t i = 0; i < *count; i++) {
        const struct page_function *function = &page->functions[extents[i].function];
        if (function->file == extents[i].file && function->line > 0 && function->line < extents[i].first &&
            extents[i].first - function->line < FUNCTION_LINES_MAX)
            extents[i].first = function->line;
        else
            extents[i].first -= extents[i].first > LINES_AROUND ? LINES_AROUND : extents[i].first - 1;
    }
    map_close(&known);
    free(scores);
    return extents;
}

static int looks_like_source(const char *path)
{
    static const char *const endings[] = {
        "c",  "cc", "cpp", "cxx", "c++", "h",   "hh",  "hpp", "hxx", "inc", "inl", "ipp",   "tcc", "cu",   "cuh",
        "m",  "mm", "py",  "pyx", "rs",  "go",  "d",   "f",   "f90", "f95", "for", "s",     "S",   "java", "js",
        "ts", "rb", "lua", "ml",  "hs",  "nim", "zig", "adb", "ads", "pas", "cs",  "swift", "kt",  "y",    "l"};
    const char *dot = strrchr(page_basename(path), '.');
    if (!dot)
        return 0;
    for (unsigned i = 0; i < sizeof endings / sizeof *endings; i++)
        if (!strcasecmp(dot + 1, endings[i]))
            return 1;
    return 0;
}

/* Scripts are commands, too: without an ending, with an interpreter in their first line. */
static int is_script(const char *text)
{
    size_t length = strcspn(text, "\n");
    return strncmp(text, "#!", 2) == 0 && memmem(text, length, "python", 6);
}

static char *read_zip(const struct page *page, const char *path, const char **why)
{
    struct stat st;
    size_t length;
    char *text = looks_like_source(path) ? zip_read(path, FILE_BYTES_MAX, &length, &st) : NULL;
    if (text && source_is_newer(&st, page->start_unix_ns)) {
        *why = "changed since the recording";
        free(text);
        text = NULL;
    }
    return text;
}

/* The text of a file, to free; NULL with why. */
static char *read_disk(const struct page *page, const char *path, const char **why)
{
    struct stat st;
    *why = "not found on this machine";
    if (*path != '/')
        return NULL;
    int is_source = looks_like_source(path);
    if (!is_source && strchr(page_basename(path), '.')) {
        *why = "not a source file by its name";
        return NULL;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return read_zip(page, path, why);
    char *text = NULL;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size > FILE_BYTES_MAX) {
        *why = "not a plain file of at most 8 MiB";
    } else if (source_is_newer(&st, page->start_unix_ns)) {
        *why = "changed since the recording";
    } else {
        text = xmalloc((size_t)st.st_size + 1);
        size_t used = io_read(fd, text, (size_t)st.st_size);
        text[used] = 0;
        int is_text = !memchr(text, 0, used);
        if (!is_text || (!is_source && !is_script(text))) {
            *why = is_text ? "not a source file by its name" : "not text";
            free(text);
            text = NULL;
        }
    }
    close(fd);
    return text;
}

static char *read_source(struct page *page, int32_t file, const char **why)
{
    char *text = NULL;
    sqlite3_stmt *s = page_query(page, "SELECT source FROM file WHERE file_id = ? AND source IS NOT NULL");
    if (s) {
        sqlite3_bind_int64(s, 1, page->file_ids[file]);
        if (sqlite3_step(s) == SQLITE_ROW)
            text = xstrdup(db_text(s, 0));
        sqlite3_finalize(s);
    }
    return text ? text : read_disk(page, page->files[file], why);
}

/* Writes lines first to last of text; returns the bytes written. */
static size_t write_lines(struct page_pack *pack, const char *text, int32_t first, int32_t last)
{
    struct buf lines = BUF(PAGE_SOURCE_BYTES);
    int32_t line = 1;
    for (; *text && line <= last; line++) {
        size_t length = strcspn(text, "\n");
        if (line >= first) {
            buf_add(&lines, text, length < 500 ? length : 500);
            buf_putc(&lines, '\n');
        }
        text += length;
        text += *text == '\n';
    }
    size_t length = lines.failed ? 0 : lines.length;
    pack_text(pack, "text", length ? lines.data : "");
    buf_free(&lines);
    return length;
}

static void write_file(struct page *page, struct page_pack *pack, const struct extent *extents, uint32_t count,
                       size_t *left)
{
    const char *why = "";
    char *text = read_source(page, extents->file, &why);
    int32_t done = 0; /* lines up to this one are written: functions inlined from one place overlap */
    pack_open(pack, NULL, '{');
    pack_int(pack, "file", extents->file);
    if (!text)
        pack_text(pack, "missing", why);
    pack_open(pack, "parts", '[');
    for (uint32_t i = 0; i < count && text && *left; i++) {
        int32_t first = extents[i].first > done ? extents[i].first : done + 1, last = extents[i].last + LINES_AROUND;
        if (last - first > FUNCTION_LINES_MAX)
            last = first + FUNCTION_LINES_MAX;
        if (last < first)
            continue;
        pack_open(pack, NULL, '{');
        pack_int(pack, "first", first);
        size_t length = write_lines(pack, text, first, last);
        pack_close(pack, '}');
        *left -= length < *left ? length : *left;
        done = last;
    }
    pack_close(pack, ']');
    pack_close(pack, '}');
    free(text);
}

/* How many of the functions, by score, are shown: those whose file is not here cost nothing, so they take no place of
 * another (an interpreter built elsewhere has frames on each stack). */
static uint32_t keep_best(const struct page *page, const struct extent *extents, uint32_t count)
{
    struct map known = {0}; /* file: 1 is there, 2 is not */
    uint32_t kept = 0, with_text = 0;
    for (; kept < count && kept < FUNCTIONS_MOST && with_text < PAGE_SOURCE_FUNCTIONS; kept++) {
        int32_t file = extents[kept].file;
        uint32_t state = map_number(&known, (uint32_t)file, 0);
        if (state == MAP_NONE) {
            state = source_is_there(page->db, page->files[file]) ? 1 : 2;
            map_set_number(&known, (uint32_t)file, 0, state);
        }
        with_text += state == 1;
    }
    map_close(&known);
    return kept;
}

int page_write_source(struct page *page, struct page_pack *pack)
{
    uint32_t count;
    struct extent *extents = find_extents(page, &count);
    if (count)
        qsort(extents, count, sizeof *extents, by_score);
    if (page->options->with_source)
        count = keep_best(page, extents, count);
    if (count)
        qsort(extents, count, sizeof *extents, by_place);
    size_t left = PAGE_SOURCE_BYTES;
    pack_open(pack, NULL, '{');
    pack_int(pack, "with_source", page->options->with_source);
    pack_open(pack, "files", '[');
    for (uint32_t i = 0, next; i < count && page->options->with_source; i = next) {
        for (next = i; next < count && extents[next].file == extents[i].file;)
            next++;
        write_file(page, pack, &extents[i], next - i, &left);
    }
    pack_close(pack, ']');
    pack_close(pack, '}');
    free(extents);
    return 0;
}
