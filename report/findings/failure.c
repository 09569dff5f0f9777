#include "failure.h"

#include "../../common/db.h"
#include "../../common/text.h"
#include "../../common/units.h"

#include <string.h>

#define ADDRESSES  (1ll << 47) /* of a process without a limit */
#define OWN_LITTLE 16          /* of the limit: as small a part as this makes no difference */

/* Set by the shell that began it, or by itself. */
static void say_limit(sqlite3 *db, int64_t limit_bytes, struct buf *text)
{
    char number[UNITS_TEXT];
    int is_given = limit_bytes == db_meta_int(db, "address_limit_bytes", -1);
    buf_printf(text, "the limit of %s of address space (%s)", units_bytes(number, limit_bytes),
               is_given ? "ulimit -v" : "setrlimit");
}

void failure_bound(sqlite3 *db, int64_t size_bytes, int64_t limit_bytes, struct buf *text)
{
    int64_t machine = db_meta_int(db, "machine_bytes", INT64_MAX);
    char number[UNITS_TEXT];
    if (size_bytes > machine) {
        buf_printf(text, "more than the machine's %s of memory and swap", units_bytes(number, machine));
    } else if (limit_bytes < ADDRESSES) {
        buf_puts(text, "more than ");
        say_limit(db, limit_bytes, text);
    } else {
        buf_puts(text, "more than a process has addresses for");
    }
}

void failure_limit(sqlite3 *db, const char *device, int64_t limit_bytes, int64_t own_bytes, struct buf *text)
{
    if (strcmp(device, "host") != 0 || limit_bytes >= ADDRESSES ||
        limit_bytes > db_meta_int(db, "machine_bytes", INT64_MAX))
        return;
    char number[UNITS_TEXT];
    buf_puts(text, " under ");
    say_limit(db, limit_bytes, text);
    if (own_bytes > limit_bytes / OWN_LITTLE)
        buf_printf(text, ", of which memprof itself has %s mapped", units_bytes(number, own_bytes));
}

int64_t failure_unlisted_count(sqlite3 *db)
{
    return db_int(db, "SELECT sum(value) FROM counter WHERE name = 'unlisted_failures'", 0);
}

void failure_unlisted(sqlite3 *db, struct buf *text)
{
    const int64_t count = failure_unlisted_count(db);
    char number[UNITS_TEXT];
    if (count > 0)
        buf_printf(text, "%s more allocation%s failed after these, which the file has no rows of.",
                   units_count(number, count), count == 1 ? "" : "s");
}

static void say_place(sqlite3_stmt *row, struct buf *text)
{
    if (sqlite3_column_type(row, 5) == SQLITE_NULL)
        return;
    buf_printf(text, " in %s", db_text(row, 4));
    buf_printf(text, " (%s:%lld)", text_filename(db_text(row, 5)), (long long)sqlite3_column_int64(row, 6));
}

void failure_handled(sqlite3 *db, sqlite3_stmt *row, struct buf *text)
{
    char number[3][UNITS_TEXT];
    int64_t count = sqlite3_column_int64(row, 1), largest = sqlite3_column_int64(row, 2);
    int is_impossible = sqlite3_column_int(row, 0);
    buf_printf(text, "%s allocation%s %s, %s%s at %s", units_count(number[0], count), count == 1 ? "" : "s",
               is_impossible ? "asked for more than there is" : "failed",
               count == 1                   ? "of "
               : sqlite3_column_int(row, 7) ? "each of "
                                            : "the largest of ",
               units_bytes(number[1], largest), units_ns(number[2], sqlite3_column_int64(row, 3)));
    if (is_impossible) {
        say_place(row, text);
        buf_puts(text, ": ");
        failure_bound(db, largest, sqlite3_column_int64(row, 8), text);
        buf_puts(text, "; the program went on.");
    } else {
        buf_puts(text, ", and as much was had afterwards.");
    }
}
