/*
 * What PyTorch was doing: operators (at::_ops::NAME::call on the stack), forward and backward (Python's forward(), the
 * autograd engine), the modules that ran; ranges of the timeline for the phases. Nothing is done where no stack has an
 * operator.
 */
#include "../../common/array.h"
#include "../../common/map.h"
#include "finish_private.h"

#include "../../common/chunk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum phase { PHASE_NONE, PHASE_FORWARD, PHASE_BACKWARD, PHASE_OPTIMIZER };
static const char *const phase_names[] = {NULL, "forward", "backward", "optimizer"};

enum role {
    ROLE_NONE,
    ROLE_OP,
    ROLE_MAKER /* an operator that only makes a tensor for others */,
    ROLE_FORWARD,
    ROLE_ENGINE,
    ROLE_OPTIMIZER
};

#define MODULE_MAX 240u /* bytes of a path of modules; deeper ones keep their outermost part */
#define RANGES_MAX 512u

struct function_role {
    uint32_t role;
    uint32_t text; /* of texts: operator's name, or class */
};

struct node_state {     /* what a stack's innermost part says, inherited from its callers */
    uint32_t op, maker; /* texts; 0: none */
    uint32_t module;    /* texts */
    uint32_t root;      /* texts: the outermost module */
    uint32_t phase;
};

struct range {
    uint32_t phase, root;
    int64_t process_id, first_ns, last_ns;
};

struct pass {
    struct model *m;
    struct text_map texts; /* numbers from 1 */
    const char **text;
    size_t text_capacity;
    struct function_role *roles; /* by function index */
    struct node_state *nodes;
    struct text_map ops; /* {op, phase, module} to op_id */
    uint32_t *phases;    /* by site id: phase | root << 2 */
    size_t site_limit;
    struct range *ranges;
    size_t range_count, range_room;
};

static uint32_t text_id(struct pass *p, const char *text, size_t length)
{
    uint32_t *slot = text_map_slot(&p->texts, text, length);
    if (!*slot) {
        *slot = (uint32_t)text_map_count(&p->texts);
        ARRAY_ROOM(p->text, *slot + 1ul, p->text_capacity);
        p->text[*slot] = text_map_key(slot);
    }
    return *slot;
}

/* --- roles of functions --- */

/* Operators through which others get the memory of their results: the one that asked says more. */
static int only_makes(const char *name, size_t length)
{
    static const char *const makers[] = {"empty",     "new_empty", "_empty", "resize_",  "zeros",
                                         "new_zeros", "ones",      "full",   "new_full", "set_"};
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        size_t n = strlen(makers[i]);
        if (length >= n && memcmp(name, makers[i], n) == 0 && (length == n || name[n] == '_'))
            return 1;
    }
    return 0;
}

static struct function_role role_of(struct pass *p, const char *name, const char *plain_name, int is_python)
{
    static const char ops[] = "at::_ops::", engine[] = "torch::autograd::Engine::";
    const char *end;
    if (is_python) {
        size_t length = strlen(name), plain = strlen(plain_name);
        if (length <= plain + 1 || name[length - plain - 1] != '.')
            return (struct function_role){0};
        length -= plain + 1; /* the class, with what it is defined in */
        size_t first = length;
        while (first && name[first - 1] != '.')
            first--;
        if (strcmp(plain_name, "forward") == 0 && name[length - 1] != '>')
            return (struct function_role){ROLE_FORWARD, text_id(p, name + first, length - first)};
        return (struct function_role){strcmp(plain_name, "step") == 0 ? ROLE_OPTIMIZER : ROLE_NONE, 0};
    }
    if (strncmp(name, ops, sizeof ops - 1) == 0 && (end = strstr(name + sizeof ops - 1, "::"))) {
        char op[128];
        const char *first = name + sizeof ops - 1;
        int n = snprintf(op, sizeof op, "aten::%.*s", (int)(end - first), first);
        if (n < 0 || (size_t)n >= sizeof op)
            return (struct function_role){0};
        return (struct function_role){only_makes(first, (size_t)(end - first)) ? ROLE_MAKER : ROLE_OP,
                                      text_id(p, op, (size_t)n)};
    }
    if (strncmp(name, engine, sizeof engine - 1) == 0)
        return (struct function_role){ROLE_ENGINE, 0};
    return (struct function_role){0};
}

/* Returns whether any function is an operator; -errno. */
static int load_roles(struct pass *p, struct error *err)
{
    static const char sql[] =
        "SELECT function_id, name, plain_name, name NOT LIKE 'at::%' AND name NOT LIKE 'torch::%' FROM function"
        " WHERE name GLOB 'at::_ops::*' OR name LIKE 'torch::autograd::Engine::%'"
        " OR plain_name IN ('forward', 'step')";
    struct model *m = p->m;
    uint8_t *is_python = xcalloc(m->function_count, 1);
    for (size_t i = 1; i < m->frame_count; i++)
        if (m->frames[i].is_python)
            is_python[m->frames[i].function] = 1;
    struct map index = {0};
    for (size_t i = 1; i < m->function_count; i++)
        map_set_number(&index, (uint64_t)m->functions[i].id, 0, (uint32_t)i);
    sqlite3_stmt *s = NULL;
    int found = 0, step = SQLITE_DONE, rc = db_prepare(m->db, sql, &s, err);
    while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW) {
        uint32_t i = map_number(&index, (uint64_t)sqlite3_column_int64(s, 0), 0);
        if (i >= m->function_count || sqlite3_column_int(s, 3) != is_python[i])
            continue;
        p->roles[i] = role_of(p, db_text(s, 1), db_text(s, 2), is_python[i]);
        found |= p->roles[i].role == ROLE_OP || p->roles[i].role == ROLE_MAKER;
    }
    if (rc == 0 && step != SQLITE_DONE)
        rc = db_error(m->db, err);
    sqlite3_finalize(s);
    map_close(&index);
    free(is_python);
    return rc ? rc : found;
}

/* --- states of nodes --- */

static uint32_t module_within(struct pass *p, uint32_t outer, uint32_t class)
{
    char path[MODULE_MAX];
    if (!outer)
        return class;
    int n = snprintf(path, sizeof path, "%s.%s", p->text[outer], p->text[class]);
    return n < 0 || (size_t)n >= sizeof path ? outer : text_id(p, path, (size_t)n);
}

static void take(struct pass *p, struct node_state *n, struct function_role r)
{
    switch (r.role) {
    case ROLE_OP:
        n->op = r.text;
        break;
    case ROLE_MAKER:
        n->maker = r.text;
        break;
    case ROLE_FORWARD:
        if (n->phase != PHASE_FORWARD)
            n->module = 0;
        n->module = module_within(p, n->module, r.text);
        n->root = n->phase == PHASE_FORWARD && n->root ? n->root : r.text;
        n->phase = PHASE_FORWARD;
        break;
    case ROLE_ENGINE:
        if (n->phase != PHASE_BACKWARD)
            n->op = n->maker = 0;
        n->phase = PHASE_BACKWARD;
        n->module = 0;
        break;
    case ROLE_OPTIMIZER:
        n->phase = PHASE_OPTIMIZER;
        n->module = 0;
        break;
    default:
        break;
    }
}

/* Parents come before children. Within an address the outermost inlined frame is the caller of the others. */
static void state_nodes(struct pass *p)
{
    const struct model *m = p->m;
    for (size_t i = 1; i < m->node_count; i++) {
        const struct model_address *a = &m->addresses[m->nodes[i].address];
        p->nodes[i] = p->nodes[m->nodes[i].parent];
        for (uint32_t f = a->frame_count; f-- > 0;)
            take(p, &p->nodes[i], p->roles[m->frames[a->first_frame + f].function]);
    }
}

/* --- rows --- */

static int op_row(struct pass *p, sqlite3_stmt *s, const uint32_t key[3], uint32_t *id)
{
    uint32_t *slot = text_map_slot(&p->ops, key, 3 * sizeof *key);
    if (!*slot) {
        *slot = (uint32_t)text_map_count(&p->ops);
        sqlite3_bind_int64(s, 1, *slot);
        sqlite3_bind_text(s, 2, p->text[key[0]], -1, SQLITE_STATIC);
        sqlite3_bind_text(s, 3, phase_names[key[1]], -1, SQLITE_STATIC);
        sqlite3_bind_text(s, 4, key[2] ? p->text[key[2]] : NULL, -1, SQLITE_STATIC);
        int step = sqlite3_step(s);
        sqlite3_reset(s);
        if (step != SQLITE_DONE)
            return -EIO;
    }
    *id = *slot;
    return 0;
}

static int write_sites(struct pass *p, struct error *err)
{
    const struct model *m = p->m;
    sqlite3_stmt *op = NULL, *site = NULL;
    int rc = db_prepare(m->db, "INSERT INTO op VALUES(?, ?, ?, ?)", &op, err);
    if (rc == 0)
        rc = db_prepare(m->db, "INSERT INTO site_op VALUES(?, ?)", &site, err);
    for (size_t i = 0; rc == 0 && i < m->site_count; i++) {
        const struct node_state *n = &p->nodes[m->sites[i].node];
        uint32_t id, key[3] = {n->op ? n->op : n->maker, n->phase, n->module};
        int64_t site_id = m->sites[i].id;
        if (site_id >= 0 && (uint64_t)site_id < p->site_limit)
            p->phases[site_id] = n->phase | n->root << 2;
        if (!key[0])
            continue;
        if (op_row(p, op, key, &id)) {
            rc = db_error(m->db, err);
            break;
        }
        sqlite3_bind_int64(site, 1, site_id);
        sqlite3_bind_int64(site, 2, id);
        if (sqlite3_step(site) != SQLITE_DONE)
            rc = db_error(m->db, err);
        sqlite3_reset(site);
    }
    sqlite3_finalize(op);
    sqlite3_finalize(site);
    return rc;
}

/* The view resident_sum of these sites, over what packed_views shows: the file's own names the file's own tables. */
static const char resident_sum[] =
    "SELECT r.site_id, CAST(total(r.resident_bytes * c.is_peak) AS INTEGER) AS resident_bytes, "
    "CAST(total(r.shared_bytes * c.is_peak) AS INTEGER) AS resident_shared_bytes, "
    "CAST(total(r.huge_bytes * c.is_peak) AS INTEGER) AS resident_huge_bytes, "
    "CAST(total(r.swapped_bytes * c.is_peak) AS INTEGER) AS swapped_bytes, "
    "CAST(total(r.untouched_bytes * c.is_peak) AS INTEGER) AS untouched_bytes, "
    "CAST(total(r.resident_bytes * c.is_last) AS INTEGER) AS resident_end_bytes "
    "FROM resident_site r JOIN resident_scan c USING(scan_id) WHERE r.site_id IN (SELECT site_id FROM site_op) GROUP "
    "BY r.site_id";

/* Sums of sites, by kind and for all kinds; what sites do not sum up to is left unknown. Few sites are below an
 * operator: they choose the rows of the large tables (CROSS JOIN: in this order), not the other way round. */
static int write_accounts(const struct pass *p, struct error *err)
{
    static const char *const kinds[] = {"s.kind", "'all'"};
    int rc = 0;
    for (int i = 0; rc == 0 && i < 2; i++) {
        struct buf sql = BUF(1 << 16);
        buf_puts(&sql, "INSERT OR REPLACE INTO account(scope, key_id, inclusive, device_id, kind");
#define STAT(column, name, unit, combine, text) buf_puts(&sql, ", " #column);
#include "../../common/stat.def"
#undef STAT
        buf_printf(&sql, ") SELECT 'op', o.op_id, 0, s.device_id, %s", kinds[i]);
#define FORM_sum(column)                        ", sum(s." column ")"
#define FORM_max(column)                        ", max(s." column ")"
#define FORM_exact(column)                      ", CASE WHEN count(*) = 1 THEN max(s." column ") END"
#define STAT(column, name, unit, combine, text) buf_puts(&sql, FORM_##combine(#column));
#include "../../common/stat.def"
#undef STAT
        buf_printf(&sql, " FROM site_op o CROSS JOIN site s USING(site_id) GROUP BY o.op_id, s.device_id%s",
                   i ? "" : ", s.kind");
        buf_puts(&sql, "; INSERT OR REPLACE INTO resident_account(scope, key_id, inclusive, device_id, kind");
#define STAT(...)
#define SCANNED(column, name, unit, text) buf_puts(&sql, ", " #column);
#include "../../common/stat.def"
#undef STAT
        buf_printf(&sql, ") SELECT 'op', o.op_id, 0, s.device_id, %s", kinds[i]);
#define STAT(...)
#define SCANNED(column, name, unit, text) buf_puts(&sql, ", sum(r." #column ")");
#include "../../common/stat.def"
#undef STAT
        buf_printf(&sql,
                   " FROM site_op o CROSS JOIN site s USING(site_id) JOIN (%s) r USING(site_id)"
                   " GROUP BY o.op_id, s.device_id%s",
                   resident_sum, i ? "" : ", s.kind");
        rc = sql.failed ? error_set(err, ENOMEM, "no memory") : db_exec(p->m->db, sql.data, err);
        buf_free(&sql);
    }
    return rc;
}

/* --- ranges of the phases --- */

/* Each process is in one phase at a time: backward runs in threads of its own for a GPU, while the main one waits. */
static void see(struct pass *p, const struct chunk_event *e)
{
    if (!chunk_op_is_birth(e->op) || e->site_id >= p->site_limit || !p->phases[e->site_id])
        return;
    uint32_t phase = p->phases[e->site_id] & 3, root = phase == PHASE_FORWARD ? p->phases[e->site_id] >> 2 : 0;
    struct range *r = NULL;
    for (size_t i = p->range_count; i-- > 0 && !r;)
        if (p->ranges[i].process_id == e->process_id)
            r = &p->ranges[i];
    if (r && r->phase == phase && r->root == root) {
        r->last_ns = (int64_t)e->time_ns;
        return;
    }
    if (!phase || p->range_count == RANGES_MAX)
        return;
    p->ranges[p->range_count++] = (struct range){phase, root, e->process_id, (int64_t)e->time_ns, (int64_t)e->time_ns};
}

static int find_ranges(struct pass *p, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int step = SQLITE_DONE, rc = db_prepare(p->m->db, "SELECT data FROM event_chunk ORDER BY chunk_id", &s, err);
    struct chunk_codec *codec = chunk_codec_open();
    p->ranges = xcalloc(RANGES_MAX, sizeof *p->ranges);
    while (rc == 0 && codec && p->range_count < RANGES_MAX && (step = sqlite3_step(s)) == SQLITE_ROW) {
        const struct chunk_event *events;
        long n = chunk_decode_events(codec, sqlite3_column_blob(s, 0), (size_t)sqlite3_column_bytes(s, 0), &events);
        for (long i = 0; i < n; i++) /* a damaged chunk has none */
            see(p, &events[i]);
    }
    if (rc == 0 && step != SQLITE_DONE && step != SQLITE_ROW)
        rc = db_error(p->m->db, err);
    chunk_codec_close(codec);
    sqlite3_finalize(s);
    return rc;
}

static int write_ranges(const struct pass *p, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(
        p->m->db,
        "INSERT INTO mark(process_id, name, start_ns, end_ns, is_range, domain) VALUES(?, ?, ?, ?, 1, 'pytorch')", &s,
        err);
    for (size_t i = 0; rc == 0 && i < p->range_count; i++) {
        const struct range *r = &p->ranges[i];
        char name[MODULE_MAX + 16];
        snprintf(name, sizeof name, "%s%s%s", phase_names[r->phase], r->root ? " " : "",
                 r->root ? p->text[r->root] : "");
        sqlite3_bind_int64(s, 1, r->process_id);
        sqlite3_bind_text(s, 2, name, -1, SQLITE_STATIC);
        sqlite3_bind_int64(s, 3, r->first_ns);
        sqlite3_bind_int64(s, 4, r->last_ns);
        if (sqlite3_step(s) != SQLITE_DONE)
            rc = db_error(p->m->db, err);
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    return rc;
}

int model_ops(struct model *m, struct error *err)
{
    struct pass p = {.m = m};
    p.roles = xcalloc(m->function_count + 1, sizeof *p.roles);
    int found = load_roles(&p, err), rc = found < 0 ? found : 0;
    if (found > 0) {
        for (size_t i = 0; i < m->site_count; i++)
            if (m->sites[i].id >= (int64_t)p.site_limit && m->sites[i].id < INT32_MAX)
                p.site_limit = (size_t)m->sites[i].id + 1;
        p.phases = xcalloc(p.site_limit + 1, sizeof *p.phases);
        p.nodes = xcalloc(m->node_count + 1, sizeof *p.nodes);
        state_nodes(&p);
        rc = write_sites(&p, err);
        if (rc == 0)
            rc = write_accounts(&p, err);
        if (rc == 0)
            rc = find_ranges(&p, err);
        if (rc == 0)
            rc = write_ranges(&p, err);
    }
    text_map_close(&p.texts);
    text_map_close(&p.ops);
    free(p.text);
    free(p.roles);
    free(p.phases);
    free(p.nodes);
    free(p.ranges);
    return rc;
}
