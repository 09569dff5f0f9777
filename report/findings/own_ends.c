#include "own_ends.h"

#include "../../common/db.h"

#define EVENTS_MOST 50000000 /* to read the ends of more takes too long for a sentence */

int own_ends_programs(sqlite3 *db, struct own_ends *own, struct error *err)
{
    int of[2] = {0};
    *own = (struct own_ends){0};
    int rc = programs_load(db, &own->programs, err);
    for (uint32_t i = 0; i < own->programs.count; i++) {
        of[own->programs.item[i].is_named != 0] = 1;
        own->has_killed |= own->programs.item[i].is_killed;
    }
    own->has_others = of[0] && of[1];
    return rc;
}

int own_ends_open(sqlite3 *db, struct own_ends *own, struct error *err)
{
    int rc = own_ends_programs(db, own, err);
    if (rc == 0 && (own->has_others || own->has_killed) && db_meta_int(db, "event_count", 0) <= EVENTS_MOST)
        rc = process_parts_load(db, &own->parts, err);
    return rc;
}

void own_ends_close(struct own_ends *own)
{
    programs_free(&own->programs);
    process_parts_free(&own->parts);
    *own = (struct own_ends){0};
}

int own_ends_is_other(const struct own_ends *own, int64_t process_id)
{
    const struct programs_process *p = own->has_others ? programs_find(&own->programs, process_id) : NULL;
    return p && !p->is_named;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < 0 ? 0 : a < b ? a : b;
}

/* What a process had of what is left, in a damaged file too. */
static struct ends take(struct ends *rest, const struct ends *part)
{
    struct ends taken = {.bytes = least(part->bytes, rest->bytes), .count = least(part->count, rest->count)};
    taken.torn_bytes = least(least(part->torn_bytes, taken.bytes), rest->torn_bytes);
    taken.torn_count = least(least(part->torn_count, taken.count), rest->torn_count);
    rest->bytes -= taken.bytes;
    rest->count -= taken.count;
    rest->torn_bytes -= taken.torn_bytes;
    rest->torn_count -= taken.torn_count;
    return taken;
}

static void add(struct ends *sum, const struct ends *part)
{
    sum->bytes += part->bytes;
    sum->count += part->count;
    sum->torn_bytes += part->torn_bytes;
    sum->torn_count += part->torn_count;
    sum->killed_bytes += part->killed_bytes;
}

static struct ends *whose(const struct own_ends *own, int64_t process_id, struct ends *its_own, struct ends *others,
                          struct ends *replaced)
{
    const struct programs_process *p = programs_find(&own->programs, process_id);
    return !own_ends_is_other(own, process_id) ? its_own : p->is_replaced ? replaced : others;
}

static int was_killed(const struct own_ends *own, int64_t process_id)
{
    const struct programs_process *p = programs_find(&own->programs, process_id);
    return p && p->is_killed;
}

/* What no part is known of goes with the process that first allocated. */
struct ends own_ends_split(const struct own_ends *own, int64_t site_id, int64_t process_id, struct ends *ends,
                           struct ends *replaced)
{
    struct ends rest = *ends, others = {0}, its_own = {0};
    *replaced = others;
    if (!own->has_others && !own->has_killed)
        return others;
    for (const struct process_part *p = NULL; (p = process_parts_next(&own->parts, site_id, p));) {
        struct ends part = take(&rest, &(struct ends){p->bytes, p->count, p->torn_bytes, p->torn_count, 0});
        part.killed_bytes = was_killed(own, p->process_id) ? part.bytes - part.torn_bytes : 0;
        add(whose(own, p->process_id, &its_own, &others, replaced), &part);
    }
    add(whose(own, process_id, &its_own, &others, replaced), &rest);
    *ends = its_own;
    return others;
}
