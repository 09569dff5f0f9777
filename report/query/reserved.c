#include "reserved.h"

#include "../../common/db.h"

#include <string.h>

const char *reserved_mark(sqlite3 *db, const char *device, const char *kind)
{
    /* counters are written where a process ends: of one that was cut it is not known that it was not sampled */
    static const char sampled[] =
        "SELECT count(DISTINCT i.first_id) FROM v_image i JOIN process p USING(process_id) WHERE p.process_id IN "
        "(SELECT process_id FROM counter WHERE name = 'heap_sample' AND value > 0) OR (p.end_ns IS NULL AND "
        "p.not_recorded IS NULL AND p.process_id NOT IN (SELECT process_id FROM counter WHERE process_id IS NOT NULL))";
    if (strcmp(device, "host") != 0 || (strcmp(kind, "heap") != 0 && strcmp(kind, "all") != 0))
        return "";
    int64_t processes = db_int(db, sampled, 0);
    return processes > 1 ? "~ " : processes > 0 ? ">= " : "";
}
