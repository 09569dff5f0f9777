#include "finish_recording.h"

#include "../../common/db.h"
#include "../../profiler/finish/finish.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* The self rule the slow way. node: one row a level of each site's stack. A bare one is code without a symbol; family:
 * of the allocator family, by its functions or as what such a function calls in its own module. */
#define NODES                                                                                                          \
    "CREATE TEMP TABLE about AS SELECT a.address_id, k.key_id AS module, m.path IS '/opt/libmemprof.so' AS is_ours,"   \
    "  NOT EXISTS (SELECT 1 FROM frame f LEFT JOIN file USING(file_id) LEFT JOIN function fn USING(function_id)"       \
    "    WHERE f.address_id = a.address_id AND (fn.name NOT NULL OR (path NOT NULL AND f.line > 0))) AS is_bare,"      \
    "  EXISTS (SELECT 1 FROM frame f WHERE f.address_id = a.address_id) AND NOT EXISTS (SELECT 1 FROM frame f LEFT"    \
    "    JOIN function USING(function_id) WHERE f.address_id = a.address_id AND is_allocator IS NOT 1) AS "            \
    "is_allocator"                                                                                                     \
    "  FROM address a LEFT JOIN module m USING(module_id) LEFT JOIN module_key k ON k.path = m.path AND k.build_id "   \
    "IS "                                                                                                              \
    "m.build_id;"                                                                                                      \
    "CREATE TEMP TABLE node AS WITH RECURSIVE w(site_id, stack_id, level) AS (SELECT site_id, stack_id, 0 FROM site"   \
    "  UNION ALL SELECT site_id, parent_id, level + 1 FROM w JOIN stack USING(stack_id) WHERE parent_id NOT NULL)"     \
    "  SELECT site_id, level, about.*, 0 AS is_family FROM w JOIN stack USING(stack_id) JOIN about USING(address_id);" \
    "CREATE INDEX temp.node_level ON node(site_id, level);"                                                            \
    "UPDATE node AS n SET is_family = 1 WHERE NOT is_ours AND EXISTS (SELECT 1 FROM node o WHERE o.site_id = "         \
    "n.site_id"                                                                                                        \
    "  AND o.level >= n.level AND o.is_allocator AND (o.level = n.level OR (o.module = n.module AND NOT EXISTS ("      \
    "  SELECT 1 FROM node b WHERE b.site_id = n.site_id AND b.level >= n.level AND b.level < o.level AND NOT ("        \
    "  b.is_bare AND NOT b.is_ours AND b.module IS n.module)))));"

/* place: every frame with its level. source: the innermost with a line; it is lost where code without a symbol lies
 * before it whose module nothing with a name entered. family: who stands for a stack of nothing else, one without a
 * line rather than one with. */
#define SELVES                                                                                                         \
    "CREATE TEMP TABLE place AS SELECT site_id, level, row_number() OVER (PARTITION BY site_id ORDER BY level,"        \
    "  inline_depth) - 1 AS depth, is_ours, is_bare, is_family, fn.name NOT NULL AND NOT is_allocator AS is_named,"    \
    "  path NOT NULL AND fr.line > 0 AND coalesce(fn.is_allocator, 0) = 0 AS is_source FROM (SELECT site_id, level,"   \
    "  address_id, is_ours, is_bare, is_family FROM node) LEFT JOIN frame fr USING(address_id) LEFT JOIN function fn"  \
    "  USING(function_id) LEFT JOIN file USING(file_id);"                                                              \
    "CREATE INDEX temp.place_depth ON place(site_id, depth);"                                                          \
    "CREATE TEMP TABLE source AS SELECT site_id, level, min(depth) AS depth FROM place WHERE is_source AND NOT "       \
    "is_ours GROUP BY site_id;"                                                                                        \
    "DELETE FROM source AS s WHERE EXISTS (SELECT 1 FROM node n WHERE n.site_id = s.site_id AND n.level < s.level"     \
    "  AND n.is_bare AND NOT n.is_ours AND NOT n.is_family AND n.module NOT NULL AND NOT EXISTS (SELECT 1 FROM node o" \
    "  WHERE o.site_id = n.site_id AND o.level > n.level AND o.level <= s.level AND NOT o.is_bare AND o.module = "     \
    "n.module));"                                                                                                      \
    "CREATE TEMP TABLE nearest AS SELECT site_id, min(depth) AS depth, is_bare FROM place"                             \
    "  WHERE NOT is_ours AND NOT is_family AND (is_bare OR is_named) GROUP BY site_id;"                                \
    "CREATE TEMP TABLE family AS SELECT site_id, depth FROM (SELECT site_id, depth, row_number() OVER (PARTITION BY"   \
    "  site_id ORDER BY coalesce(line, 0) > 0, depth) AS rank FROM walk WHERE function_id NOT NULL) WHERE rank = 1;"   \
    "CREATE TEMP TABLE self AS SELECT site_id, coalesce(s.depth, iif(n.depth IS NULL, f.depth, iif(n.is_bare, NULL,"   \
    "  n.depth))) AS depth,"                                                                                           \
    "  coalesce(n.depth, (SELECT min(depth) FROM walk w WHERE w.site_id = site.site_id)) AS first"                     \
    "  FROM site LEFT JOIN source s USING(site_id) LEFT JOIN nearest n USING(site_id) LEFT JOIN family f "             \
    "USING(site_id);"

#define LINE_KEY    "printf('%s|%s|%d', function_id, iif(line > 0, file_id, NULL), coalesce(line, 0))"
#define ADDRESS_KEY "printf('%s+%d/%s', module, offset, build_id)"

const char finish_naive_keys[] =
    "CREATE TEMP TABLE walk AS SELECT s.site_id, v.depth, v.address_id, fn.function_id, fi.file_id, v.line AS line, "
    "v.is_allocator,"
    "  a.module_id, a.offset, m.path AS module, m.build_id FROM site s JOIN v_stack v USING(stack_id) JOIN address a "
    "USING(address_id)"
    "  LEFT JOIN module m ON m.module_id = a.module_id LEFT JOIN function fn ON fn.name = v.function LEFT JOIN file fi "
    "ON fi.path = v.file"
    "  WHERE m.path IS NULL OR m.path <> '/opt/libmemprof.so';"
    "UPDATE walk SET line = NULL WHERE file_id IS NULL;" NODES SELVES
    "CREATE TEMP TABLE site_key(scope, key, inclusive, site_id, UNIQUE(scope, key, inclusive, site_id));"
    /* self */
    "INSERT INTO site_key SELECT 'line', " LINE_KEY ", 0, site_id FROM self JOIN walk USING(site_id, depth);"
    "INSERT INTO site_key SELECT 'line', " ADDRESS_KEY ", 0, s.site_id FROM self s JOIN walk w ON"
    "  w.site_id = s.site_id AND w.depth = s.first WHERE s.depth IS NULL;"
    "INSERT INTO site_key SELECT 'line', '?', 0, site_id FROM self WHERE first IS NULL;"
    "INSERT INTO site_key SELECT 'function', coalesce(function_id, '-' || key), 0, site_id FROM self LEFT JOIN walk"
    "  USING(site_id, depth) JOIN site_key k USING(site_id) WHERE k.scope = 'line' AND k.inclusive = 0;"
    "INSERT INTO site_key SELECT 'file', coalesce(file_id, 0), 0, site_id FROM self LEFT JOIN walk "
    "USING(site_id, depth);"
    "INSERT INTO site_key SELECT 'module', coalesce(module || '/' || coalesce(build_id, ''), '-'), 0, s.site_id"
    "  FROM self s LEFT JOIN walk w ON w.site_id = s.site_id AND w.depth = coalesce(s.depth, s.first);"
    /* inclusive */
    "INSERT OR IGNORE INTO site_key SELECT 'line', " LINE_KEY ", 1, site_id FROM walk"
    "  WHERE function_id IS NOT NULL OR line > 0;"
    "INSERT OR IGNORE INTO site_key SELECT 'line', " ADDRESS_KEY ", 1, site_id FROM walk WHERE " ADDRESS_KEY
    "  IN (SELECT key FROM site_key WHERE scope = 'line' AND inclusive = 0);"
    "INSERT OR IGNORE INTO site_key SELECT 'function', function_id, 1, site_id FROM walk WHERE function_id;"
    "INSERT OR IGNORE INTO site_key SELECT 'function', '-' || " LINE_KEY ", 1, site_id FROM walk"
    "  WHERE function_id IS NULL AND line > 0;"
    "INSERT OR IGNORE INTO site_key SELECT 'function', '-' || " ADDRESS_KEY ", 1, site_id FROM walk WHERE " ADDRESS_KEY
    "  IN (SELECT key FROM site_key WHERE scope = 'line' AND inclusive = 0);"
    "INSERT OR IGNORE INTO site_key SELECT 'file', file_id, 1, site_id FROM walk WHERE file_id;"
    "INSERT OR IGNORE INTO site_key SELECT 'file', 0, 1, site_id FROM site_key WHERE scope = 'file' AND key = 0;"
    "INSERT OR IGNORE INTO site_key SELECT 'module', coalesce(module || '/' || coalesce(build_id, ''), '-'), 1, site_id"
    "  FROM walk;"
    "INSERT OR IGNORE INTO site_key SELECT v.column1, v.column2, 1, site_id FROM self, (VALUES('line', '?'), "
    "('function', '-?'), ('module', '-')) v WHERE first IS NULL;";

#define SUMS                                                                                                           \
    "sum(alloc_count), sum(alloc_bytes), sum(free_count), sum(free_bytes), sum(temporary_count), "                     \
    "sum(temporary_bytes), "                                                                                           \
    "sum(at_peak_bytes), sum(at_peak_count), sum(at_kind_peak_bytes), sum(end_bytes), sum(end_count), "                \
    "max(active_peak_bytes), max(reserved_peak_bytes), max(largest_bytes), sum(lifetime_ns)"
#define COLUMNS                                                                                                        \
    "alloc_count, alloc_bytes, free_count, free_bytes, temporary_count, temporary_bytes, at_peak_bytes, "              \
    "at_peak_count, "                                                                                                  \
    "at_kind_peak_bytes, end_bytes, end_count, active_peak_bytes, reserved_peak_bytes, largest_bytes, lifetime_ns"

const char finish_naive_accounts[] =
    "CREATE TEMP TABLE naive AS SELECT scope, key, inclusive, device_id, kind, " SUMS
    " FROM site_key JOIN site USING(site_id) "
    "GROUP BY 1, 2, 3, 4, 5;"
    "INSERT INTO naive SELECT scope, key, inclusive, device_id, 'all', " SUMS
    " FROM site_key JOIN site USING(site_id) GROUP BY 1, 2, "
    "3, 4;"
    "CREATE TEMP TABLE key_name AS SELECT 'line' AS scope, line_id AS key_id, CASE WHEN function_id IS NULL AND "
    "file_id IS NULL AND "
    "  offset IS NULL THEN '?' WHEN offset IS NOT NULL THEN printf('%s+%d/%s', path, offset, build_id) ELSE"
    "  printf('%s|%s|%d', function_id, file_id, line) END AS key FROM line LEFT JOIN module_key ON key_id = "
    "module_key_id;"
    "INSERT INTO key_name SELECT 'function', -key_id, '-' || key FROM key_name;"
    "INSERT INTO key_name SELECT 'function', function_id, function_id FROM function;"
    "INSERT INTO key_name SELECT 'file', file_id, file_id FROM file;"
    "INSERT INTO key_name SELECT 'module', key_id, path || '/' || coalesce(build_id, '') FROM module_key;"
    "INSERT INTO key_name VALUES('file', 0, 0), ('module', 0, '-');"
    "CREATE TEMP TABLE ours AS SELECT scope, key, inclusive, device_id, kind, " COLUMNS
    " FROM account JOIN key_name USING(scope, key_id);";

void finish_all(sqlite3 *db, int again)
{
    struct finish_options options = {.again = again};
    struct error err = {""};
    if (finish_database(db, &options, &err))
        fail_msg("%s", err.text);
    assert_int_equal(db_int(db, "SELECT value = 'complete' FROM meta WHERE key = 'state'", 0), 1);
}

void finish_none(sqlite3 *db, const char *query)
{
    sqlite3_stmt *s;
    if (sqlite3_prepare_v2(db, query, -1, &s, NULL) != SQLITE_OK)
        fail_msg("%s: %s", query, sqlite3_errmsg(db));
    if (sqlite3_step(s) == SQLITE_ROW) {
        struct buf row = BUF(65536);
        for (int i = 0; i < sqlite3_column_count(s); i++)
            buf_printf(&row, " %s=%s", sqlite3_column_name(s, i), db_text(s, i));
        fail_msg("%.60s...:%s", query, row.data);
    }
    sqlite3_finalize(s);
}

void finish_check_accounts(sqlite3 *db)
{
    scratch_sql(db, "%s", finish_naive_keys);
    scratch_sql(db, "%s", finish_naive_accounts);
    finish_none(db, "SELECT * FROM naive EXCEPT SELECT * FROM ours");
    finish_none(db, "SELECT * FROM ours EXCEPT SELECT * FROM naive");
    assert_true(db_int(db, "SELECT count(*) FROM naive", 0) > 300);
    /* whatever the key, the rows add up to the sites */
    finish_none(db, "SELECT scope, s.* FROM (SELECT DISTINCT scope FROM naive) naive JOIN (SELECT device_id, kind, "
                    "sum(alloc_bytes) AS bytes FROM site GROUP BY 1, 2) s WHERE bytes IS NOT (SELECT sum(alloc_bytes) "
                    "FROM account a WHERE a.scope = naive.scope AND NOT inclusive AND a.device_id = s.device_id AND "
                    "a.kind = s.kind)");
    /* no row twice, none without a name, every site has a line */
    finish_none(db,
                "SELECT scope, key_id FROM account WHERE (scope, key_id) NOT IN (SELECT scope, key_id FROM key_name)");
    finish_none(
        db, "SELECT site_id FROM site WHERE site_id NOT IN (SELECT site_id FROM site_line JOIN line USING(line_id))");
    finish_none(
        db, "SELECT count(*) FROM line GROUP BY function_id, file_id, line, module_key_id, offset HAVING count(*) > 1");
    finish_none(
        db,
        "SELECT site_id FROM site_line JOIN key_name k ON k.scope = 'line' AND k.key_id = line_id LEFT JOIN site_key s "
        "USING(site_id) WHERE s.scope = 'line' AND s.inclusive = 0 AND s.key <> k.key");
}

int finish_check_own_peaks(sqlite3 *db)
{
    sqlite3_stmt *rows, *members;
    struct change {
        uint32_t site_id;
        int64_t bytes;
    } *changes = malloc((finish_event_count + 1) * sizeof *changes); /* hundreds of rows read them */
    size_t change_count = 0;
    for (size_t i = 0; i < finish_event_count; i++) {
        const struct chunk_event *e = &finish_events[i];
        int is_alloc = e->op == CHUNK_alloc || e->op == CHUNK_realloc_alloc;
        if (e->op != CHUNK_oom)
            changes[change_count++] =
                (struct change){e->site_id, is_alloc ? (int64_t)e->size_bytes : -(int64_t)e->size_bytes};
    }
    assert_int_equal(
        sqlite3_prepare_v2(db,
                           "SELECT a.scope, k.key, a.inclusive, a.device_id, a.kind, a.own_peak_bytes FROM account a "
                           "JOIN key_name k USING(scope, key_id)",
                           -1, &rows, NULL),
        SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db,
                           "SELECT site_id FROM site_key JOIN site USING(site_id) WHERE scope = ?1 AND key = ?2 AND "
                           "inclusive = ?3 AND device_id = ?4 AND (kind = ?5 OR ?5 = 'all')",
                           -1, &members, NULL),
        SQLITE_OK);
    int several = 0;
    while (sqlite3_step(rows) == SQLITE_ROW) {
        uint8_t is_in[FINISH_SITES + 1] = {0};
        int count = 0;
        for (int i = 0; i < 5; i++)
            sqlite3_bind_value(members, i + 1, sqlite3_column_value(rows, i));
        while (sqlite3_step(members) == SQLITE_ROW)
            count += is_in[sqlite3_column_int(members, 0)] = 1;
        sqlite3_reset(members);
        several += count > 1;
        int64_t live = 0, peak = 0;
        for (size_t i = 0; i < change_count; i++) {
            live += is_in[changes[i].site_id] ? changes[i].bytes : 0;
            peak = live > peak ? live : peak;
        }
        if (sqlite3_column_type(rows, 5) == SQLITE_NULL || sqlite3_column_int64(rows, 5) != peak)
            fail_msg("%s %s inclusive %d device %d %s: own peak %s, not %lld (%d sites)", db_text(rows, 0),
                     db_text(rows, 1), sqlite3_column_int(rows, 2), sqlite3_column_int(rows, 3), db_text(rows, 4),
                     db_text(rows, 5), (long long)peak, count);
    }
    sqlite3_finalize(rows);
    sqlite3_finalize(members);
    free(changes);
    return several;
}
