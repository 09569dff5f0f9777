/* What programs call their blocks: the names that hold at an instant, what they share, and what has no name. */
#include "../query/names.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/sum.h"
#include "../../common/units.h"
#include "../../include/memprof_plan.h"
#include "../print/command.h"
#include "../print/listing.h"
#include "../query/device.h"
#include "../query/rows.h"
#include "nothing.h"
#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_TOP = 40, UNNAMED_TOP = 10 };

#define SHOWN "FROM v_name n WHERE name_id IN (SELECT name_id FROM temp.name_live) AND " DEVICE_IS("device", "?1")

/* Blocks by size, the names of one below each other. Rows of category alone have no name of their own. */
static const char by_block[] =
    "SELECT device, name, category, shape, stride, item_bytes, view_bytes, span_bytes, offset_bytes, block_bytes, "
    "own_bytes, shared_with, function, file, line, alloc_ns, end_ns, (SELECT pid FROM process p WHERE p.process_id = "
    "n.process_id), iif(shared_with IS NULL, '', '  ') || iif(name = '', '(no name)', name) || iif(shared_with IS "
    "NULL, "
    "'', '(->' || shared_with || ')'), iif(own_bytes > 0, own_bytes, NULL), count(*) OVER () " SHOWN
    " ORDER BY block_bytes DESC, process_id, block_address, name_id LIMIT iif(?2 > 0, ?2, -1)";

static const char by_line[] =
    "WITH named AS (SELECT site_id, sum(own_bytes) AS bytes, sum(own_bytes > 0) AS count FROM v_name WHERE name_id IN "
    "(SELECT name_id FROM temp.name_live) GROUP BY site_id), left AS (SELECT l.site_id, live_bytes - "
    "coalesce(bytes, 0) AS bytes, live_count - coalesce(count, 0) AS count FROM temp.live l LEFT JOIN named "
    "USING(site_id)) SELECT d.name, max(CAST(total(a.bytes) AS INTEGER), 0), CAST(total(a.count) AS INTEGER), "
    "coalesce(" ROW_FUNCTION_SQL
    ", '?' || '?') AS function, f.path, l.line, count(*) OVER () FROM left a JOIN site s USING(site_id) JOIN device d "
    "USING(device_id) LEFT JOIN site_line USING(site_id) LEFT JOIN line l USING(line_id) LEFT JOIN function fn "
    "USING(function_id) LEFT JOIN file f ON f.file_id = l.file_id LEFT JOIN module_key m ON m.key_id = l.module_key_id "
    "WHERE " DEVICE_IS("d.name", "?1") " AND a.count > 0 GROUP BY s.device_id, l.line_id ORDER BY 2 DESC, 4, 6 LIMIT "
                                       "iif(?2 > 0, ?2, -1)";

/* Of a site: what its blocks without a name are by category. */
#define X(phase, category) " WHEN '" phase "' THEN '" category "'"
#define PHASE_OF(site)                                                                                                 \
    "(SELECT CASE phase" NAMES_OF_PHASES(X) " END FROM site_op JOIN op USING(op_id) WHERE site_op.site_id = " site ")"

#define LIVE                                                                                                           \
    "l.live_bytes, l.live_count, 0 FROM temp.live l JOIN site s USING(site_id) JOIN device d USING(device_id) "        \
    "WHERE " DEVICE_IS("d.name", "?1")
#define SUMS                                                                                                           \
    " SELECT device, what, iif(sum(names) = 0, max(CAST(total(bytes) AS INTEGER), 0), "                                \
    "CAST(total(bytes) AS INTEGER)), CAST(total(blocks) AS INTEGER), sum(names), count(*) OVER () FROM all_of GROUP "  \
    "BY device, what HAVING what IS NULL OR total(blocks) > 0 ORDER BY what IS NULL, 3 DESC, 2 LIMIT iif(?2 > 0, ?2, " \
    "-1)"

/* A block counts once for a name, and once for a category. What is live without one is a row, too, or several:
 * what the last two say, by site. */
#define BY(what, unnamed_live, unnamed_named)                                                                          \
    "WITH named AS (SELECT device, nullif(" what ", '') AS what, block_bytes AS bytes, count(*) AS names " SHOWN       \
    " GROUP BY process_id, block_address, alloc_ns, " what "), all_of AS (SELECT device, what, bytes, 1 AS blocks, "   \
    "names FROM named UNION ALL SELECT d.name, " unnamed_live ", " LIVE " UNION ALL SELECT device, " unnamed_named     \
    ", -own_bytes, -(own_bytes > 0), 0 " SHOWN ")" SUMS
static const char by_name[] = BY("name", "NULL", "NULL");
static const char by_category[] = BY("category", PHASE_OF("l.site_id"), PHASE_OF("n.site_id"));
#undef X

static int64_t top_of(const struct report_options *o, const struct report_out *out, int64_t otherwise)
{
    return o->top >= 0 ? o->top : out->format == REPORT_TEXT ? otherwise : 0;
}

static void add_instant(const struct report_options *o, const struct at_result *at, struct buf *title)
{
    char text[UNITS_TEXT];
    if (o->at == REPORT_AT_TIME) {
        buf_printf(title, " at %s", units_ns(text, at->time_ns));
        at_explain(at, o->at_ns, title);
    } else {
        buf_puts(title, o->at == REPORT_AT_PEAK ? " at the device's peak" : " at the end");
    }
}

static int list_names(sqlite3 *db, const struct report_options *o, struct record *document, const char *title,
                      struct error *err)
{
    const int has_devices = report_has_devices(db, o->device);
    const struct column columns[] = {
        COLUMN("device", has_devices ? "device" : NULL, TEXT, .place = 6),
        COLUMN("name", NULL, TEXT),
        COLUMN("category", "category", TEXT, .place = 5, .flags = COLUMN_OPTIONAL),
        COLUMN("shape", "shape", TEXT, .place = 2),
        COLUMN("stride", NULL, TEXT),
        COLUMN("item_bytes", NULL, NUMBER),
        COLUMN("view_bytes", "bytes", BYTES, .place = 3),
        COLUMN("span_bytes", NULL, NUMBER),
        COLUMN("offset_bytes", NULL, NUMBER),
        COLUMN("block_bytes", NULL, NUMBER),
        COLUMN("own_bytes", NULL, NUMBER),
        COLUMN("shared_with", NULL, TEXT),
        COLUMN("function", "taken by", TEXT, .place = 7, .cut = TEXT_CUT_NAME),
        COLUMN("file", "source", SOURCE, .place = 8, .cut = TEXT_CUT_LEFT),
        COLUMN("line", NULL, NUMBER),
        COLUMN("alloc_ns", NULL, NUMBER),
        COLUMN("end_ns", NULL, NUMBER),
        COLUMN("pid", NULL, NUMBER),
        COLUMN(NULL, "name", TEXT, .place = 1, .cut = TEXT_CUT_MIDDLE),
        COLUMN(NULL, "block", BYTES, .place = 4),
    };
    char *cwd = db_meta_text(db, "cwd");
    int64_t all = 0;
    struct listing *l = document->out->format == REPORT_JSON
                            ? listing_open_in(document, "names", columns, COLUMN_COUNT_OF(columns), cwd)
                            : listing_open(columns, COLUMN_COUNT_OF(columns), document->out, cwd);
    int rc = listing_query(l, db, by_block, o->device, top_of(o, document->out, DEFAULT_TOP), &all, err);
    if (rc == 0)
        listing_print_under(l, title, all);
    listing_close(l);
    free(cwd);
    return rc;
}

static int list_unnamed(sqlite3 *db, const struct report_options *o, struct record *document, struct error *err)
{
    const int has_devices = report_has_devices(db, o->device);
    const struct column columns[] = {
        COLUMN("device", has_devices ? "device" : NULL, TEXT, .place = 3),
        COLUMN("bytes", "bytes", BYTES, .place = 1),
        COLUMN("count", "blocks", COUNT, .place = 2),
        COLUMN("function", "function", TEXT, .place = 4, .cut = TEXT_CUT_NAME),
        COLUMN("file", "source", SOURCE, .place = 5, .cut = TEXT_CUT_LEFT),
        COLUMN("line", NULL, NUMBER),
    };
    if (document->out->format == REPORT_CSV)
        return 0;
    char *cwd = db_meta_text(db, "cwd");
    int64_t all = 0;
    struct listing *l = listing_open_in(document, "unnamed", columns, COLUMN_COUNT_OF(columns), cwd);
    int rc = listing_query(l, db, by_line, o->device, top_of(o, document->out, UNNAMED_TOP), &all, err);
    if (rc == 0)
        listing_print_under(l, "Without a name, by line", all);
    listing_close(l);
    free(cwd);
    return rc;
}

struct sums {
    int64_t names, blocks, bytes, unnamed_bytes, unnamed_blocks, left_out, ever;
};

static int sum_all(sqlite3 *db, const char *device, struct sums *sums, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(
        db,
        "SELECT names, n.blocks, n.bytes, max(l.bytes - n.bytes, 0), l.blocks - n.blocks FROM (SELECT count(*) "
        "AS names, coalesce(sum(own_bytes > 0), 0) AS blocks, CAST(total(own_bytes) AS INTEGER) AS "
        "bytes " SHOWN ") n, (SELECT CAST(total(live_bytes) AS INTEGER) AS bytes, "
        "CAST(total(live_count) AS INTEGER) AS blocks FROM temp.live JOIN site USING(site_id) JOIN "
        "device d USING(device_id) WHERE " DEVICE_IS("d.name", "?1") ") l",
        &s, err);
    if (rc == 0)
        sqlite3_bind_text(s, 1, device, -1, SQLITE_STATIC);
    if (rc == 0 && db_next(s, &rc, err))
        *sums = (struct sums){sqlite3_column_int64(s, 0),
                              sqlite3_column_int64(s, 1),
                              sqlite3_column_int64(s, 2),
                              sqlite3_column_int64(s, 3),
                              sqlite3_column_int64(s, 4),
                              0,
                              0};
    sqlite3_finalize(s);
    sums->ever = sums->names || db_int(db, "SELECT EXISTS (SELECT 1 FROM v_name)", 0);
    sums->left_out = db_int(db, "SELECT sum(value) FROM counter WHERE name = 'names_left_out'", 0);
    return rc;
}

/* When blocks had names, where none has one now: at the peak, or just before the last of them died. */
static void print_when(sqlite3 *db, const struct report_options *o, const struct report_out *out)
{
    static const char *const when[] = {
        "SELECT count(*) FROM v_name n JOIN device d ON d.name = n.device JOIN total t ON t.device_id = d.device_id "
        "AND t.kind = 'all' WHERE n.alloc_ns <= t.peak_active_ns AND coalesce(n.end_ns, 9223372036854775807) > "
        "t.peak_active_ns AND " DEVICE_IS("n.device", "?1"),
        "SELECT max(max(end_ns - 1, alloc_ns)) FROM v_name n WHERE " DEVICE_IS("n.device", "?1"),
    };
    int64_t found[2] = {0};
    for (unsigned i = 0; i < 2; i++) {
        sqlite3_stmt *s = NULL;
        struct error none;
        int rc = db_prepare(db, when[i], &s, &none);
        if (rc == 0)
            sqlite3_bind_text(s, 1, o->device, -1, SQLITE_STATIC);
        if (rc == 0 && db_next(s, &rc, &none))
            found[i] = sqlite3_column_int64(s, 0);
        sqlite3_finalize(s);
    }
    struct buf line = BUF(1 << 16);
    buf_puts(&line, "Next: memprof report");
    command_add_file(&line, o->file);
    buf_puts(&line, " --names");
    if (o->device) {
        buf_puts(&line, " --device ");
        buf_shell(&line, o->device);
    }
    if (found[0] && o->at != REPORT_AT_PEAK)
        buf_puts(&line, " --at peak   (names that blocks had then)");
    else
        buf_printf(&line, " --at %" PRId64 "ns   (before the last block with a name died)", found[1]);
    if (found[1])
        table_line(out, TABLE_DIM, buf_text(&line));
    buf_free(&line);
}

static void print_sums(const struct sums *s, const struct report_out *out)
{
    char text[2][UNITS_TEXT];
    struct buf line = BUF(512);
    if (s->names) {
        buf_printf(&line, "Named: %s in %s block%s", units_bytes(text[0], s->bytes), units_count(text[1], s->blocks),
                   s->blocks == 1 ? "" : "s");
        buf_printf(&line, ", by %s name%s", units_count(text[0], s->names), s->names == 1 ? "" : "s");
        buf_printf(&line, ". Without a name: %s", units_bytes(text[0], s->unnamed_bytes));
        buf_printf(&line, " in %s.", units_count(text[1], s->unnamed_blocks));
    } else {
        buf_puts(&line, "No block had a name then");
        buf_puts(&line, s->ever ? "." : ": programs say names with memprof_name and memprof_view (memprof.h).");
    }
    if (s->left_out > 0)
        buf_printf(&line, " Names and categories said that have no row: %s ('memprof info').",
                   units_count(text[0], s->left_out));
    fputc('\n', out->file);
    table_prose(out, TABLE_PLAIN, buf_text(&line));
    buf_free(&line);
}

/* --- what a copy of all that is named would take ----------------------------------------------------------------- */

struct spans {
    struct memprof_view *view;
    size_t count, capacity;
    int64_t naive_bytes, block_bytes;
};

/* A view's span is what the plan goes by: its lowest byte and its length say it. */
static int load_spans(sqlite3 *db, const char *device, struct spans *spans, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db,
                        "SELECT block_address + offset_bytes, span_bytes, view_bytes, own_bytes, process_id " SHOWN
                        " AND name <> '' ORDER BY name_id",
                        &s, err);
    if (rc == 0)
        sqlite3_bind_text(s, 1, device, -1, SQLITE_STATIC);
    while (rc == 0 && db_next(s, &rc, err)) {
        struct memprof_view *v = ARRAY_ADD(spans->view, spans->count, spans->capacity);
        /* processes have the same addresses for other memory: each has a part of the space for itself */
        v->data = (const void *)(uintptr_t)((uint64_t)sqlite3_column_int64(s, 0) % (1ull << 47) +
                                            ((uint64_t)sqlite3_column_int64(s, 4) % (1u << 16) << 47));
        v->item_bytes = 1;
        v->rank = 1;
        v->size[0] = sqlite3_column_int64(s, 1);
        v->stride[0] = 1;
        sum_add(&spans->naive_bytes, sqlite3_column_int64(s, 2));
        sum_add(&spans->block_bytes, sqlite3_column_int64(s, 3));
    }
    sqlite3_finalize(s);
    return rc;
}

static int print_plan(sqlite3 *db, const struct report_options *o, struct record *document, struct error *err)
{
    struct spans spans = {.view = NULL};
    int rc = load_spans(db, o->device, &spans, err);
    struct memprof_range *ranges = xcalloc(spans.count + 1, sizeof *ranges);
    size_t *place = xcalloc(spans.count + 1, sizeof *place);
    if (rc == 0) {
        char text[UNITS_TEXT];
        const struct memprof_plan plan = memprof_plan(spans.view, spans.count, ranges, place, 1);
        const int64_t planned = plan.bytes < INT64_MAX ? (int64_t)plan.bytes : INT64_MAX;
        const int64_t besides = sum_of(spans.block_bytes, -planned);
        record_member_int(document, "naive_bytes", spans.naive_bytes);
        record_member_int(document, "planned_bytes", planned);
        record_member_int(document, "planned_ranges", (int64_t)plan.range_count);
        record_member_int(document, "not_viewed_bytes", besides);
        struct buf line = BUF(512);
        buf_printf(&line, "A copy of each name for itself takes %s; ", units_bytes(text, spans.naive_bytes));
        buf_printf(&line, "memprof_plan (memprof_plan.h) copies %s ", units_bytes(text, planned));
        buf_printf(&line, "in %s range%s and keeps what they share.", units_count(text, (int64_t)plan.range_count),
                   plan.range_count == 1 ? "" : "s");
        if (besides > 0)
            buf_printf(&line, " No name covers %s of the named blocks.", units_bytes(text, besides));
        if (document->out->format == REPORT_TEXT)
            table_prose(document->out, TABLE_PLAIN, buf_text(&line));
        buf_free(&line);
    }
    free(spans.view);
    free(ranges);
    free(place);
    return rc;
}

/* --- the report --------------------------------------------------------------------------------------------------- */

static int list_sums(sqlite3 *db, const struct report_options *o, const struct report_out *out, struct buf *title,
                     struct error *err)
{
    const int is_name = o->names == REPORT_NAMES_BY_NAME, has_devices = report_has_devices(db, o->device);
    const struct column columns[] = {
        COLUMN("device", has_devices ? "device" : NULL, TEXT, .place = 4),
        COLUMN(is_name ? "name" : "category", is_name ? "name" : "category", TEXT, .place = 5, .none = "(none)"),
        COLUMN("bytes", "bytes", BYTES, .place = 1),
        COLUMN("block_count", "blocks", COUNT, .place = 2),
        COLUMN("name_count", "names", COUNT, .place = 3),
    };
    int64_t all = 0;
    struct listing *l = listing_open(columns, COLUMN_COUNT_OF(columns), out, NULL);
    int rc = listing_query(l, db, is_name ? by_name : by_category, o->device, top_of(o, out, DEFAULT_TOP), &all, err);
    buf_puts(title, is_name ? ", by name: the blocks that had it" : ", by category");
    if (rc == 0 && !all && out->format == REPORT_TEXT)
        nothing_say(o, out);
    else if (rc == 0)
        listing_print_under(l, buf_text(title), all);
    listing_close(l);
    return rc;
}

static int list_all(sqlite3 *db, const struct report_options *o, const struct report_out *out, struct buf *title,
                    struct error *err)
{
    struct sums sums = {0};
    struct record document;
    record_open(&document, out);
    record_document_begin(&document);
    int rc = sum_all(db, o->device, &sums, err);
    record_member_int(&document, "named_bytes", sums.bytes);
    record_member_int(&document, "named_blocks", sums.blocks);
    record_member_int(&document, "unnamed_bytes", sums.unnamed_bytes);
    record_member_int(&document, "unnamed_blocks", sums.unnamed_blocks);
    record_member_int(&document, "names_left_out", sums.left_out);
    if (rc == 0)
        rc = list_names(db, o, &document, buf_text(title), err);
    if (rc == 0)
        rc = list_unnamed(db, o, &document, err);
    if (rc == 0 && out->format == REPORT_TEXT) {
        print_sums(&sums, out);
        if (!sums.names && sums.ever)
            print_when(db, o, out);
    }
    if (rc == 0 && o->with_plan)
        rc = print_plan(db, o, &document, err);
    record_document_end(&document);
    record_close(&document);
    return rc;
}

int report_names(sqlite3 *db, const struct report_options *o, const struct report_out *out, struct error *err)
{
    static const enum names_at ats[] = {[REPORT_AT_ALL] = NAMES_AT_END,
                                        [REPORT_AT_END] = NAMES_AT_END,
                                        [REPORT_AT_PEAK] = NAMES_AT_PEAK,
                                        [REPORT_AT_TIME] = NAMES_AT_TIME};
    struct at_result at;
    struct buf title = BUF(1024);
    int rc = device_check(db, o->device, NULL, err);
    if (rc == 0 && o->at == REPORT_AT_TIME)
        rc = at_check(db, o->at_ns, "--at", err);
    if (rc == 0)
        rc = names_load(db, ats[o->at], o->at_ns, &at, err);
    buf_puts(&title, "Names");
    if (rc == 0)
        add_instant(o, &at, &title);
    if (rc == 0)
        rc = o->names == REPORT_NAMES_ALL ? list_all(db, o, out, &title, err) : list_sums(db, o, out, &title, err);
    buf_free(&title);
    return rc;
}
