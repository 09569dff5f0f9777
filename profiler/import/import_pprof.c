/*
 * Heap profiles of pprof: sums by stack at one instant, so accounts without events. What the recording's tables have a
 * place for and the profile does not know is 0 there, and said.
 */
#include "../../common/array.h"
#include "../../common/kind.h"
#include "../../common/map.h"
#include "../../common/units.h"
#include "../../formats/pprof/pprof_read.h"
#include "../collect/facts.h"
#include "../store/named.h"
#include "../store/stacks.h"
#include "../store/store.h"
#include "../symbols/symbols.h"
#include "import_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES_MAX 255u
#define SITES_MAX   (1u << 24)
#define VALUE_MAX   (1ll << 53) /* of a sample; no sum of any of them leaves 63 bits before SUM_MAX stops it */
#define SUM_MAX     (1ll << 62)

enum meaning { ALLOC_COUNT, ALLOC_BYTES, END_COUNT, END_BYTES, PEAK_COUNT, PEAK_BYTES, MEANINGS };

/* What writers call the values. Of objects and space alone pprof's own readers take what is live. */
static const struct {
    const char *type, *unit; /* unit NULL: any */
    enum meaning meaning;
} type_names[] = {
    {"alloc_objects", NULL, ALLOC_COUNT},
    {"alloc_space", NULL, ALLOC_BYTES},
    {"inuse_objects", NULL, END_COUNT},
    {"inuse_space", NULL, END_BYTES},
    {"peak_objects", NULL, PEAK_COUNT},
    {"peak_space", NULL, PEAK_BYTES},
    {"objects", NULL, END_COUNT},
    {"space", NULL, END_BYTES},
    {"allocations", "count", ALLOC_COUNT},
    {"allocations", "bytes", ALLOC_BYTES},
    {"live_allocations", "count", END_COUNT},
    {"live_allocations", "bytes", END_BYTES},
};

struct sums {
    int64_t value[MEANINGS];
};

struct site {
    struct sums sums;
    int64_t largest_bytes; /* Go tells the size of a sample's blocks; 0: not known */
    uint32_t stack;
    uint8_t device, kind;
};

struct profile {
    struct importing *importing;
    struct pprof_read file;
    int type[MEANINGS]; /* which value of a sample; -1: none */
    struct stacks *stacks;
    struct named *named;
    uint32_t *nodes; /* by location: its address id, where it is one address */
    struct map code; /* module and offset -> location that has it */
    struct map site_map;
    struct site *sites;
    uint32_t site_count, site_room;
    char *devices[DEVICES_MAX];
    unsigned device_count;
    uint64_t bad_values; /* negative, or larger than any memory: taken as 0 */
    uint64_t samples, left_out;
};

/* --- what the values mean ----------------------------------------------------------------------------------------- */

static void find_types(struct profile *p)
{
    for (int m = 0; m < MEANINGS; m++)
        p->type[m] = -1;
    for (size_t n = 0; n < sizeof type_names / sizeof *type_names; n++)
        for (uint32_t i = 0; i < p->file.type_count; i++) {
            const struct pprof_type *t = &p->file.types[i];
            int is_it = strcmp(t->type, type_names[n].type) == 0 &&
                        (!type_names[n].unit || strcmp(t->unit, type_names[n].unit) == 0);
            if (is_it && p->type[type_names[n].meaning] < 0)
                p->type[type_names[n].meaning] = (int)i;
        }
}

static int knows(const struct profile *p, enum meaning m)
{
    return p->type[m] >= 0;
}

static int check_types(const struct profile *p, struct error *err)
{
    struct buf names = BUF(400);
    if (knows(p, ALLOC_BYTES) || knows(p, END_BYTES) || knows(p, PEAK_BYTES))
        return 0;
    for (uint32_t i = 0; i < p->file.type_count; i++)
        buf_printf(&names, "%s%.40s/%.20s", i ? ", " : "", p->file.types[i].type, p->file.types[i].unit);
    int rc = error_set(err, EINVAL, "is no heap profile: its values are %s", buf_text(&names));
    buf_free(&names);
    return rc;
}

/* --- stacks ------------------------------------------------------------------------------------------------------- */

static int ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* free_frame frees what it made. */
static void name_frame(const struct profile *p, const struct pprof_code_line *line, struct named_frame *f)
{
    static const struct pprof_code_function none = {"", "", "", 0};
    const struct pprof_code_function *fn = line->function ? &p->file.functions[line->function] : &none;
    const char *name = *fn->name ? fn->name : fn->system_name;
    int is_python = ends_in(fn->file, ".py") || *fn->file == '<';
    /* names of Go have dots and slashes, which are no scopes of C++ */
    int has_plain = *name && !is_python && !ends_in(fn->file, ".go");
    *f = (struct named_frame){
        .function = name,
        .plain_name = has_plain ? symbols_plain_name(name) : NULL,
        .file = *fn->file ? fn->file : NULL,
        .line = line->line > 0 && line->line < UINT32_MAX ? (uint32_t)line->line : 0,
        .first_line = fn->start_line > 0 && fn->start_line < UINT32_MAX ? (uint32_t)fn->start_line : 0,
        .language = is_python ? "python" : "native",
    };
}

static void free_frame(struct named_frame *f)
{
    free((void *)(uintptr_t)f->plain_name);
}

/* Whether two locations mean the same code. */
static int is_same(const struct profile *p, uint32_t a, uint32_t b)
{
    const struct pprof_code_location *x = &p->file.locations[a], *y = &p->file.locations[b];
    if (a == b)
        return 1;
    for (uint32_t i = 0; i < x->line_count && x->line_count == y->line_count; i++) {
        const struct pprof_code_line *k = &p->file.lines[x->first_line + i], *l = &p->file.lines[y->first_line + i];
        if (k->function != l->function || k->line != l->line)
            return 0;
    }
    return x->line_count == y->line_count;
}

/* The address of a location that has one of its own; 0: it has none, and its frames name themselves. */
static uint32_t address_of(struct profile *p, uint32_t number)
{
    const struct pprof_code_location *l = &p->file.locations[number];
    const struct pprof_code_mapping *m = l->mapping ? &p->file.mappings[l->mapping] : NULL;
    struct named_frame chain[64];
    if (!m || !*m->path || !l->address || l->line_count > 64)
        return 0;
    uint64_t offset = (l->address >= m->start ? l->address - m->start + m->offset : l->address) & INT64_MAX;
    uint64_t *first = map_slot(&p->code, l->mapping, offset);
    if (!*first)
        *first = number;
    if (!is_same(p, (uint32_t)*first, number))
        return 0;
    for (uint32_t i = 0; i < l->line_count; i++)
        name_frame(p, &p->file.lines[l->first_line + i], &chain[i]);
    const struct named_code code = {m->path, *m->build_id ? m->build_id : NULL, offset};
    uint32_t id = named_code(p->named, IMPORT_PROCESS, &code, chain, l->line_count);
    for (uint32_t i = 0; i < l->line_count; i++)
        free_frame(&chain[i]);
    return id;
}

/* The node of a location under its caller's. */
static uint32_t node_of(struct profile *p, uint32_t caller, uint32_t number)
{
    const struct pprof_code_location *l = &p->file.locations[number];
    if (!p->nodes[number] && (p->nodes[number] = address_of(p, number)) == 0)
        p->nodes[number] = UINT32_MAX;
    if (p->nodes[number] != UINT32_MAX)
        return stacks_node(p->stacks, caller, 0, p->nodes[number]);
    for (uint32_t i = l->line_count; i-- > 0;) {
        struct named_frame f;
        name_frame(p, &p->file.lines[l->first_line + i], &f);
        uint32_t id = named_address(p->named, &f);
        caller = id ? stacks_node(p->stacks, caller, 0, id) : caller;
        free_frame(&f);
    }
    return caller;
}

static uint32_t stack_of(struct profile *p, const struct pprof_taken *s)
{
    uint32_t node = 0;
    for (uint32_t i = s->location_count; i-- > 0;)
        if (s->locations[i])
            node = node_of(p, node, s->locations[i]);
    return node;
}

/* --- sites -------------------------------------------------------------------------------------------------------- */

/* The first is the host; past the last that there is room for, that one. */
static unsigned device_of(struct profile *p, const char *name)
{
    for (unsigned i = 0; i < p->device_count; i++)
        if (strcmp(p->devices[i], name) == 0)
            return i;
    if (p->device_count == DEVICES_MAX || !*name)
        return 0;
    p->devices[p->device_count] = xstrdup(name);
    return p->device_count++;
}

static unsigned kind_of(const char *name)
{
    for (unsigned i = 0; i < KIND_COUNT; i++)
        if (strcmp(kind_name(i), name) == 0)
            return i;
    return KIND_heap;
}

static int64_t value_of(struct profile *p, const struct pprof_taken *s, enum meaning m)
{
    int64_t value = knows(p, m) ? s->values[p->type[m]] : 0;
    if (value >= 0 && value <= VALUE_MAX)
        return value;
    p->bad_values++;
    return 0;
}

static void add(struct sums *sums, const struct sums *more)
{
    for (int m = 0; m < MEANINGS; m++)
        sums->value[m] = sums->value[m] < SUM_MAX - more->value[m] ? sums->value[m] + more->value[m] : SUM_MAX;
}

/* What follows from the others: what is live was allocated; without a peak of their own, that of the profile's instant
 * stands for it. */
static void fill_in(const struct profile *p, struct sums *s)
{
    static const enum meaning of[][2] = {{ALLOC_COUNT, END_COUNT}, {ALLOC_BYTES, END_BYTES}};
    for (int i = 0; i < 2; i++)
        if (!knows(p, of[i][0]) || s->value[of[i][0]] < s->value[of[i][1]])
            s->value[of[i][0]] = s->value[of[i][1]];
    if (!knows(p, PEAK_BYTES)) {
        s->value[PEAK_BYTES] = s->value[END_BYTES];
        s->value[PEAK_COUNT] = s->value[END_COUNT];
    }
}

static void take_sample(struct profile *p, const struct pprof_taken *s)
{
    struct sums sums;
    unsigned device = 0, kind = KIND_heap;
    int64_t block_bytes = 0;
    for (uint32_t i = 0; i < s->tag_count; i++)
        if (s->tags[i].text && strcmp(s->tags[i].key, "device") == 0)
            device = device_of(p, s->tags[i].text);
        else if (s->tags[i].text && strcmp(s->tags[i].key, "kind") == 0)
            kind = kind_of(s->tags[i].text);
        else if (!s->tags[i].text && strcmp(s->tags[i].key, "bytes") == 0)
            block_bytes = s->tags[i].number;
    for (int m = 0; m < MEANINGS; m++)
        sums.value[m] = value_of(p, s, (enum meaning)m);
    fill_in(p, &sums);
    p->samples++;
    uint32_t stack = stack_of(p, s);
    uint32_t at = map_number_or(&p->site_map, stack, device << 8 | kind, p->site_count);
    if (at == p->site_count)
        *ARRAY_ADD(p->sites, p->site_count, p->site_room) =
            (struct site){.stack = stack, .device = (uint8_t)device, .kind = (uint8_t)kind};
    add(&p->sites[at].sums, &sums);
    if (block_bytes > p->sites[at].largest_bytes && block_bytes <= VALUE_MAX)
        p->sites[at].largest_bytes = block_bytes;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static void write_site(struct store *store, uint32_t id, const struct site *s)
{
    static const char sql[] =
        "INSERT INTO site(site_id, stack_id, process_id, device_id, kind, alloc_count, alloc_bytes, free_count, "
        "free_bytes, temporary_count, temporary_bytes, at_peak_bytes, at_peak_count, at_kind_peak_bytes, "
        "own_peak_bytes, end_bytes, end_count, active_peak_bytes, reserved_peak_bytes, largest_bytes, lifetime_ns) "
        "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?6 - ?8, ?7 - ?9, 0, 0, ?11, ?10, ?11, ?11, ?9, ?8, 0, 0, ?12, 0)";
    sqlite3_stmt *q = store_statement(store, sql);
    sqlite3_bind_int64(q, 1, id);
    sqlite3_bind_int64(q, 2, s->stack);
    sqlite3_bind_int64(q, 3, IMPORT_PROCESS);
    sqlite3_bind_int64(q, 4, s->device);
    sqlite3_bind_text(q, 5, kind_name(s->kind), -1, SQLITE_STATIC);
    for (int m = 0; m < MEANINGS; m++)
        sqlite3_bind_int64(q, 6 + m, s->sums.value[m]);
    sqlite3_bind_int64(q, 12, s->largest_bytes);
    store_step(store, q);
}

static void write_total(struct profile *p, unsigned device, unsigned kind, const struct sums *s)
{
    static const char total[] =
        "INSERT INTO total(device_id, kind, alloc_count, alloc_bytes, free_count, free_bytes, temporary_count, "
        "temporary_bytes, peak_active_bytes, peak_active_ns, peak_active_count, peak_reserved_bytes, peak_reserved_ns, "
        "end_active_bytes, end_count, realloc_count, lifetime_ns) "
        "VALUES(?1, ?2, ?3, ?4, ?3 - ?5, ?4 - ?6, 0, 0, ?8, 0, ?7, 0, 0, ?6, ?5, 0, 0)";
    static const char peak[] = "INSERT INTO peak(device_id, kind, what, rank, time_ns, value_bytes) "
                               "VALUES(?1, ?2, 'active', 0, 0, ?3)";
    sqlite3_stmt *q = store_statement(p->importing->store, total);
    sqlite3_bind_int64(q, 1, device);
    sqlite3_bind_text(q, 2, kind_name(kind), -1, SQLITE_STATIC);
    for (int m = 0; m < MEANINGS; m++)
        sqlite3_bind_int64(q, 3 + m, s->value[m]);
    store_step(p->importing->store, q);
    q = s->value[PEAK_BYTES] ? store_statement(p->importing->store, peak) : NULL;
    if (!q)
        return;
    sqlite3_bind_int64(q, 1, device);
    sqlite3_bind_text(q, 2, kind_name(kind), -1, SQLITE_STATIC);
    sqlite3_bind_int64(q, 3, s->value[PEAK_BYTES]);
    store_step(p->importing->store, q);
}

static void write_device(struct profile *p, unsigned device)
{
    struct sums all = {{0}}, kinds[KIND_COUNT] = {{{0}}};
    unsigned has = 0;
    import_device(p->importing->store, device, p->devices[device]);
    for (uint32_t i = 0; i < p->site_count; i++)
        if (p->sites[i].device == device) {
            has |= 1u << p->sites[i].kind;
            add(&kinds[p->sites[i].kind], &p->sites[i].sums);
            add(&all, &p->sites[i].sums);
        }
    for (unsigned kind = 0; kind < KIND_COUNT; kind++)
        if (has >> kind & 1)
            write_total(p, device, kind, &kinds[kind]);
    if (has)
        write_total(p, device, KIND_all, &all);
}

/* --- what is not known -------------------------------------------------------------------------------------------- */

static void note_types(const struct profile *p, struct buf *note)
{
    char text[UNITS_TEXT];
    buf_puts(note,
             "a profile holds sums by stack: nothing is known of times, lifetimes, temporaries and reserved memory");
    if (!knows(p, PEAK_BYTES))
        buf_puts(note, ". The peak is not known: in its place stands what was live when the profile was written");
    if (!knows(p, ALLOC_BYTES))
        buf_puts(note, ". Nor what was freed before: allocated is what was live");
    if (!knows(p, END_BYTES))
        buf_puts(note, ". Nor what was live: all counts as freed");
    if (p->file.period > 1 && strcmp(p->file.period_type, "space") == 0)
        buf_printf(note, ". It was sampled, one allocation in %s: its numbers are estimates",
                   units_bytes(text, p->file.period));
}

static void write_facts(struct profile *p)
{
    struct store *store = p->importing->store;
    struct buf note = BUF(4096);
    char count[UNITS_TEXT];
    const struct {
        const char *name, *text;
        uint64_t value;
    } facts[] = {
        {"bad_value", "values below 0 or larger than any memory, taken as 0", p->bad_values},
        {"bad_sample", "samples of another number of values than the profile has types, left out", p->file.bad_samples},
        {"bad_number", "numbers that lead to nothing in the profile", p->file.bad_numbers},
        {"left_out", "samples beyond 16,777,216 stacks, left out", p->left_out},
    };
    note_types(p, &note);
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        store_counter(store, 0, facts[i].name, facts[i].value, facts[i].text);
        if (facts[i].value)
            buf_printf(&note, ". Also %s %s", units_count(count, (int64_t)facts[i].value), facts[i].text);
    }
    store_meta_text(store, "import_note", buf_text(&note));
    p->importing->note = buf_take(&note);
}

static void write_before(struct profile *p)
{
    struct importing *i = p->importing;
    int64_t duration_ns = p->file.duration_ns > 0 ? p->file.duration_ns : 0;
    int64_t start_ns = p->file.time_ns > duration_ns ? p->file.time_ns - duration_ns : 0;
    const char *program = p->file.mapping_count ? p->file.mappings[1].path : "";
    const struct import_meta meta = {.start_unix_ns = start_ns,
                                     .duration_ns = duration_ns,
                                     .clock = "none",
                                     .events_kept = "none",
                                     .command = *program ? program : "pprof profile"};
    import_meta(i, &meta);
    import_process(i->store, program, program);
    import_hook(i->store, 0, "pprof", "heap");
}

static void write_all(struct profile *p)
{
    struct store *store = p->importing->store;
    struct facts facts = {.processes = 1, .duration_ns = p->file.duration_ns > 0 ? p->file.duration_ns : 0};
    const struct pprof_taken *s;
    p->stacks = stacks_open(store);
    p->named = named_open(store, p->stacks);
    p->nodes = xcalloc(p->file.location_count + 1ul, sizeof *p->nodes);
    p->devices[p->device_count++] = xstrdup("host");
    write_before(p);
    while ((s = pprof_read_sample(&p->file)))
        if (p->site_count < SITES_MAX)
            take_sample(p, s);
        else
            p->left_out++;
    stacks_write(p->stacks);
    for (uint32_t i = 0; i < p->site_count; i++)
        write_site(store, i + 1, &p->sites[i]);
    for (unsigned i = 0; i < p->device_count; i++)
        write_device(p, i);
    write_facts(p);
    facts_end(store, &facts);
    store_commit(store);
    named_close(p->named);
    stacks_close(p->stacks);
}

/* Writers begin with the types of values or the period's, a message of two numbers, or with the texts, of which the
 * first is empty. Or it is the text that came before this format. */
static int is_pprof(const unsigned char *head, size_t length)
{
    if (length >= 13 && memcmp(head, "heap profile:", 13) == 0)
        return 1;
    if (length < 3)
        return 0;
    return ((head[0] == 0x0a || head[0] == 0x5a) && (head[2] == 0x08 || head[2] == 0x10)) ||
           (head[0] == 0x32 && head[1] == 0);
}

static int read_pprof(struct importing *i, struct error *err)
{
    unsigned char first = 0;
    if (unpack_peek(i->unpack, &first, 1) == 1 && first == 'h')
        return error_set(err, ENOTSUP,
                         "is a heap profile as text; pprof makes one of its own of it: pprof -proto "
                         "PROGRAM FILE");
    struct profile *p = xcalloc(1, sizeof *p);
    p->importing = i;
    int rc = pprof_read_open(&p->file, i->unpack, err);
    find_types(p);
    if (rc == 0)
        rc = check_types(p, err);
    if (rc == 0)
        rc = import_begin(i, err);
    if (rc == 0)
        write_all(p);
    pprof_read_close(&p->file);
    for (unsigned d = 0; d < p->device_count; d++)
        free(p->devices[d]);
    map_close(&p->code);
    map_close(&p->site_map);
    free(p->nodes);
    free(p->sites);
    free(p);
    return rc;
}

/* What rows of one stack held at most is known of none. */
const struct import_form import_pprof = {"pprof heap profile", is_pprof, read_pprof,
                                         "UPDATE account SET own_peak_bytes = NULL;" IMPORT_NO_RESERVED};
