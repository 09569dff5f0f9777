#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/sum.h"
#include "rules.h"

#include <stdlib.h>

#define LEAST_PERCENT 5 /* of the peak */

struct again { /* of a line */
    const struct rule_line *line;
    int64_t bytes, count; /* that one block for each group of like ones would save */
    int64_t group_count;
    int64_t site_id, site_bytes; /* of the largest group */
};

static struct again most_again(struct rules *r)
{
    struct map number_of = {0};
    struct again *all = NULL, most = {.line = NULL};
    uint32_t count = 0, capacity = 0;
    sqlite3_stmt *s =
        rule_lines(r) == 0 ? rule_query(r, "SELECT site_id, at_peak_count - 1, size_bytes FROM upload_again") : NULL;
    while (s && sqlite3_step(s) == SQLITE_ROW) {
        const struct rule_line *line = rule_line_of(r, sqlite3_column_int64(s, 0));
        int64_t bytes, more = rule_amount(s, 1);
        if (!line || line->device_id != r->device->device_id || __builtin_mul_overflow(more, rule_amount(s, 2), &bytes))
            continue;
        uint32_t i = map_number_or(&number_of, (uint64_t)(line - r->lines), 0, count);
        if (i == count)
            *ARRAY_ADD(all, count, capacity) = (struct again){.line = line};
        sum_add(&all[i].bytes, bytes);
        sum_add(&all[i].count, more);
        all[i].group_count++;
        if (bytes > all[i].site_bytes) {
            all[i].site_id = sqlite3_column_int64(s, 0);
            all[i].site_bytes = bytes;
        }
        if (all[i].bytes > most.bytes)
            most = all[i];
    }
    sqlite3_finalize(s);
    map_close(&number_of);
    free(all);
    return most;
}

/* Blocks that got as many bytes from the same place of the host as another one that lived with them. The place may hold
 * something else each time, as a staging buffer does, and a kernel may have changed the block, as it does with weights:
 * it is for information, and says nothing of what it saves. */
void find_again(struct rules *r)
{
    const struct again most = most_again(r);
    if (!most.line || most.bytes <= r->device->peak_active / 100 * LEAST_PERCENT)
        return;
    struct finding *f = rule_finding(r, r->device->name);
    f->bytes = most.bytes;
    f->time_ns = r->device->peak_ns;
    finding_line(r, f, most.line->site_id, "peak");
    finding_caller(r, f, most.site_id);
    finding_say(f,
                " had %s in %s block%s at the peak that %s uploaded from the address, and in the length, of another ",
                units_bytes(r->a, most.bytes), units_count(r->b, most.count), most.count == 1 ? "" : "s",
                most.count == 1 ? "was" : "were");
    finding_say(f, "block of that size. Whether the bytes were the same, and no kernel changed them since, is not "
                   "known.");
    finding_look(f, FINDING_PEAK, 0, NULL, "Look at the peak");
    f->next = "If they are the same and stay so, upload them once and share the block.";
    finding_number(f, "again_bytes", most.bytes);
    finding_number(f, "again_count", most.count);
    finding_number(f, "place_count", most.group_count);
}
