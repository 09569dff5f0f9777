#include "pprof_read.h"

#include "../../common/array.h"
#include "pprof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* No honest profile has more. */
#define MESSAGE_MAX   (512u << 20)
#define TYPES_MAX     64u
#define TEXTS_MAX     (1u << 24)
#define CODE_MAX      (1u << 24) /* functions, locations, lines each */
#define MAPPINGS_MAX  (1u << 16)
#define LINES_A_PLACE 64u /* inlined functions; the outer ones are left out */
enum { PIECE_BYTES = 1 << 16 };

/* --- fields of a message ------------------------------------------------------------------------------------------ */

struct field {
    uint32_t number;
    enum pprof_wire wire;
    uint64_t value;           /* PPROF_VARINT, and the fixed ones */
    struct pprof_bytes bytes; /* PPROF_BYTES */
};

static int take_varint(struct pprof_bytes *b, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 70 && b->at < b->end; shift += 7) {
        uint8_t byte = *b->at++;
        *value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
        if (!(byte & 0x80))
            return 1;
    }
    return 0;
}

static int take_fixed(struct pprof_bytes *b, unsigned bytes, uint64_t *value)
{
    *value = 0;
    if ((size_t)(b->end - b->at) < bytes)
        return 0;
    memcpy(value, b->at, bytes);
    b->at += bytes;
    return 1;
}

static int take_bytes(struct pprof_bytes *b, struct pprof_bytes *bytes)
{
    uint64_t length;
    if (!take_varint(b, &length) || length > (uint64_t)(b->end - b->at))
        return 0;
    *bytes = (struct pprof_bytes){b->at, b->at + length};
    b->at += length;
    return 1;
}

/* 1; 0: the message has ended; -1: what comes is no field. */
static int next_field(struct pprof_bytes *b, struct field *f)
{
    uint64_t key;
    if (b->at == b->end)
        return 0;
    if (!take_varint(b, &key) || key >> 3 == 0 || key >> 3 > 0x1fffffff)
        return -1;
    *f = (struct field){.number = (uint32_t)(key >> 3), .wire = (enum pprof_wire)(key & 7)};
    switch (f->wire) {
    case PPROF_VARINT:
        return take_varint(b, &f->value) ? 1 : -1;
    case PPROF_FIXED64:
        return take_fixed(b, 8, &f->value) ? 1 : -1;
    case PPROF_FIXED32:
        return take_fixed(b, 4, &f->value) ? 1 : -1;
    case PPROF_BYTES:
        return take_bytes(b, &f->bytes) ? 1 : -1;
    default:
        return -1;
    }
}

/* --- the string table --------------------------------------------------------------------------------------------- */

static const char *text_at(struct pprof_read *p, uint64_t index)
{
    if (index < p->text_count)
        return p->texts[index];
    p->bad_numbers++;
    return "";
}

static void add_text(struct pprof_read *p, const struct pprof_bytes *b)
{
    size_t length = (size_t)(b->end - b->at);
    char *copy = xmalloc(length + 1);
    if (length)
        memcpy(copy, b->at, length);
    copy[length] = 0;
    *ARRAY_ADD(p->texts, p->text_count, p->text_room) = copy;
}

/* --- what samples name; each returns 0 for a damaged message -------------------------------------------------------
 */

static int read_type(struct pprof_read *p, struct pprof_bytes b, struct pprof_type *type)
{
    struct field f;
    int more;
    *type = (struct pprof_type){"", ""};
    while ((more = next_field(&b, &f)) > 0)
        if (f.number == PPROF_VALUE_TYPE_type)
            type->type = text_at(p, f.value);
        else if (f.number == PPROF_VALUE_TYPE_unit)
            type->unit = text_at(p, f.value);
    return more == 0;
}

static int read_function(struct pprof_read *p, struct pprof_bytes b)
{
    struct pprof_code_function function = {"", "", "", 0};
    struct field f;
    uint64_t id = 0;
    int more;
    while ((more = next_field(&b, &f)) > 0)
        if (f.number == PPROF_FUNCTION_id)
            id = f.value;
        else if (f.number == PPROF_FUNCTION_name)
            function.name = text_at(p, f.value);
        else if (f.number == PPROF_FUNCTION_system_name)
            function.system_name = text_at(p, f.value);
        else if (f.number == PPROF_FUNCTION_filename)
            function.file = text_at(p, f.value);
        else if (f.number == PPROF_FUNCTION_start_line)
            function.start_line = (int64_t)f.value;
    ARRAY_ROOM(p->functions, p->function_count + 2ul, p->function_room);
    p->functions[++p->function_count] = function;
    *map_slot(&p->function_ids, id, 0) = p->function_count;
    return more == 0;
}

static int read_mapping(struct pprof_read *p, struct pprof_bytes b)
{
    struct pprof_code_mapping mapping = {.path = "", .build_id = ""};
    struct field f;
    uint64_t id = 0;
    int more;
    while ((more = next_field(&b, &f)) > 0)
        if (f.number == PPROF_MAPPING_id)
            id = f.value;
        else if (f.number == PPROF_MAPPING_memory_start)
            mapping.start = f.value;
        else if (f.number == PPROF_MAPPING_file_offset)
            mapping.offset = f.value;
        else if (f.number == PPROF_MAPPING_filename)
            mapping.path = text_at(p, f.value);
        else if (f.number == PPROF_MAPPING_build_id)
            mapping.build_id = text_at(p, f.value);
    ARRAY_ROOM(p->mappings, p->mapping_count + 2ul, p->mapping_room);
    p->mappings[++p->mapping_count] = mapping;
    *map_slot(&p->mapping_ids, id, 0) = p->mapping_count;
    return more == 0;
}

/* The number behind an id; functions and mappings are all there. 0 is no id. */
static uint32_t number_of(struct pprof_read *p, const struct map *ids, uint64_t id)
{
    uint32_t number = id ? (uint32_t)map_get(ids, id, 0) : 0;
    p->bad_numbers += id && !number;
    return number;
}

static int read_line(struct pprof_read *p, struct pprof_bytes b)
{
    struct pprof_code_line line = {0};
    struct field f;
    int more;
    while ((more = next_field(&b, &f)) > 0)
        if (f.number == PPROF_LINE_function_id)
            line.function = number_of(p, &p->function_ids, f.value);
        else if (f.number == PPROF_LINE_line)
            line.line = (int64_t)f.value;
    *ARRAY_ADD(p->lines, p->line_count, p->line_room) = line;
    return more == 0;
}

static int read_location(struct pprof_read *p, struct pprof_bytes b)
{
    struct pprof_code_location location = {.first_line = p->line_count};
    struct field f;
    uint64_t id = 0;
    int more, is_good = 1;
    while (is_good && (more = next_field(&b, &f)) > 0)
        if (f.number == PPROF_LOCATION_id)
            id = f.value;
        else if (f.number == PPROF_LOCATION_mapping_id)
            location.mapping = number_of(p, &p->mapping_ids, f.value);
        else if (f.number == PPROF_LOCATION_address)
            location.address = f.value;
        else if (f.number == PPROF_LOCATION_line && f.wire == PPROF_BYTES &&
                 p->line_count - location.first_line < LINES_A_PLACE)
            is_good = read_line(p, f.bytes);
    location.line_count = p->line_count - location.first_line;
    ARRAY_ROOM(p->locations, p->location_count + 2ul, p->location_room);
    p->locations[++p->location_count] = location;
    *map_slot(&p->location_ids, id, 0) = p->location_count;
    return is_good && more == 0;
}

/* --- the profile -------------------------------------------------------------------------------------------------- */

/* What the fields of others need comes first, wherever it stands: texts, then functions and mappings, then locations.
 */
enum pass { TEXTS, NAMES, LOCATIONS, PASSES };

static int damaged(struct error *err)
{
    return error_set(err, EBADMSG, "is no profile of pprof, or a damaged one");
}

static int too_many(struct error *err, const char *what, uint32_t most)
{
    return error_set(err, E2BIG, "a profile of more than %u %s", most, what);
}

static int check_counts(const struct pprof_read *p, struct error *err)
{
    if (p->text_count > TEXTS_MAX)
        return too_many(err, "texts", TEXTS_MAX);
    if (p->function_count > CODE_MAX || p->location_count > CODE_MAX || p->line_count > CODE_MAX)
        return too_many(err, "functions, locations or lines", CODE_MAX);
    if (p->mapping_count > MAPPINGS_MAX)
        return too_many(err, "mappings", MAPPINGS_MAX);
    return p->type_count > TYPES_MAX ? too_many(err, "types of values", TYPES_MAX) : 0;
}

static int read_names(struct pprof_read *p, const struct field *f)
{
    struct pprof_type type;
    switch (f->number) {
    case PPROF_PROFILE_sample_type:
        if (!read_type(p, f->bytes, &type))
            return 0;
        *ARRAY_ADD(p->types, p->type_count, p->type_room) = type;
        return 1;
    case PPROF_PROFILE_period_type:
        if (!read_type(p, f->bytes, &type))
            return 0;
        p->period_type = type.type;
        return 1;
    case PPROF_PROFILE_function:
        return read_function(p, f->bytes);
    case PPROF_PROFILE_mapping:
        return read_mapping(p, f->bytes);
    default:
        return 1;
    }
}

static void read_number(struct pprof_read *p, const struct field *f)
{
    if (f->number == PPROF_PROFILE_time_nanos)
        p->time_ns = (int64_t)f->value;
    else if (f->number == PPROF_PROFILE_duration_nanos)
        p->duration_ns = (int64_t)f->value;
    else if (f->number == PPROF_PROFILE_period)
        p->period = (int64_t)f->value;
    else if (f->number == PPROF_PROFILE_default_sample_type)
        p->default_type = text_at(p, f->value);
}

static int read_field(struct pprof_read *p, enum pass pass, const struct field *f)
{
    if (f->wire == PPROF_VARINT && pass == NAMES)
        read_number(p, f);
    if (f->wire != PPROF_BYTES)
        return 1;
    if (pass == TEXTS && f->number == PPROF_PROFILE_string_table)
        add_text(p, &f->bytes);
    if (pass == NAMES)
        return read_names(p, f);
    return pass != LOCATIONS || f->number != PPROF_PROFILE_location || read_location(p, f->bytes);
}

static struct pprof_bytes all_of(const struct pprof_read *p)
{
    const uint8_t *data = (const uint8_t *)buf_text(&p->bytes);
    return (struct pprof_bytes){data, data + p->bytes.length};
}

static int read_pass(struct pprof_read *p, enum pass pass, struct error *err)
{
    struct pprof_bytes b = all_of(p);
    struct field f;
    int more, rc = 0;
    while (rc == 0 && (more = next_field(&b, &f)) > 0)
        rc = read_field(p, pass, &f) ? check_counts(p, err) : damaged(err);
    return rc ? rc : more < 0 ? damaged(err) : 0;
}

static int read_message(struct pprof_read *p, struct unpack *source, struct error *err)
{
    long got = 1;
    while (got > 0) {
        void *to = buf_room(&p->bytes, PIECE_BYTES);
        if (!to)
            return error_set(err, E2BIG, "a profile of more than %u MiB", MESSAGE_MAX >> 20);
        got = unpack_read(source, to, PIECE_BYTES);
        p->bytes.length += got > 0 ? (size_t)got : 0;
    }
    if (got == -EBADMSG)
        return error_set(err, EBADMSG, "the compressed data is damaged");
    if (got < 0)
        return error_set(err, (int)-got, "reading: %s", strerror((int)-got));
    return unpack_is_cut(source) ? error_set(err, EBADMSG, "ends before its compressed data does: it was cut") : 0;
}

int pprof_read_open(struct pprof_read *p, struct unpack *source, struct error *err)
{
    *p = (struct pprof_read){.bytes = BUF(MESSAGE_MAX), .period_type = "", .default_type = ""};
    int rc = read_message(p, source, err);
    for (int pass = 0; pass < PASSES && rc == 0; pass++)
        rc = read_pass(p, (enum pass)pass, err);
    p->next = all_of(p);
    if (rc == 0 && (!p->type_count || !p->text_count || *p->texts[0]))
        rc = damaged(err);
    return rc;
}

/* --- samples ------------------------------------------------------------------------------------------------------ */

/* One number, or several packed in bytes. */
static int each_number(const struct field *f, struct pprof_bytes *rest, uint64_t *value)
{
    if (f->wire == PPROF_BYTES)
        return rest->at < rest->end && take_varint(rest, value);
    int is_first = rest->at == NULL;
    static const uint8_t done;
    *value = f->value;
    rest->at = rest->end = &done;
    return is_first && f->wire == PPROF_VARINT;
}

static void read_numbers(struct pprof_read *p, const struct field *f)
{
    struct pprof_taken *s = &p->sample;
    struct pprof_bytes rest = f->wire == PPROF_BYTES ? f->bytes : (struct pprof_bytes){NULL, NULL};
    uint64_t value;
    while (each_number(f, &rest, &value))
        if (f->number == PPROF_SAMPLE_value)
            *ARRAY_ADD(s->values, s->value_count, s->value_room) = (int64_t)value;
        else
            *ARRAY_ADD(s->locations, s->location_count, s->location_room) = number_of(p, &p->location_ids, value);
}

static int read_tag(struct pprof_read *p, struct pprof_bytes b)
{
    struct pprof_tag tag = {.key = ""};
    struct field f;
    int more;
    while ((more = next_field(&b, &f)) > 0)
        if (f.number == PPROF_LABEL_key)
            tag.key = text_at(p, f.value);
        else if (f.number == PPROF_LABEL_str && f.value)
            tag.text = text_at(p, f.value);
        else if (f.number == PPROF_LABEL_num)
            tag.number = (int64_t)f.value;
    *ARRAY_ADD(p->sample.tags, p->sample.tag_count, p->sample.tag_room) = tag;
    return more == 0;
}

static int read_sample(struct pprof_read *p, struct pprof_bytes b)
{
    struct pprof_taken *s = &p->sample;
    struct field f;
    int more, is_good = 1;
    s->location_count = s->value_count = s->tag_count = 0;
    while (is_good && (more = next_field(&b, &f)) > 0)
        if (f.number == PPROF_SAMPLE_location_id || f.number == PPROF_SAMPLE_value)
            read_numbers(p, &f);
        else if (f.number == PPROF_SAMPLE_label && f.wire == PPROF_BYTES)
            is_good = read_tag(p, f.bytes);
    return is_good && more == 0 && s->value_count == p->type_count;
}

const struct pprof_taken *pprof_read_sample(struct pprof_read *p)
{
    struct field f;
    while (next_field(&p->next, &f) > 0) {
        if (f.number != PPROF_PROFILE_sample || f.wire != PPROF_BYTES)
            continue;
        if (read_sample(p, f.bytes))
            return &p->sample;
        p->bad_samples++;
    }
    return NULL;
}

void pprof_read_close(struct pprof_read *p)
{
    for (uint32_t i = 0; i < p->text_count; i++)
        free(p->texts[i]);
    buf_free(&p->bytes);
    map_close(&p->function_ids);
    map_close(&p->mapping_ids);
    map_close(&p->location_ids);
    free(p->types);
    free(p->functions);
    free(p->mappings);
    free(p->locations);
    free(p->lines);
    free(p->texts);
    free(p->sample.locations);
    free(p->sample.values);
    free(p->sample.tags);
    *p = (struct pprof_read){0};
}
