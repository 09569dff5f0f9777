#include "recorder.h"

#include "../../common/db.h"
#include "scratch.h"

#include <stdio.h>

struct recorder rec;

int recorder_begin(void **state)
{
    (void)state;
    if (store_create(scratch_path("recorder.db"), &rec.store, NULL))
        return -1;
    rec.stacks = stacks_open(rec.store);
    rec.named = named_open(rec.store, rec.stacks);
    rec.python = python_open(rec.named, 0);
    return 0;
}

int recorder_end(void **state)
{
    (void)state;
    python_close(rec.python);
    named_close(rec.named);
    stacks_close(rec.stacks);
    int rc = store_close(rec.store, NULL);
    remove(scratch_path("recorder.db"));
    return rc;
}

int64_t rec_value(const char *sql)
{
    stacks_write(rec.stacks);
    return db_int(store_db(rec.store), sql, -1);
}
