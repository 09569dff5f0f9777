/*
 * fuzz_symbols.c: what else symbols*.c reads from files: the first byte says as what the rest is taken: a table of the
 * cache or of a worker, a perf map, a function's name, a mangled name.
 */
#include "../../profiler/symbols/allocator.h"
#include "../../profiler/symbols/demangle.h"
#include "../../profiler/symbols/symbols.h"
#include "../../profiler/symbols/symbols_private.h"
#include "../../profiler/symbols/symbols_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char path[64];

static void remove_file(void)
{
    unlink(path);
}

static void use_frames(const struct symbols_frame *frames, int count)
{
    if (count < 0 || count > SYMBOLS_INLINE_MAX)
        abort();
    size_t total = 0;
    for (int i = 0; i < count; i++)
        total += (frames[i].name ? strlen(frames[i].name) : 0) + (frames[i].raw_name ? strlen(frames[i].raw_name) : 0) +
                 (frames[i].file ? strlen(frames[i].file) : 0) + (size_t)frames[i].line;
    if (total == SIZE_MAX)
        abort();
}

static void read_table(const uint8_t *data, size_t size)
{
    char *bytes = malloc(size ? size : 1);
    memcpy(bytes, data, size);
    struct symbols_table *t = symbols_table_open(bytes, size);
    if (!t)
        return;
    struct symbols_frame frames[SYMBOLS_INLINE_MAX];
    for (size_t i = 0; i < symbols_table_count(t); i++) {
        if (symbols_table_find(t, symbols_table_offset(t, i)) != (long)i)
            abort();
        use_frames(frames, symbols_table_frames(t, i, frames));
    }
    symbols_table_find(t, 0);
    symbols_table_find(t, UINT64_MAX);
    symbols_table_is_current(t, symbols_table_source(t));
    struct buf merged = BUF(1 << 24);
    symbols_table_merge(t, t, &merged);
    buf_free(&merged);
    symbols_table_close(t);
}

static void read_perf_map(const uint8_t *data, size_t size)
{
    if (!path[0]) {
        snprintf(path, sizeof path, "/dev/shm/memprof-fuzz-%d.map", (int)getpid());
        atexit(remove_file);
    }
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size)
        abort();
    fclose(f);
    char why[64];
    struct symbols_perf *p = symbols_perf_open(path, why, sizeof why);
    if (!p)
        abort();
    for (uint64_t address = 0; address < 256; address++) {
        const char *name = symbols_perf_name(p, address << 8 * (address % 8));
        if (name && strlen(name) > size)
            abort();
    }
    symbols_perf_close(p);
}

static void read_name(const uint8_t *data, size_t size, int is_mangled)
{
    static char name[DEMANGLE_MAX];
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = 0;
    clock_t begin = clock();
    if (is_mangled && demangle_name(text, name) == 0 && strlen(name) >= DEMANGLE_MAX)
        abort();
    if (clock() - begin > 2 * CLOCKS_PER_SEC) /* without sanitizers a tenth of a second */
        abort();
    char *plain = symbols_plain_name(text);
    if (strlen(plain) > size)
        abort();
    free(plain);
    if (demangle_scope(text) > text + size)
        abort();
    allocator_is_function("_Zx", text, text);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    switch (data[0] % 4) {
    case 0:
        read_table(data + 1, size - 1);
        break;
    case 1:
        read_perf_map(data + 1, size - 1);
        break;
    default:
        read_name(data + 1, size - 1, data[0] % 4 == 3);
    }
    return 0;
}
