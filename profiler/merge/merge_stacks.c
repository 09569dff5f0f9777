/* Stacks, and the sites that allocate in them: a site is a stack on a device and of a kind, its numbers are added. */
#include "merge_private.h"

#include "../store/packer.h"

#include "../../common/array.h"

#include <errno.h>
#include <string.h>

static unsigned kind_number(const char *name)
{
    unsigned kind = 0;
    while (kind < KIND_COUNT && strcmp(kind_name(kind), name) != 0)
        kind++;
    return kind;
}

static const struct packed_values *column_of(struct input *in, enum packed_column column)
{
    const struct packed_values *values = NULL;
    int rc = in->packed ? packed_read(in->packed, column, &values) : -ENOMEM;
    if (rc)
        merge_failed(in, rc, packed_error(rc));
    return rc ? NULL : values;
}

/* --- stacks ------------------------------------------------------------------------------------------------------ */

/* caller: 0 for none. A frame whose address is not known is left out. */
static void add_node(struct input *in, int64_t id, int64_t caller, int64_t address_id, unsigned flags)
{
    int64_t address = merge_find(in, MERGE_ADDRESS, address_id);
    int64_t node = caller;
    if (address)
        node = nodes_child(in->m->nodes, caller ? (uint32_t)caller : NODES_ROOT + (flags & 15), (uint32_t)address);
    if (node > PACKED_ROWS_MAX)
        merge_failed(in, EFBIG, "more stacks than memprof has room for");
    else
        merge_map(in, MERGE_STACK, id, node);
}

static void stack_row(struct input *in, sqlite3_stmt *s)
{
    if (in->rc != -EFBIG)
        add_node(in, sqlite3_column_int64(s, 0), merge_column(in, MERGE_STACK, s, 1), sqlite3_column_int64(s, 2),
                 (unsigned)sqlite3_column_int(s, 3));
}

static void packed_stacks(struct input *in)
{
    const struct packed_values *parents = column_of(in, PACKED_stack_parent_id),
                               *addresses = column_of(in, PACKED_stack_address_id),
                               *flags = column_of(in, PACKED_stack_flags);
    if (!parents || !addresses || !flags)
        return;
    long count = packed_count(in->packed, PACKED_TABLE_stack);
    for (uint32_t i = 1; i <= count && in->rc != -EFBIG; i++)
        add_node(in, i, merge_find(in, MERGE_STACK, (int64_t)packed_at(parents, i)), (int64_t)packed_at(addresses, i),
                 (unsigned)packed_at(flags, i));
}

/* --- sites ------------------------------------------------------------------------------------------------------- */

static int64_t combine_sum(int64_t a, int64_t b)
{
    return wrap_add(a, b);
}

static int64_t combine_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#define combine_exact combine_sum /* of own peaks, as of the other ones: the sum of what each recording says */

/* NULL: it names no device or kind that there is. */
static struct merge_site *site_of(struct input *in, int64_t id, int64_t stack, int64_t process, int64_t device,
                                  unsigned kind)
{
    struct merge *m = in->m;
    if (!device || kind >= KIND_COUNT) {
        merge_failed(in, EBADMSG, "damaged: a site is of no device or kind");
        return NULL;
    }
    if (m->site_count >= PACKED_ROWS_MAX) {
        merge_failed(in, EFBIG, "more stacks than memprof has room for");
        return NULL;
    }
    uint32_t at = map_number_or(&m->site_map, (uint64_t)stack, (uint64_t)(device - 1) << 8 | kind, m->site_count);
    if (at == m->site_count)
        *ARRAY_ADD(m->sites, m->site_count, m->site_capacity) =
            (struct merge_site){(uint32_t)stack, (uint32_t)process, (uint8_t)(device - 1), (uint8_t)kind, {0}, 0, 0, 0};
    merge_map(in, MERGE_SITE, id, at + 1);
    return &m->sites[at];
}

static void site_add(struct merge_site *site, const int64_t stat[MERGE_STATS])
{
#define STAT(column, name, unit, combine, text)                                                                        \
    site->stat[MERGE_##column] = combine_##combine(site->stat[MERGE_##column], stat[MERGE_##column]);
#include "../../common/stat.def"
#undef STAT
}

static void site_row(struct input *in, sqlite3_stmt *s)
{
    int64_t stat[MERGE_STATS];
    struct merge_site *site = site_of(in, sqlite3_column_int64(s, 0), merge_column(in, MERGE_STACK, s, 1),
                                      merge_column(in, MERGE_PROCESS, s, 2), merge_column(in, MERGE_DEVICE, s, 3),
                                      kind_number(db_text(s, 4)));
    for (int i = 0; i < MERGE_STATS; i++)
        stat[i] = sqlite3_column_int64(s, 5 + i);
    if (site)
        site_add(site, stat);
}

static struct merge_site *known_site(struct input *in, sqlite3_stmt *s)
{
    int64_t id = merge_column(in, MERGE_SITE, s, 0);
    return id ? &in->m->sites[id - 1] : NULL;
}

static void teardown_row(struct input *in, sqlite3_stmt *s)
{
    struct merge_site *site = known_site(in, s);
    if (!site)
        return;
    site->torn_bytes = wrap_add(site->torn_bytes, sqlite3_column_int64(s, 1));
    site->torn_count = wrap_add(site->torn_count, sqlite3_column_int64(s, 2));
}

static void kept_row(struct input *in, sqlite3_stmt *s)
{
    struct merge_site *site = known_site(in, s);
    if (site)
        site->kept_count = wrap_add(site->kept_count, sqlite3_column_int64(s, 1));
}

static void packed_sites(struct input *in)
{
    const struct packed_values *columns[PACKED_COLUMNS];
    for (enum packed_column c = PACKED_KEY_site; c < PACKED_site_line_id; c++)
        if (!(columns[c] = column_of(in, c)))
            return;
    long count = packed_count(in->packed, PACKED_TABLE_site);
    for (uint32_t i = 1; i <= count; i++) {
        int64_t stat[MERGE_STATS];
        struct merge_site *site =
            site_of(in, i, merge_find(in, MERGE_STACK, (int64_t)packed_at(columns[PACKED_site_stack_id], i)),
                    merge_find(in, MERGE_PROCESS, (int64_t)packed_at(columns[PACKED_site_process_id], i)),
                    merge_find(in, MERGE_DEVICE, (int64_t)packed_at(columns[PACKED_site_device_id], i)),
                    (unsigned)packed_at(columns[PACKED_site_kind], i));
        for (int k = 0; k < MERGE_STATS; k++)
            stat[k] = (int64_t)packed_at(columns[PACKED_STATS + k], i);
        if (!site)
            continue;
        site_add(site, stat);
        site->torn_bytes = wrap_add(site->torn_bytes, (int64_t)packed_at(columns[PACKED_site_torn_bytes], i));
        site->torn_count = wrap_add(site->torn_count, (int64_t)packed_at(columns[PACKED_site_torn_count], i));
        site->kept_count = wrap_add(site->kept_count, (int64_t)packed_at(columns[PACKED_site_kept_count], i));
    }
}

/* What processes freed or kept as they ended is packed where any of it is. */
static int is_packed_beside(struct input *in)
{
    return packed_has_column(in->db, PACKED_site_torn_count) || packed_has_column(in->db, PACKED_site_kept_count);
}

#define STAT(column, name, unit, combine, text) ", " #column
static const char site_sql[] = "SELECT site_id, stack_id, process_id, device_id, kind"
#include "../../common/stat.def"
                               " FROM main.site ORDER BY site_id";
#undef STAT

void merge_stacks(struct input *in)
{
    int has_packed = packed_has(in->db, PACKED_TABLE_site);
    if (packed_has(in->db, PACKED_TABLE_stack))
        packed_stacks(in);
    else
        merge_each(in, "SELECT stack_id, parent_id, address_id, flags FROM main.stack ORDER BY stack_id", stack_row);
    if (has_packed)
        packed_sites(in);
    else
        merge_each(in, site_sql, site_row);
    if (has_packed && is_packed_beside(in))
        return;
    merge_each(in, "SELECT site_id, freed_bytes, freed_count FROM site_teardown", teardown_row);
    merge_each(in, "SELECT site_id, kept_count FROM site_kept", kept_row);
}

/* --- writing ----------------------------------------------------------------------------------------------------- */

static uint64_t column_value(const struct merge_site *site, enum packed_column c)
{
    switch (c) {
    case PACKED_site_stack_id:
        return site->stack;
    case PACKED_site_process_id:
        return site->process;
    case PACKED_site_device_id:
        return site->device;
    case PACKED_site_kind:
        return site->kind;
    case PACKED_site_torn_bytes:
        return (uint64_t)site->torn_bytes;
    case PACKED_site_torn_count:
        return (uint64_t)site->torn_count;
    case PACKED_site_kept_count:
        return (uint64_t)site->kept_count;
    default:
        return (uint64_t)site->stat[c - PACKED_STATS];
    }
}

static void pack_sites(struct merge *m)
{
    struct packer *packer = packer_open(m->store, PACKED_TABLE_site);
    for (uint32_t first = 0; first < m->site_count; first += PACKED_ROWS) {
        uint32_t left = m->site_count - first, count = left < PACKED_ROWS ? left : PACKED_ROWS;
        for (enum packed_column c = PACKED_KEY_site; c < PACKED_site_line_id; c++) {
            uint64_t *values = packer_values(packer, c);
            for (uint32_t i = 0; i < count; i++)
                values[i] = column_value(&m->sites[first + i], c);
            packer_column(packer, 0, c, first + 1, count);
        }
    }
    packer_close(packer);
}

static void write_beside(struct merge *m, uint32_t id, const struct merge_site *site)
{
    sqlite3_stmt *q = NULL;
    if (site->torn_count) {
        q = store_statement(m->store, "INSERT INTO site_teardown(site_id, freed_bytes, freed_count) VALUES(?, ?, ?)");
        sqlite3_bind_int64(q, 1, id);
        sqlite3_bind_int64(q, 2, site->torn_bytes);
        sqlite3_bind_int64(q, 3, site->torn_count);
        store_step(m->store, q);
    }
    if (site->kept_count) {
        q = store_statement(m->store, "INSERT INTO site_kept(site_id, kept_count) VALUES(?, ?)");
        sqlite3_bind_int64(q, 1, id);
        sqlite3_bind_int64(q, 2, site->kept_count);
        store_step(m->store, q);
    }
}

#define STAT(column, name, unit, combine, text) ", " #column
static const char insert_sql[] = "INSERT INTO site(site_id, stack_id, process_id, device_id, kind"
#include "../../common/stat.def"
#undef STAT
#define STAT(column, name, unit, combine, text) ", ?"
                                 ") VALUES(?, ?, nullif(?, 0), ?, ?"
#include "../../common/stat.def"
                                 ")";
#undef STAT

static void write_plain(struct merge *m)
{
    for (uint32_t i = 0; i < m->site_count; i++) {
        const struct merge_site *site = &m->sites[i];
        sqlite3_stmt *q = store_statement(m->store, insert_sql);
        sqlite3_bind_int64(q, 1, i + 1);
        sqlite3_bind_int64(q, 2, site->stack);
        sqlite3_bind_int64(q, 3, site->process);
        sqlite3_bind_int64(q, 4, site->device);
        sqlite3_bind_text(q, 5, kind_name(site->kind), -1, SQLITE_STATIC);
        for (int k = 0; k < MERGE_STATS; k++)
            sqlite3_bind_int64(q, 6 + k, site->stat[k]);
        store_step(m->store, q);
        write_beside(m, i + 1, site);
    }
}

void merge_stacks_end(struct merge *m)
{
    nodes_write(m->nodes);
    if (m->site_count > PACKED_SITES)
        pack_sites(m);
    else
        write_plain(m);
}
