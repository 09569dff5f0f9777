/*
 * Which line allocated: the self line of each site, and the keys by which frames are counted.
 */
#include "../../common/array.h"
#include "../../common/map.h"
#include "finish_private.h"
#include "packed_write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CALLERS_MAX 1024 /* frames that are looked at for the function by which a library was entered */

struct line_key {
    uint32_t function, file;
    int32_t line;
    uint32_t module;
    int64_t offset;
    int64_t has_offset; /* as wide as the rest, so that the key has no padding */
};

struct state { /* of a node: what its callees inherit; frames and addresses: 0: none */
    uint32_t node;
    uint32_t caller;                  /* place of the caller's state */
    uint32_t self_source, self_named; /* frame */
    uint32_t user_source, user_named; /* the same outside the run-time library */
    uint32_t self_bare;               /* address of code without a symbol, nearer than any named frame */
    uint32_t self_family;             /* frame of the allocator family, for where there is nothing else */
    uint32_t self_address;            /* innermost address that is not ours */
    unsigned is_under_python : 1;     /* it or one of its callers is Python */
    unsigned is_bare : 1;             /* code without a symbol */
    unsigned is_family : 1;           /* of the allocator family */
    unsigned is_start : 1;            /* it and its callers are of the family: the start of the program or a thread */
    unsigned has_asked : 1;           /* it or one of its callers is code that may ask the C library for something */
    unsigned is_foreign : 1;          /* code without a symbol that no line with source called by name */
};

struct pass {
    struct model *m;
    struct text_map keys;
    /* From 1; 0: of no node. Where nodes are in preorder those on the path from the root, each behind its caller's;
     * else by node. */
    struct state *states;
    size_t state_capacity;
    uint32_t *cursors; /* by group: first site not yet met */
};

static uint32_t line_of(struct pass *p, struct line_key key)
{
    uint32_t *slot = text_map_slot(&p->keys, &key, sizeof key);
    struct model *m = p->m;
    if (!*slot) {
        *slot = (uint32_t)m->line_count;
        *ARRAY_ADD(m->lines, m->line_count, m->line_capacity) =
            (struct model_line){key.function, key.file, key.line, key.module, key.offset, (int)key.has_offset};
    }
    return *slot;
}

/* A frame without a source position counts for its function as a whole; one without a function either for nothing. */
static void key_frames(struct pass *p)
{
    for (size_t i = 1; i < p->m->frame_count; i++) {
        struct model_frame *f = &p->m->frames[i];
        if (f->line)
            f->line_key = line_of(p, (struct line_key){.function = f->function, .file = f->file, .line = f->line});
        else if (f->function)
            f->line_key = line_of(p, (struct line_key){.function = f->function});
    }
}

/* What node i takes over from its caller. Code without a source position does not take one of the run-time library that
 * called it (pthread_once, qsort, the loader running a constructor): that line says nothing about who allocates, so the
 * search goes on behind it. */
static uint32_t inherit(const struct pass *p, const struct model_address *a, uint32_t nearest, uint32_t user)
{
    const struct model_address *of = nearest ? &p->m->addresses[p->m->frames[nearest].address] : a;
    return of->is_runtime && of->module != a->module ? user : nearest;
}

/* Under Python the interpreter's lines and those of installed libraries say less than the Python line that called them:
 * only code that the user built, with its source at hand, is nearer. */
static int is_nearer(const struct pass *p, const struct model_address *a, const struct model_frame *f,
                     int is_under_python)
{
    return !is_under_python || f->is_python || (a->is_own && p->m->files[f->file].has_source);
}

/* No symbol, and no source position either. */
static int has_no_symbol(const struct model *m, const struct model_address *a)
{
    for (uint32_t n = 0; n < a->frame_count; n++)
        if (m->frames[a->first_frame + n].function || m->frames[a->first_frame + n].line)
            return 0;
    return !a->is_ours;
}

static uint32_t module_of(const struct model *m, uint32_t node)
{
    return m->addresses[m->nodes[node].address].module;
}

/* A line with source that calls a library's function by name has what the library does for it, also where that is done
 * by code without a symbol. A library that was entered through a pointer only (a plug-in, a callback) is nobody's but
 * its own: such a node, which is code without a symbol, does not take the source frame that it would inherit. Code in
 * no module (just-in-time) and the run-time library are no library in this sense, and under Python it is the Python
 * line that counts. */
static int is_foreign(const struct pass *p, const struct state *s)
{
    const struct model *m = p->m;
    const struct model_address *a = &m->addresses[m->nodes[s->node].address];
    const struct state *at = &p->states[s->caller];
    uint32_t module = a->module;
    if (!s->self_source || !module || a->is_runtime || s->is_under_python)
        return 0;
    if (at->is_bare && module_of(m, at->node) == module)
        return at->is_foreign;
    for (int steps = 0; at->node && steps < CALLERS_MAX; at = &p->states[at->caller], steps++) {
        if (module_of(m, at->node) == module && !at->is_bare)
            return 0;
        if (m->nodes[at->node].address == m->frames[s->self_source].address)
            return 1;
    }
    return 0;
}

/* The C library allocates for who called it, with lines of its own or without: strdup, getline, fopen, qsort. What it
 * has for itself is named: what a thread takes, and what nobody asked it for, before main() and behind it. */
static int is_asked(const struct model *m, const struct model_address *a, const struct state *caller)
{
    if (!a->is_c || !caller->has_asked)
        return 0;
    for (uint32_t n = 0; n < a->frame_count; n++)
        if (m->functions[m->frames[a->first_frame + n].function].is_for_itself)
            return 0;
    return 1;
}

/* Whether code without a symbol is how the C++ library starts a thread (execute_native_thread_routine, which nobody
 * exports): what the C library's start of one called. */
static int is_thread_start(const struct model_address *a, const struct state *caller)
{
    return caller->is_start && a->is_runtime && !a->is_c;
}

/* Where nothing but the allocator family is on a stack, its author's own code is inlined into one of those functions:
 * into a template's instance or a generic function (the start of a thread is one), which the program was compiled with.
 * In a program without debug information these are the ones without lines, unlike what came compiled (Rust's library).
 */
static int family_rank(const struct pass *p, uint32_t frame)
{
    const struct model_frame *f = &p->m->frames[frame];
    return !frame ? 0 : p->m->addresses[f->address].is_runtime ? 1 : f->line ? 2 : 3;
}

/* The innermost of the family's frames of the highest rank, of a node and its callers. */
static uint32_t best_family(const struct pass *p, const struct state *s, const struct model_address *a,
                            const struct state *caller)
{
    uint32_t best = caller->self_family;
    if (s->is_bare && is_thread_start(a, caller)) /* start_thread is no name of what this does */
        return 0;
    for (uint32_t n = a->is_ours ? 0 : a->frame_count; n--;) {
        uint32_t frame = a->first_frame + n;
        if (p->m->functions[p->m->frames[frame].function].is_allocator && family_rank(p, frame) >= family_rank(p, best))
            best = frame;
    }
    return best;
}

/* A node's own frames and its caller's answer are all that it needs. */
static void find_self(const struct pass *p, struct state *s)
{
    const struct model *m = p->m;
    const struct state *caller = &p->states[s->caller];
    const uint32_t address = m->nodes[s->node].address;
    const struct model_address *a = &m->addresses[address];
    uint32_t source = 0, named = 0;
    int is_allocator = a->frame_count != 0;
    s->is_under_python = caller->is_under_python;
    s->is_bare = address && has_no_symbol(m, a);
    for (uint32_t n = 0; n < a->frame_count && !a->is_ours && !source; n++) {
        const struct model_frame *f = &m->frames[a->first_frame + n];
        if (m->functions[f->function].is_allocator)
            continue;
        is_allocator = 0;
        s->is_under_python |= f->is_python;
        if (f->line && is_nearer(p, a, f, caller->is_under_python))
            source = a->first_frame + n;
        if (f->function && !named)
            named = a->first_frame + n;
    }
    /* What an allocator calls in its own module is the allocator's, with a symbol or without. */
    s->is_family =
        is_allocator || (s->is_bare && ((caller->is_family && a->module && a->module == module_of(m, caller->node)) ||
                                        is_thread_start(a, caller)));
    s->is_start = s->is_family && (!caller->node || caller->is_start);
    s->has_asked = caller->has_asked || (address && !s->is_family && !a->is_ours && !a->is_c);
    if (s->is_family || a->is_ours || is_asked(m, a, caller)) { /* passes on what its caller has */
        s->self_source = caller->self_source;
        s->self_named = caller->self_named;
        s->self_bare = caller->self_bare;
    } else {
        s->self_source = source ? source : inherit(p, a, caller->self_source, caller->user_source);
        s->self_named = named ? named : inherit(p, a, caller->self_named, caller->user_named);
        s->self_bare = s->is_bare ? address : named ? 0 : caller->self_bare;
        s->is_foreign = s->is_bare && is_foreign(p, s);
    }
    if (s->is_foreign)
        s->self_source = 0;
    s->user_source = source && !a->is_runtime ? source : s->is_foreign ? 0 : caller->user_source;
    s->user_named = named && !a->is_runtime ? named : caller->user_named;
    s->self_family = best_family(p, s, a, caller);
    s->self_address = address && !a->is_ours ? address : caller->self_address;
}

/* Frame 0: by an address without a symbol. */
static void name_site(struct model_site *site, const struct state *s)
{
    site->self_address = s->self_bare ? s->self_bare : s->self_address;
    site->self_frame = s->self_source || s->self_bare ? s->self_source : s->self_named ? s->self_named : s->self_family;
}

static void open_cursors(struct pass *p)
{
    const struct model *m = p->m;
    p->cursors = xcalloc(m->group_count + 1, sizeof *p->cursors);
    for (size_t g = 0; g < m->group_count; g++)
        p->cursors[g] = m->groups[g].first_site;
}

/* Sites of each group are in the order of their nodes. */
static void name_sites_at(struct pass *p, uint32_t node, const struct state *s)
{
    struct model *m = p->m;
    for (size_t g = 0; g < m->group_count; g++) {
        const uint32_t end = m->groups[g].first_site + m->groups[g].site_count;
        while (p->cursors[g] < end && m->sites[p->cursors[g]].node == node)
            name_site(&m->sites[p->cursors[g]++], s);
    }
}

/* Parents come before children. */
static void find_selves(struct pass *p)
{
    const struct model *m = p->m;
    uint32_t caller = 0;
    ARRAY_ROOM_ZERO(p->states, m->is_self_only ? m->node_count : 64, p->state_capacity);
    open_cursors(p);
    if (!m->is_self_only)
        name_sites_at(p, 0, &p->states[0]);
    for (size_t i = 1; i < m->node_count; i++) {
        const uint32_t parent = m->nodes[i].parent;
        if (m->is_self_only)
            caller = parent;
        while (caller && p->states[caller].node != parent)
            caller--;
        size_t place = m->is_self_only ? i : caller + 1;
        ARRAY_ROOM_ZERO(p->states, place + 1, p->state_capacity);
        p->states[place] = (struct state){.node = (uint32_t)i, .caller = caller};
        find_self(p, &p->states[place]);
        if (!m->is_self_only)
            name_sites_at(p, (uint32_t)i, &p->states[place]);
        caller = (uint32_t)place;
    }
    for (size_t i = 0; m->is_self_only && i < m->site_count; i++)
        name_site(&m->sites[i], &p->states[m->sites[i].node]);
}

static void give_line(struct pass *p, struct model_site *site)
{
    struct model *m = p->m;
    uint32_t frame = site->self_frame, address = site->self_address;
    if (frame) { /* of a line or a function, so it has a key */
        site->self_address = m->frames[frame].address;
        site->line_key = m->frames[frame].line_key;
        return;
    }
    if (!address) {
        site->line_key = line_of(p, (struct line_key){0});
        return;
    }
    struct model_address *a = &m->addresses[address];
    if (!a->line_key)
        a->line_key = line_of(p, (struct line_key){.module = a->module, .offset = a->offset, .has_offset = 1});
    site->line_key = a->line_key;
}

/* --- rows -------------------------------------------------------------------------------------------------------- */

static void bind_id(sqlite3_stmt *s, int at, int64_t id)
{
    if (id)
        sqlite3_bind_int64(s, at, id);
    else
        sqlite3_bind_null(s, at);
}

static int step(struct model *m, sqlite3_stmt *s, struct error *err)
{
    int rc = sqlite3_step(s) == SQLITE_DONE ? 0 : db_error(m->db, err);
    sqlite3_reset(s);
    return rc == 0 && finish_interrupted ? -EINTR : rc;
}

static int write_lines(struct model *m, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(
        m->db, "INSERT INTO line(line_id, function_id, file_id, line, module_key_id, offset) VALUES(?, ?, ?, ?, ?, ?)",
        &s, err);
    for (size_t i = 1; i < m->line_count && rc == 0; i++) {
        const struct model_line *l = &m->lines[i];
        sqlite3_bind_int64(s, 1, (int64_t)i);
        bind_id(s, 2, m->functions[l->function].id);
        bind_id(s, 3, m->files[l->file].id);
        sqlite3_bind_int(s, 4, l->line);
        bind_id(s, 5, l->module);
        if (l->has_offset)
            sqlite3_bind_int64(s, 6, l->offset);
        else
            sqlite3_bind_null(s, 6);
        rc = step(m, s, err);
    }
    sqlite3_finalize(s);
    return rc;
}

/* What a killed collector left in parts, and nothing has merged yet, as whole columns. */
static int merge_parts(struct model *m, sqlite3_stmt *insert, struct chunk_codec *codec, uint64_t *by_row,
                       uint32_t rows, struct error *err)
{
    int rc = db_exec(m->db, "DELETE FROM packed WHERE table_name = 'site'", err);
    for (enum packed_column c = PACKED_KEY_site; c < PACKED_site_line_id && rc == 0; c++) {
        const struct packed_values *values;
        if (packed_read(m->packed, c, &values) != 0) /* the model was made of them */
            bug("column %d of sites", (int)c);
        for (uint32_t i = 1; i <= rows; i++)
            by_row[i] = packed_at(values, i);
        rc = packed_write(insert, codec, c, by_row, rows, err);
    }
    memset(by_row, 0, (rows + 1ul) * sizeof *by_row);
    return rc;
}

/* By site id. */
static void give_lines(const struct model *m, uint64_t *values)
{
    for (size_t i = 0; i < m->site_count; i++)
        values[m->sites[i].id] = m->sites[i].line_key;
}

static int pack_sites(struct model *m, struct error *err)
{
    sqlite3_stmt *insert = NULL;
    uint32_t rows = (uint32_t)packed_count(m->packed, PACKED_TABLE_site);
    uint64_t *values = xcalloc(rows + 1ul, sizeof *values);
    if (packed_is_kept(m->packed)) {
        give_lines(m, values);
        packed_set(m->packed, PACKED_site_line_id, values);
        return 0;
    }
    struct chunk_codec *codec = chunk_codec_open();
    int rc = codec ? db_prepare(m->db, PACKED_INSERT, &insert, err) : error_set(err, ENOMEM, "out of memory");
    if (rc == 0 && !packed_is_whole(m->packed, PACKED_TABLE_site))
        rc = merge_parts(m, insert, codec, values, rows, err);
    give_lines(m, values);
    if (rc == 0)
        rc = packed_write(insert, codec, PACKED_site_line_id, values, rows, err);
    sqlite3_finalize(insert);
    chunk_codec_close(codec);
    free(values);
    return rc;
}

static int write_sites(struct model *m, struct error *err)
{
    sqlite3_stmt *s = NULL;
    if (packed_has(m->db, PACKED_TABLE_site))
        return pack_sites(m, err);
    int rc = db_prepare(m->db, "INSERT OR REPLACE INTO main.site_line(site_id, line_id) VALUES(?, ?)", &s, err);
    for (size_t i = 0; i < m->site_count && rc == 0; i++) {
        sqlite3_bind_int64(s, 1, m->sites[i].id);
        sqlite3_bind_int64(s, 2, m->sites[i].line_key);
        rc = step(m, s, err);
    }
    sqlite3_finalize(s);
    return rc;
}

void model_lines(struct model *m)
{
    struct pass p = {.m = m};
    key_frames(&p);
    find_selves(&p);
    for (size_t i = 0; i < m->site_count; i++)
        give_line(&p, &m->sites[i]);
    free(p.states);
    free(p.cursors);
    text_map_close(&p.keys);
}

int model_write_lines(struct model *m, struct error *err)
{
    int rc = write_lines(m, err);
    return rc ? rc : write_sites(m, err);
}
