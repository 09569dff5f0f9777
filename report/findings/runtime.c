#include "runtime.h"

#include "../../common/db.h"
#include "../../common/text.h"

#include <fnmatch.h>
#include <stddef.h>

#define NODE_ADVICE                                                                                                    \
    "JavaScript's objects are inside these maps: 'node --heap-prof' samples who allocates them, and "                  \
    "--max-old-space-size bounds most of them"
#define NODE_LINES "memprof knows no lines of JavaScript; 'node --heap-prof' samples them"
#define PHP_ADVICE                                                                                                     \
    "PHP's values are inside these maps: with USE_ZEND_ALLOC=0 in its environment each is a block of malloc, and "     \
    "memory_limit bounds them. " PHP_LINES
#define PHP_LINES                                                                                                      \
    "memprof knows no lines of PHP scripts, only those of PHP's own code; memory_get_usage() between two of a "        \
    "script's lines tells what they took"
#define RUBY_ADVICE                                                                                                    \
    "Ruby's objects are inside these maps, and longer contents in blocks of malloc beside them. " RUBY_LINES
#define RUBY_LINES                                                                                                     \
    "memprof knows no lines of Ruby scripts, only those of Ruby's own code; with require 'objspace', "                 \
    "ObjectSpace.trace_object_allocations_start at the start and ObjectSpace.dump_all at the end give each object's"

static const struct runtime runtimes[] = {
#define RUNTIME(file, name, advice, lines) {file, name, advice, lines},
#include "runtimes.def"
#undef RUNTIME
};

const struct runtime *runtime_of_module(const char *path)
{
    for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; i++)
        if (fnmatch(runtimes[i].file, text_basename(path), 0) == 0)
            return &runtimes[i];
    return NULL;
}

const struct runtime *runtime_of_site(sqlite3 *db, int64_t site_id)
{
    const struct runtime *found = NULL;
    sqlite3_stmt *s = NULL;
    if (db_prepare(db,
                   "SELECT m.path FROM site s JOIN stack t ON t.stack_id = s.stack_id JOIN address a ON a.address_id = "
                   "t.address_id JOIN module m ON m.module_id = a.module_id WHERE s.site_id = ? AND s.kind = 'map'",
                   &s, NULL))
        return NULL;
    sqlite3_bind_int64(s, 1, site_id);
    if (sqlite3_step(s) == SQLITE_ROW)
        found = runtime_of_module(db_text(s, 0));
    sqlite3_finalize(s);
    return found;
}

const struct runtime *runtime_of_peak(sqlite3 *db, int64_t *bytes)
{
    const struct runtime *found = NULL;
    sqlite3_stmt *s = NULL;
    if (db_prepare(
            db,
            "SELECT k.path, a.at_peak_bytes FROM account a JOIN module_key k ON k.key_id = a.key_id WHERE a.scope "
            "= 'module' AND a.inclusive = 0 AND a.kind = 'map' AND a.device_id = 0 AND a.at_peak_bytes > (SELECT "
            "peak_active_bytes / 2 FROM total t WHERE t.device_id = 0 AND t.kind = 'all') ORDER BY 2 DESC",
            &s, NULL))
        return NULL;
    if (sqlite3_step(s) == SQLITE_ROW) {
        found = runtime_of_module(db_text(s, 0));
        *bytes = sqlite3_column_int64(s, 1);
    }
    sqlite3_finalize(s);
    return found;
}
