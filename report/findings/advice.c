#include "advice.h"

#include "../../common/db.h"
#include "../../common/module_kind.h"
#include "../../common/text.h"
#include "../../common/units.h"
#include "../print/table.h"
#include "../query/resident.h"
#include "../query/self_module.h"
#include "../query/tree.h"
#include "runtime.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define UNTRACKED_LEAST (16 << 20)
#define UNTRACKED_EACH  (1 << 20) /* of each process: stacks and libraries' data are in all of them */
#define ARENAS_SHARE    16        /* a part of the peak: below, they are a wrapper's, or hardly matter */

int64_t advice_arenas_peak(sqlite3 *db)
{
    return db_int(db, "SELECT CAST(total(peak_reserved_bytes) AS INTEGER) FROM total WHERE kind = 'arena'", 0);
}

/* A package's debug information is a download of its own, and only code whose lines could be changed is worth that:
 * what starting any program of the system takes is less. A program of one's own costs an option, however small it is.
 */
#define PACKAGED_LEAST (1 << 20)

/* More than half. */
static int is_most(double part, double whole)
{
    return whole > 0 && part > whole / 2;
}

static int percent(double part, double whole)
{
    return part >= whole ? 100 : (int)(100 * part / whole); /* no part is more but in a damaged file */
}

/* Whether the outermost frame that was recorded is not the outermost one. The tree may hold a cycle. */
static int is_cut(const struct tree *t, uint32_t node)
{
    for (int depth = 0; depth < TREE_DEPTH_MAX && t->nodes[node].parent; depth++)
        node = t->nodes[node].parent;
    return t->nodes[node].is_cut;
}

static void cut_stacks(sqlite3 *db, void (*add)(void *context, const char *advice), void *context)
{
    struct tree tree = {0};
    struct error err;
    sqlite3_stmt *s = NULL;
    double cut = 0, all = 0;
    if (db_int(db, "SELECT count(*) FROM counter WHERE name = 'stack_cut' AND value > 0", 0) == 0)
        return;
    if (tree_open(db, &tree, &err) == 0 &&
        sqlite3_prepare_v2(db, "SELECT stack_id, alloc_count FROM site", -1, &s, NULL) == SQLITE_OK)
        while (sqlite3_step(s) == SQLITE_ROW) {
            double count = (double)sqlite3_column_int64(s, 1);
            uint32_t node = tree_node(&tree, sqlite3_column_int64(s, 0));
            all += count;
            cut += node && is_cut(&tree, node) ? count : 0;
        }
    sqlite3_finalize(s);
    tree_close(&tree);
    if (!is_most(cut, all))
        return;
    struct buf text = BUF(4096);
    buf_printf(
        &text,
        "%d %% of the allocations have cut stacks, whose outer callers are not known: record again with a larger "
        "--depth (at most 1024)",
        percent(cut, all));
    add(context, text.data);
    buf_free(&text);
}

/* Mangled names of Rust: v0, and the legacy scheme with its hash. */
#define RUST_SQL "(fn.raw_name GLOB '_R[A-Z]*' OR fn.raw_name GLOB '_ZN*17h????????????????E*')"

/* What lines held at the peaks of all devices, and of it those without a source position: a program may have lines for
 * a part of its code only (objects compiled with -g among others, the standard library that Rust links to everything).
 */
static const char lineless_sql[] =
    "SELECT total(at_peak_bytes), total(CASE WHEN file_id IS NULL THEN at_peak_bytes END) FROM account JOIN line ON "
    "line_id = key_id WHERE scope = 'line' AND inclusive = 0 AND kind = 'all'";

/* Those without by module: bytes, of which functions of Rust have, and whether names are known. */
static const char module_sql[] =
    "SELECT k.path, sum(s.at_peak_bytes) AS bytes, total(CASE WHEN " RUST_SQL
    " THEN s.at_peak_bytes END), max(m.symbols "
    "NOT LIKE 'none%'), min(m.symbols = 'dwarf') FROM site s JOIN site_line USING(site_id) JOIN line l USING(line_id) "
    "JOIN temp.site_module USING(site_id) JOIN module_key k USING(key_id) JOIN (SELECT path, build_id, symbols FROM "
    "module GROUP BY path, build_id) m ON m.path = k.path AND m.build_id IS k.build_id LEFT JOIN function fn ON "
    "fn.function_id = l.function_id WHERE l.file_id IS NULL AND s.at_peak_bytes > 0 AND (m.symbols IN ('symtab', "
    "'dwarf') OR m.symbols LIKE 'none%') GROUP BY k.path ORDER BY bytes DESC";

/* Whether a package of the system put a file there, which has another with its debug information. */
static int is_packaged(const char *path)
{
    static const char *const places[] = {"/usr/", "/lib", "/bin/", "/sbin/"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (strncmp(path, places[i], strlen(places[i])) == 0)
            return strncmp(path, "/usr/local/", 11) != 0;
    return 0;
}

/* What a runtime maps for its objects has lines of its allocator alone, with debug information or without. */
static const struct runtime *runtime_heap(sqlite3 *db, void (*add)(void *context, const char *advice), void *context)
{
    struct buf text = BUF(1024);
    int64_t bytes, all = db_int(db, "SELECT peak_active_bytes FROM total WHERE kind = 'all' AND device_id = 0", 0);
    const struct runtime *runtime = runtime_of_peak(db, &bytes);
    if (runtime) {
        buf_printf(&text, "%d %% of the peak was mapped by %s for itself. %s", percent((double)bytes, (double)all),
                   runtime->name, runtime->advice);
        add(context, text.data);
    }
    buf_free(&text);
    return runtime;
}

/* What a package offers of an interpreter is its own lines, which are hardly what is asked for. */
static void say_lines(const struct runtime *runtime, const char *how, struct buf *text)
{
    if (runtime)
        buf_printf(text, ". %s. To see %s's own lines, %s, and record again", runtime->lines, runtime->name, how);
    else
        buf_printf(text, ": %s, and record again", how);
}

/* Whether code without lines held most of the peak, of whatever modules. */
static int is_mostly_lineless(sqlite3 *db)
{
    sqlite3_stmt *s = NULL;
    int is = sqlite3_prepare_v2(db, lineless_sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW &&
             is_most(sqlite3_column_double(s, 1), sqlite3_column_double(s, 0));
    sqlite3_finalize(s);
    return is;
}

/* How to get lines; NULL: there is no way, or it is too far for so little. A package's code in which some has them has
 * its debug information already. */
static const char *lines_advice(const char *path, double all_bytes, int has_lines, int is_rust)
{
    if (module_is_gpu_vendor(path) || (is_packaged(path) && all_bytes < PACKAGED_LEAST))
        return NULL;
    if (is_packaged(path))
        return has_lines ? NULL : "install its -dbgsym package, or set DEBUGINFOD_URLS";
    if (is_rust)
        return "compile it with -g (rustc -g; with cargo, debug = true in its profile)";
    return has_lines ? "compile all of it with -g"
                     : "compile it with -g (of a program that you did not build, take the debug information that its "
                       "maker offers)";
}

static void missing_symbols(sqlite3 *db, void (*add)(void *context, const char *advice), void *context)
{
    sqlite3_stmt *s = NULL;
    struct error err;
    struct buf name = BUF(1 << 16), text = BUF(1 << 17);
    const char *advice = NULL;
    const struct runtime *runtime = NULL;
    double missing = 0,
           all =
               (double)db_int(db, "SELECT CAST(total(peak_active_bytes) AS INTEGER) FROM total WHERE kind = 'all'", 0);
    int has_names = 0;
    if (is_mostly_lineless(db) && self_module_load(db, &err) == 0 &&
        sqlite3_prepare_v2(db, module_sql, -1, &s, NULL) == SQLITE_OK)
        while (sqlite3_step(s) == SQLITE_ROW) {
            double bytes = sqlite3_column_double(s, 1);
            const char *how =
                lines_advice(db_text(s, 0), all, sqlite3_column_int(s, 4), is_most(sqlite3_column_double(s, 2), bytes));
            missing += how ? bytes : 0;
            if (advice || !how)
                continue;
            advice = how;
            runtime = runtime_of_module(db_text(s, 0));
            buf_puts(&name, text_basename(db_text(s, 0)));
            has_names = sqlite3_column_int(s, 3);
        }
    sqlite3_finalize(s);
    if (advice && is_most(missing, all)) {
        buf_printf(&text, "%d %% of the peak is in code without %s, most of it in %s", percent(missing, all),
                   has_names ? "line information" : "symbols", name.data);
        say_lines(runtime, advice, &text);
        add(context, text.data);
    }
    buf_free(&name);
    buf_free(&text);
}

static int has_arenas(sqlite3 *db)
{
    int64_t peak = advice_arenas_peak(db);
    int64_t all = db_int(db, "SELECT CAST(total(peak_active_bytes) AS INTEGER) FROM total WHERE kind = 'all'", 0);
    return peak > 0 && peak > all / ARENAS_SHARE;
}

/* Objects of at most 512 bytes, most of what a Python program allocates, come from pymalloc unless it was told not to.
 */
static void python_arenas(sqlite3 *db, void (*add)(void *context, const char *advice), void *context)
{
    struct buf text = BUF(1024);
    char size[UNITS_TEXT];
    if (has_arenas(db)) {
        buf_printf(
            &text,
            "Python's small objects are inside its arenas, which are reserved and not active: %s at most, by line "
            "at the peak with 'memprof report --segments --at peak'; 'memprof run --python-allocators' counts each "
            "object",
            units_bytes(size, advice_arenas_peak(db)));
        add(context, text.data);
    }
    buf_free(&text);
}

/* Whether what was not tracked is a question: programs' and libraries' own pages are nobody's, nor are memprof's, and a
 * file's count once, however many processes have it. */
static int is_question(sqlite3 *db, const struct resident_peak *peak)
{
    double known = (double)db_int(db,
                                  "SELECT sum(bytes) FROM (SELECT max(end_address - start_address) AS bytes FROM "
                                  "module WHERE end_address > start_address GROUP BY path)",
                                  0);
    /* as v_resident, which adds up all blocks for the asking */
#define REST(what)                                                                                                     \
    (double)db_int(db,                                                                                                 \
                   "SELECT CAST(total(r.resident_bytes) AS INTEGER) FROM resident_rest r JOIN resident_scan c "        \
                   "USING(scan_id) WHERE c.is_peak AND r.what = '" what "'",                                           \
                   0)
    double files = REST("file"), own = REST("memprof");
#undef REST
    double again = (double)resident_again_bytes(db);
    known = known + again < files ? known + again : files;
    double asked = (double)peak->untracked_bytes - known - own;
    return asked >= UNTRACKED_LEAST && asked >= (double)peak->process_count * UNTRACKED_EACH &&
           is_most(asked, (double)peak->present_bytes - again);
}

/* Whether a process that was looked at had given back its GPU's memory then: that lies in its own meanwhile. */
static int is_given_back(sqlite3 *db)
{
    return db_int(db,
                  "SELECT EXISTS (SELECT 1 FROM resident_scan c JOIN mark m USING(process_id) WHERE c.is_peak AND "
                  "m.domain = 'memprof' AND m.name = 'yielded' AND m.is_range AND m.start_ns <= c.time_ns AND "
                  "coalesce(m.end_ns, c.time_ns) >= c.time_ns)",
                  0) == 1;
}

static void untracked(sqlite3 *db, void (*add)(void *context, const char *advice), void *context)
{
    struct resident_peak peak;
    struct error err;
    if (resident_peak_load(db, &peak, &err) || !peak.process_count || !is_question(db, &peak))
        return;
    struct buf text = BUF(1024);
    char a[UNITS_TEXT], b[UNITS_TEXT], c[UNITS_TEXT], d[UNITS_TEXT];
    int is_gpu = peak.untracked_most.is_anonymous && is_given_back(db);
    buf_printf(&text, "%s of %s resident at %s was not tracked, most of it %s (%s): %s",
               units_bytes(a, peak.untracked_bytes), units_bytes(b, peak.present_bytes), units_ns(c, peak.time_ns),
               is_gpu ? "the GPU memory that was given back" : peak.untracked_most.text,
               units_bytes(d, peak.untracked_most.bytes),
               is_gpu ? "it lies in the program's own until 'memprof restore'"
                      : "'memprof report --by line --sort resident' shows whose the pages were");
    add(context, text.data);
    buf_free(&text);
}

void advice_each(sqlite3 *db, void (*add)(void *context, const char *advice), void *context)
{
    cut_stacks(db, add, context);
    if (!runtime_heap(db, add, context))
        missing_symbols(db, add, context);
    python_arenas(db, add, context);
    untracked(db, add, context);
}

static void print(void *context, const char *advice)
{
    struct buf text = BUF(1 << 18);
    buf_printf(&text, "! %s", advice);
    table_prose(context, TABLE_STRONG, text.data ? text.data : advice);
    buf_free(&text);
}

void advice_print(sqlite3 *db, const struct report_out *out)
{
    advice_each(db, print, (void *)(uintptr_t)out);
}

void advice_arenas_print(sqlite3 *old, sqlite3 *db, const struct report_out *out)
{
    struct buf text = BUF(1024);
    char size[UNITS_TEXT];
    if (!has_arenas(db) && !(old && has_arenas(old)))
        return;
    buf_puts(&text,
             "Python's small objects are inside its arenas, which are reserved and in no number of active bytes: ");
    if (old)
        buf_printf(&text, "%s at most before, ", units_bytes(size, advice_arenas_peak(old)));
    buf_printf(&text, "%s at most%s; record with 'memprof run --python-allocators' to count each object",
               units_bytes(size, advice_arenas_peak(db)), old ? " now" : "");
    print((void *)(uintptr_t)out, text.data);
    buf_free(&text);
}

static void append(void *context, const char *advice)
{
    struct buf *list = context;
    buf_puts(list, list->length ? ", " : "");
    record_json_string(list, advice);
}

void advice_record(sqlite3 *db, struct record *record)
{
    struct buf list = BUF(1 << 20);
    if (record->out->format != REPORT_JSON)
        return;
    advice_each(db, append, &list);
    fprintf(record->out->file, ",\n\"advice\": [%s]", buf_text(&list));
    buf_free(&list);
}
