#include "symbols_table.h"

#include "../../common/array.h"
#include "../../common/error.h"
#include "../../common/map.h"
#include "../../common/search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TABLE_MAGIC 0x354d595350524d00ull /* a change of the layout or of the look-up changes it */
#define PROBES_MAX  16

struct header {
    uint64_t magic;
    uint64_t checksum; /* of all that follows */
    uint32_t entry_count;
    uint32_t frame_count;
    uint32_t probe_count;
    uint32_t string_bytes;
    uint32_t source;      /* strings */
    uint32_t environment; /* DEBUGINFOD_URLS */
    uint32_t may_cache;
    uint32_t pad;
};

struct entry {
    uint64_t offset;
    uint32_t first_frame;
    uint32_t frame_count;
};

struct stored_frame { /* strings are places in the strings, 0: none */
    uint32_t raw_name, name, file, declared_file;
    int32_t line, column, declared_line, is_inline;
};

struct probe {
    uint32_t path;
    uint32_t exists;
    uint64_t device, inode, size, modified_ns;
};

struct symbols_builder {
    struct entry *entries;
    size_t entry_count, entry_capacity;
    struct stored_frame *frames;
    size_t frame_count, frame_capacity;
    struct probe probes[PROBES_MAX];
    uint32_t probe_count;
    struct text_map map; /* string -> place */
    struct buf strings;
};

struct symbols_table {
    struct header *header;
    struct entry *entries;
    struct stored_frame *frames;
    struct probe *probes;
    char *strings;
    size_t length;
};

static const char *environment(void)
{
    const char *urls = getenv("DEBUGINFOD_URLS");
    return urls && strlen(urls) < 4096 ? urls : "";
}

static uint64_t checksum(const void *data, size_t length)
{
    /* against damage, not against malice: what a table says is only ever text and numbers */
    const unsigned char *p = data;
    uint64_t h = 0xcbf29ce484222325ull ^ length;
    uint64_t word;
    for (; length >= 8; p += 8, length -= 8) {
        memcpy(&word, p, 8);
        h = (h ^ word) * 0x9fb21c651e98df25ull;
        h ^= h >> 29;
    }
    for (; length; p++, length--)
        h = (h ^ *p) * 0x100000001b3ull;
    return h ^ h >> 32;
}

struct symbols_builder *symbols_builder_open(void)
{
    struct symbols_builder *b = xcalloc(1, sizeof *b);
    b->strings = (struct buf)BUF(SYMBOLS_TABLE_MAX / 2);
    buf_putc(&b->strings, 0);
    return b;
}

void symbols_builder_close(struct symbols_builder *b)
{
    if (!b)
        return;
    text_map_close(&b->map);
    buf_free(&b->strings);
    free(b->entries);
    free(b->frames);
    free(b);
}

static uint32_t place_of(struct symbols_builder *b, const char *text)
{
    if (!text || !*text)
        return 0;
    size_t length = strlen(text);
    uint32_t *slot = text_map_slot(&b->map, text, length);
    if (!*slot) {
        *slot = (uint32_t)b->strings.length;
        buf_add(&b->strings, text, length + 1);
    }
    return *slot;
}

void symbols_builder_add(struct symbols_builder *b, uint64_t offset, const struct symbols_frame *frames, int count)
{
    *ARRAY_ADD(b->entries, b->entry_count, b->entry_capacity) =
        (struct entry){offset, (uint32_t)b->frame_count, (uint32_t)count};
    ARRAY_ROOM(b->frames, b->frame_count + (size_t)count, b->frame_capacity);
    for (int i = 0; i < count; i++)
        b->frames[b->frame_count++] = (struct stored_frame){
            .raw_name = place_of(b, frames[i].raw_name),
            .name = place_of(b, frames[i].name),
            .file = place_of(b, frames[i].file),
            .declared_file = place_of(b, frames[i].declared_file),
            .line = frames[i].line,
            .column = frames[i].column,
            .declared_line = frames[i].declared_line,
            .is_inline = frames[i].is_inline,
        };
}

static struct probe probe_now(const char *path)
{
    struct stat st;
    struct probe p = {0};
    if (stat(path, &st) == 0)
        p = (struct probe){0,
                           1,
                           st.st_dev,
                           st.st_ino,
                           (uint64_t)st.st_size,
                           (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec};
    return p;
}

void symbols_builder_probe(struct symbols_builder *b, const char *path)
{
    if (b->probe_count == PROBES_MAX)
        return;
    struct probe *p = &b->probes[b->probe_count++];
    *p = probe_now(path);
    p->path = place_of(b, path);
}

static int by_offset(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->first_frame < y->first_frame ? -1 : x->first_frame > y->first_frame;
}

int symbols_builder_write(struct symbols_builder *b, const char *source, int may_cache, struct buf *out)
{
    struct header h = {.magic = TABLE_MAGIC, .probe_count = b->probe_count, .may_cache = may_cache != 0};
    h.source = place_of(b, source);
    h.environment = place_of(b, environment());
    if (b->entry_count)
        qsort(b->entries, b->entry_count, sizeof *b->entries, by_offset);
    size_t kept = 0;
    for (size_t i = 0; i < b->entry_count; i++)
        if (!kept || b->entries[kept - 1].offset != b->entries[i].offset)
            b->entries[kept++] = b->entries[i];
    b->entry_count = kept;
    h.entry_count = (uint32_t)kept;
    h.frame_count = (uint32_t)b->frame_count;
    h.string_bytes = (uint32_t)b->strings.length;
    size_t start = out->length;
    buf_add(out, &h, sizeof h);
    if (kept)
        buf_add(out, b->entries, kept * sizeof *b->entries);
    if (b->frame_count)
        buf_add(out, b->frames, b->frame_count * sizeof *b->frames);
    buf_add(out, b->probes, b->probe_count * sizeof *b->probes);
    buf_add(out, b->strings.data, b->strings.length);
    if (out->failed || b->strings.failed)
        return -EFBIG;
    size_t skip = offsetof(struct header, entry_count);
    uint64_t sum = checksum(out->data + start + skip, out->length - start - skip);
    memcpy(out->data + start + offsetof(struct header, checksum), &sum, sizeof sum);
    return 0;
}

static int is_string(const struct symbols_table *t, uint32_t place)
{
    return place < t->header->string_bytes;
}

static int is_sound(const struct symbols_table *t)
{
    const struct header *h = t->header;
    if (h->string_bytes == 0 || t->strings[0] || t->strings[h->string_bytes - 1] || h->probe_count > PROBES_MAX)
        return 0;
    if (!is_string(t, h->source) || !is_string(t, h->environment))
        return 0;
    for (uint32_t i = 0; i < h->entry_count; i++) {
        const struct entry *e = &t->entries[i];
        if (e->first_frame > h->frame_count || e->frame_count > h->frame_count - e->first_frame ||
            e->frame_count > SYMBOLS_INLINE_MAX || (i && e->offset <= e[-1].offset))
            return 0;
    }
    for (uint32_t i = 0; i < h->frame_count; i++) {
        const struct stored_frame *f = &t->frames[i];
        if (!is_string(t, f->raw_name) || !is_string(t, f->name) || !is_string(t, f->file) ||
            !is_string(t, f->declared_file) || f->line < 0 || f->column < 0 || f->declared_line < 0)
            return 0;
    }
    for (uint32_t i = 0; i < h->probe_count; i++)
        if (!is_string(t, t->probes[i].path))
            return 0;
    return 1;
}

struct symbols_table *symbols_table_open(void *bytes, size_t length)
{
    struct header *h = bytes;
    size_t skip = offsetof(struct header, entry_count);
    if (length < sizeof *h || length > SYMBOLS_TABLE_MAX || h->magic != TABLE_MAGIC)
        goto damaged;
    /* 32-bit counts of parts below 2^6 bytes: no overflow in 64 bits */
    uint64_t need = sizeof *h + (uint64_t)h->entry_count * sizeof(struct entry) +
                    (uint64_t)h->frame_count * sizeof(struct stored_frame) +
                    (uint64_t)h->probe_count * sizeof(struct probe) + h->string_bytes;
    if (need != length || checksum((char *)bytes + skip, length - skip) != h->checksum)
        goto damaged;
    struct symbols_table *t = xcalloc(1, sizeof *t);
    t->header = h;
    t->length = length;
    t->entries = (struct entry *)(h + 1);
    t->frames = (struct stored_frame *)(t->entries + h->entry_count);
    t->probes = (struct probe *)(t->frames + h->frame_count);
    t->strings = (char *)(t->probes + h->probe_count);
    if (is_sound(t))
        return t;
    free(t);
damaged:
    free(bytes);
    return NULL;
}

void symbols_table_close(struct symbols_table *t)
{
    if (!t)
        return;
    free(t->header);
    free(t);
}

const char *symbols_table_source(const struct symbols_table *t)
{
    return t->strings + t->header->source;
}

int symbols_table_may_cache(const struct symbols_table *t)
{
    return t->header->may_cache && t->header->probe_count > 0;
}

int symbols_table_is_current(const struct symbols_table *t, const char *path)
{
    const struct header *h = t->header;
    if (!h->probe_count || !t->probes[0].exists || strcmp(t->strings + t->probes[0].path, path) ||
        strcmp(t->strings + h->environment, environment()))
        return 0;
    for (uint32_t i = 0; i < h->probe_count; i++) {
        struct probe now = probe_now(t->strings + t->probes[i].path);
        now.path = t->probes[i].path;
        if (memcmp(&now, &t->probes[i], sizeof now))
            return 0;
    }
    return 1;
}

size_t symbols_table_count(const struct symbols_table *t)
{
    return t->header->entry_count;
}

uint64_t symbols_table_offset(const struct symbols_table *t, size_t index)
{
    return t->entries[index].offset;
}

static const char *text_at(const struct symbols_table *t, uint32_t place)
{
    return place ? t->strings + place : NULL;
}

int symbols_table_frames(const struct symbols_table *t, size_t index, struct symbols_frame frames[SYMBOLS_INLINE_MAX])
{
    const struct entry *e = &t->entries[index];
    for (uint32_t i = 0; i < e->frame_count; i++) {
        const struct stored_frame *f = &t->frames[e->first_frame + i];
        frames[i] = (struct symbols_frame){
            .raw_name = text_at(t, f->raw_name),
            .name = text_at(t, f->name),
            .file = text_at(t, f->file),
            .line = f->line,
            .column = f->column,
            .declared_file = text_at(t, f->declared_file),
            .declared_line = f->declared_line,
            .is_inline = f->is_inline != 0,
        };
    }
    return (int)e->frame_count;
}

long symbols_table_find(const struct symbols_table *t, uint64_t offset)
{
    const size_t low = SEARCH_FIRST(t->header->entry_count, i, t->entries[i].offset < offset);
    return low < t->header->entry_count && t->entries[low].offset == offset ? (long)low : -1;
}

size_t symbols_table_bytes(const struct symbols_table *t, const void **bytes)
{
    *bytes = t->header;
    return t->length;
}

static void copy_probes(const struct symbols_table *t, struct symbols_builder *b)
{
    for (uint32_t i = 0; i < t->header->probe_count && b->probe_count < PROBES_MAX; i++) {
        struct probe *p = &b->probes[b->probe_count++];
        *p = t->probes[i];
        p->path = place_of(b, t->strings + t->probes[i].path);
    }
}

static void add_table(struct symbols_builder *b, const struct symbols_table *t)
{
    struct symbols_frame frames[SYMBOLS_INLINE_MAX];
    for (size_t i = 0; i < symbols_table_count(t); i++)
        symbols_builder_add(b, symbols_table_offset(t, i), frames, symbols_table_frames(t, i, frames));
}

int symbols_table_merge(const struct symbols_table *fresh, const struct symbols_table *old, struct buf *out)
{
    struct symbols_builder *b = symbols_builder_open();
    add_table(b, fresh);
    add_table(b, old);
    copy_probes(fresh, b);
    int rc = symbols_builder_write(b, symbols_table_source(fresh), 1, out);
    symbols_builder_close(b);
    return rc;
}
