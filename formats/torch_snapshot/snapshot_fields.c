#include "snapshot_private.h"

#include "../../common/array.h"

#include <stdio.h>
#include <string.h>

#define SIZE_BYTES_MAX ((1ull << 48) - 1) /* what the accounts can hold of a block */

static enum snapshot_word word_of(struct snapshot *snap, struct pickle_value v)
{
    uint32_t index = pickle_index(v);
    if (pickle_type(v) != PICKLE_TEXT)
        return WORD_COUNT;
    ARRAY_ROOM_ZERO(snap->words, index + 1ul, snap->word_count);
    if (!snap->words[index]) {
        const char *text = pickle_text(snap->pickle, v, NULL);
        unsigned word = 0;
        while (word < WORD_COUNT && strcmp(text, snapshot_words[word]))
            word++;
        snap->words[index] = (uint8_t)(word + 1);
    }
    return (enum snapshot_word)(snap->words[index] - 1);
}

void fields_read(struct snapshot *snap, const struct pickle_value *items, size_t count, struct snapshot_fields *f)
{
    f->mask = 0;
    f->unknown = 0;
    for (size_t i = 0; i + 1 < count; i += 2) {
        enum snapshot_word key = word_of(snap, items[i]);
        if (key < WORD_KEYS) {
            f->value[key] = items[i + 1];
            f->mask |= 1ull << key;
        } else {
            f->unknown++;
        }
    }
}

void fields_count_unknown(struct snapshot *snap, const struct snapshot_fields *f, const struct pickle_value *items,
                          size_t count)
{
    if (!f->unknown)
        return;
    snap->unknown_keys += f->unknown;
    for (size_t i = 0; i + 1 < count; i += 2) {
        size_t length = strlen(snap->unknown_names);
        const char *name = pickle_type(items[i]) == PICKLE_TEXT ? pickle_text(snap->pickle, items[i], NULL) : "";
        if (!*name || word_of(snap, items[i]) < WORD_KEYS || strlen(name) > 60 || strstr(snap->unknown_names, name))
            continue;
        if (length + strlen(name) + 3 < sizeof snap->unknown_names)
            snprintf(snap->unknown_names + length, sizeof snap->unknown_names - length, "%s%s", length ? ", " : "",
                     name);
    }
}

int64_t fields_number(const struct snapshot_fields *f, enum snapshot_word key, int64_t missing)
{
    struct pickle_value v = f->value[key];
    if (!(f->mask >> key & 1))
        return missing;
    if (pickle_type(v) == PICKLE_BOOL)
        return pickle_index(v);
    if (pickle_type(v) == PICKLE_FLOAT && pickle_float(v) >= -0x1p58 && pickle_float(v) < 0x1p58)
        return (int64_t)pickle_float(v);
    return pickle_type(v) == PICKLE_INT ? pickle_int(v) : missing;
}

uint64_t fields_amount(const struct snapshot_fields *f, enum snapshot_word key)
{
    int64_t v = fields_number(f, key, 0);
    return v < 0 ? 0 : (uint64_t)v;
}

uint64_t fields_size_told(struct snapshot *snap, const struct snapshot_fields *f, enum snapshot_word key)
{
    int64_t v = fields_number(f, key, f->mask >> key & 1 ? -1 : 0);
    snap->bad_sizes += v < 0;
    return v < 0 ? 0 : (uint64_t)v;
}

uint64_t fields_size(struct snapshot *snap, const struct snapshot_fields *f, enum snapshot_word key)
{
    uint64_t size_bytes = fields_size_told(snap, f, key);
    if (size_bytes > SIZE_BYTES_MAX || size_bytes > (uint64_t)INT64_MAX - snap->total_bytes) {
        snap->bad_sizes++;
        return 0;
    }
    snap->total_bytes += size_bytes;
    return size_bytes;
}

enum snapshot_word fields_word(struct snapshot *snap, const struct snapshot_fields *f, enum snapshot_word key)
{
    return f->mask >> key & 1 ? word_of(snap, f->value[key]) : WORD_COUNT;
}

uint32_t fields_text(const struct snapshot_fields *f, enum snapshot_word key)
{
    return f->mask >> key & 1 && pickle_type(f->value[key]) == PICKLE_TEXT ? pickle_index(f->value[key]) + 1 : 0;
}

uint32_t fields_stack(const struct snapshot_fields *f)
{
    return FIELDS_HAVE(f, frames) && snapshot_type_of(f->value[WORD_frames]) == SNAPSHOT_VALUE_stack
               ? pickle_index(f->value[WORD_frames])
               : 0;
}

uint16_t fields_place(struct snapshot *snap, const struct snapshot_fields *f, enum snapshot_word pool_key)
{
    struct snapshot_place place;
    memset(&place, 0, sizeof place); /* compared as bytes */
    place.stream = fields_number(f, WORD_stream, 0);
    const struct snapshot_run *pool =
        f->mask >> pool_key & 1 ? snapshot_run_of(snap, f->value[pool_key], PICKLE_TUPLE) : &(struct snapshot_run){0};
    if (pool->type == PICKLE_TUPLE && pool->count) {
        const struct snapshot_place *p = SNAPSHOT_AT(snap->places, snapshot_place, pool->first);
        place.pool[0] = p->pool[0];
        place.pool[1] = p->pool[1];
    }
    return snapshot_place_number(snap, &place);
}
