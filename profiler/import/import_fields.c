#include "import_fields.h"

#include <stdio.h>
#include <string.h>

#define SIZE_BYTES_MAX ((1ull << 48) - 1) /* what the accounts can hold of a block */

static const char *const key_names[KEY_COUNT] = {
#define X(id, name) name,
#include "import_keys.def"
#undef X
};

static enum import_key key_of(struct import *im, struct pickle_value v)
{
    uint32_t index = pickle_index(v);
    if (pickle_type(v) != PICKLE_TEXT)
        return KEY_COUNT;
    if (index >= im->key_count) {
        uint32_t count = index + 1024;
        im->keys = xrealloc(im->keys, count);
        memset(im->keys + im->key_count, 0, count - im->key_count);
        im->key_count = count;
    }
    if (!im->keys[index]) {
        const char *text = pickle_text(im->pickle, v, NULL);
        unsigned key = 0;
        while (key < KEY_COUNT && strcmp(text, key_names[key]))
            key++;
        im->keys[index] = (uint8_t)(key + 1);
    }
    return (enum import_key)(im->keys[index] - 1);
}

void fields_read(struct import *im, const struct pickle_value *items, size_t count, struct import_fields *f)
{
    f->mask = 0;
    f->unknown = 0;
    for (size_t i = 0; i + 1 < count; i += 2) {
        enum import_key key = key_of(im, items[i]);
        if (key < KEY_COUNT) {
            f->value[key] = items[i + 1];
            f->mask |= 1ull << key;
        } else {
            f->unknown++;
        }
    }
}

void fields_count_unknown(struct import *im, const struct import_fields *f, const struct pickle_value *items,
                          size_t count)
{
    if (!f->unknown)
        return;
    im->unknown_keys += f->unknown;
    for (size_t i = 0; i + 1 < count; i += 2) {
        size_t length = strlen(im->unknown_names);
        const char *name = pickle_type(items[i]) == PICKLE_TEXT ? pickle_text(im->pickle, items[i], NULL) : "";
        if (!*name || key_of(im, items[i]) < KEY_COUNT || strlen(name) > 60 || strstr(im->unknown_names, name))
            continue;
        if (length + strlen(name) + 3 < sizeof im->unknown_names)
            snprintf(im->unknown_names + length, sizeof im->unknown_names - length, "%s%s", length ? ", " : "", name);
    }
}

int64_t fields_number(const struct import_fields *f, enum import_key key, int64_t missing)
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

uint64_t fields_amount(const struct import_fields *f, enum import_key key)
{
    int64_t v = fields_number(f, key, 0);
    return v < 0 ? 0 : (uint64_t)v;
}

uint64_t fields_size_told(struct import *im, const struct import_fields *f, enum import_key key)
{
    int64_t v = fields_number(f, key, f->mask >> key & 1 ? -1 : 0);
    im->bad_sizes += v < 0;
    return v < 0 ? 0 : (uint64_t)v;
}

uint64_t fields_size(struct import *im, const struct import_fields *f, enum import_key key)
{
    uint64_t size_bytes = fields_size_told(im, f, key);
    if (size_bytes > SIZE_BYTES_MAX || size_bytes > (uint64_t)INT64_MAX - im->total_bytes) {
        im->bad_sizes++;
        return 0;
    }
    im->total_bytes += size_bytes;
    return size_bytes;
}

uint32_t fields_text(const struct import_fields *f, enum import_key key)
{
    return f->mask >> key & 1 && pickle_type(f->value[key]) == PICKLE_TEXT ? pickle_index(f->value[key]) + 1 : 0;
}

uint32_t fields_stack(const struct import_fields *f)
{
    return FIELDS_HAVE(f, frames) && import_type_of(f->value[KEY_frames]) == IMPORT_VALUE_stack
               ? pickle_index(f->value[KEY_frames])
               : 0;
}

uint16_t fields_place(struct import *im, const struct import_fields *f, enum import_key pool_key)
{
    struct import_place place;
    memset(&place, 0, sizeof place); /* compared as bytes */
    place.stream = fields_number(f, KEY_stream, 0);
    const struct import_run *pool =
        f->mask >> pool_key & 1 ? import_run_of(im, f->value[pool_key], PICKLE_TUPLE) : &(struct import_run){0};
    if (pool->type == PICKLE_TUPLE && pool->count) {
        const struct import_place *p = IMPORT_AT(im->places, import_place, pool->first);
        place.pool[0] = p->pool[0];
        place.pool[1] = p->pool[1];
    }
    return import_place_number(im, &place);
}
