#include "unhooked.h"

#include "../../common/db.h"
#include "../../common/text.h"
#include "../../common/units.h"

#include <stdlib.h>
#include <string.h>

#define NAMED_MOST 3

/* First those through whose calls most is live. */
static const char modules_sql[] =
    "SELECT u.path FROM (SELECT DISTINCT path FROM unhooked_module) u LEFT JOIN (SELECT k.path, sum(a.end_count) AS "
    "live FROM account a JOIN module_key k ON k.key_id = a.key_id WHERE a.scope = 'module' AND a.inclusive = 1 AND "
    "a.kind = 'all' GROUP BY k.path) l USING(path) ORDER BY l.live DESC, u.path";

/* "phar.so, pdo.so, ffi.so, ..."; how many. */
static int name_modules(sqlite3 *db, struct buf *names)
{
    sqlite3_stmt *s = NULL;
    int count = 0;
    if (db_prepare(db, modules_sql, &s, NULL))
        return 0;
    for (; sqlite3_step(s) == SQLITE_ROW; count++)
        if (count < NAMED_MOST)
            buf_printf(names, "%s%.200s", count ? ", " : "", text_basename(db_text(s, 0)));
    sqlite3_finalize(s);
    buf_puts(names, count > NAMED_MOST ? ", ..." : "");
    return count;
}

static int was_reached(sqlite3 *db)
{
    char *options = db_meta_text(db, "options");
    const int was = options && (strstr(options, "--deepbind") || strstr(options, "--cuda-delivery=audit"));
    free(options);
    return was;
}

void unhooked_explain(sqlite3 *db, const char *therefore, struct buf *text)
{
    struct buf names = BUF(4096);
    char number[UNITS_TEXT];
    const int count = name_modules(db, &names);
    if (count)
        buf_printf(text, "%s module%s opened with RTLD_DEEPBIND (%s): what %s not seen%s; %s",
                   units_count(number, count), count == 1 ? " was" : "s were", buf_text(&names),
                   count == 1 ? "it frees is" : "they free is", therefore,
                   was_reached(db) ? "--deepbind does not see what was compiled with -fno-plt, or goes by an address"
                                   : "'memprof run --deepbind' sees it");
    buf_free(&names);
}

void unhooked_say(sqlite3 *db, struct buf *text)
{
    const size_t before = text->length;
    char number[UNITS_TEXT];
    unhooked_explain(db, ", so some of these blocks may be freed", text);
    const int64_t missed =
        db_int(db, "SELECT CAST(total(value) AS INTEGER) FROM counter WHERE name = 'replaced_block'", 0);
    if (text->length == before && missed > 0 && !was_reached(db))
        buf_printf(text,
                   "%s block%s freed by calls that were not seen, and some of these may be, too; 'memprof run "
                   "--deepbind' sees those of modules opened with RTLD_DEEPBIND",
                   units_count(number, missed), missed == 1 ? " was" : "s were");
}
