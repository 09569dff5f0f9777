#include "wrapper.h"

#include "../../common/db.h"
#include "../../common/match.h"
#include "../../common/packed.h"
#include "walk.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
    FUNCTIONS = 4,       /* which so many functions call, */
    FUNCTIONS_SIZED = 3, /* or so many, if they ask for other sizes: an object of the function's own has one, */
    FUNCTIONS_NAMED = 2, /* or so many, if it is called like one, */
    FUNCTIONS_KNOWN =
        2, /* or, of other sizes, so many with names, if it calls malloc itself, as dlopen's callers do not */
    CARVED_BYTES = 1024, /* what all of it is multiples of: what an arena takes, not what its callers ask for, */
    CARVED_SITES = 8,    /* of which so many tell, with so many blocks */
    CARVED_BLOCKS = 32,
};

/* A word of a name, in lower case: "Alloc" and "Zero" of "allocZero", "GC" and "Malloc" of "GCMalloc". Returns where
 * the next one may begin, or NULL: there is none. */
static const char *next_word(const char *name, char *word, size_t size)
{
    size_t length = 0;
    while (*name && !isalpha((unsigned char)*name))
        name++;
    const char *at = name;
    for (; isalpha((unsigned char)*at); at++) {
        int is_hump = at > name && isupper((unsigned char)*at) &&
                      (islower((unsigned char)at[-1]) || islower((unsigned char)at[1]));
        if (is_hump)
            break;
        if (length < size - 1)
            word[length++] = (char)tolower((unsigned char)*at);
    }
    word[length] = 0;
    return length ? at : NULL;
}

static int is_one_of(const char *word, const char *const *words)
{
    while (*words && strcmp(word, *words) != 0)
        words++;
    return *words != NULL;
}

/* "alloc", "zmalloc", "reallocate", "mallocz", "xstrdup", "memalign"; neither "allocation" nor "deallocate" */
static int says_alloc(const char *word)
{
    static const char *const endings[] = {"", "z", "n", "ate", "array", NULL};
    const char *at = strstr(word, "alloc");
    if (at)
        return strncmp(word, "de", 2) != 0 && is_one_of(at + strlen("alloc"), endings);
    size_t length = strlen(word);
    if (length >= 8 && strcmp(word + length - 8, "memalign") == 0)
        return 1;
    return length >= 6 && (strcmp(word + length - 6, "strdup") == 0 || strcmp(word + length - 6, "memdup") == 0 ||
                           strcmp(word + length - 6, "trndup") == 0);
}

/* It does something with what is allocated: "AddAllocationObserver". */
static int says_other(const struct row *row)
{
    static const char *const others[] = {"add", "remove", "set", "get", "is", "has", "on", "register", "notify", NULL};
    char word[64];
    return row->plain_name && next_word(row->plain_name, word, sizeof word) && is_one_of(word, others);
}

int wrapper_is_named(const struct row *row)
{
    char word[64];
    if (row->plain_name && strncmp(row->plain_name, "operator new", 12) == 0) /* a class's */
        return 1;
    if (says_other(row))
        return 0;
    for (const char *at = row->plain_name; at && (at = next_word(at, word, sizeof word));)
        if (says_alloc(word))
            return 1;
    return !row->function;
}

/* Whether all functions that the pattern names are called alike, but for arguments. */
static int names_only(sqlite3 *db, const char *pattern, const struct row *row, const char *bare)
{
    sqlite3_stmt *s = NULL;
    int is_only =
        sqlite3_prepare_v2(db, "SELECT name, plain_name FROM function WHERE plain_name = ?", -1, &s, NULL) == SQLITE_OK;
    if (is_only)
        sqlite3_bind_text(s, 1, row->plain_name, -1, SQLITE_STATIC);
    while (is_only && sqlite3_step(s) == SQLITE_ROW) {
        struct buf other = BUF(1 << 20);
        match_bare_name(db_text(s, 0), 0, &other);
        is_only = strcmp(buf_text(&other), bare) == 0 || !match_function(pattern, db_text(s, 0), db_text(s, 1));
        buf_free(&other);
    }
    sqlite3_finalize(s);
    return is_only;
}

void wrapper_skip_name(sqlite3 *db, const struct row *row, struct buf *out)
{
    struct buf bare = BUF(1 << 20);
    if (!row->function || !row->plain_name) {
        row_function_text(row, out);
        return;
    }
    match_bare_name(row->function, 0, &bare);
    const char *name = buf_text(&bare), *end = name + strlen(name), *pattern = row->plain_name;
    const char *at = end - strlen(pattern);
    if (at >= name && strcmp(at, pattern) == 0)
        while (at > name && !names_only(db, pattern, row, name)) {
            for (at -= 2; at > name && strncmp(at - 2, "::", 2) != 0; at--)
                continue;
            pattern = at = at > name ? at : name;
        }
    buf_puts(out, pattern);
    buf_free(&bare);
}

/* Once each: a function may have many lines. */
static void add_option(const char *option, size_t length, struct buf *options)
{
    for (const char *at = buf_text(options); (at = strstr(at, " --skip ")); at += strlen(" --skip "))
        if (strncmp(at, option, length) == 0 && (!at[length] || at[length] == ' '))
            return;
    buf_add(options, option, length);
}

void wrapper_add_options(const char *more, struct buf *options)
{
    for (const char *next; *more; more = next) {
        next = strstr(more + 1, " --skip ");
        next = next ? next : more + strlen(more);
        add_option(more, (size_t)(next - more), options);
    }
}

static void add_skip(sqlite3 *db, const struct row *row, struct buf *options)
{
    struct buf name = BUF(4096), option = BUF(1 << 16);
    wrapper_skip_name(db, row, &name);
    buf_puts(&option, " --skip ");
    buf_shell(&option, buf_text(&name));
    add_option(buf_text(&option), option.length, options);
    buf_free(&option);
    buf_free(&name);
}

/* "zmalloc", "ck_calloc", "xstrdup": called like one of libc's, and like nothing else. */
static int is_like_libc(const struct row *row)
{
    static const char *const ends[] = {"malloc", "calloc", "realloc", "zalloc", "strdup"};
    size_t length = row->plain_name ? strlen(row->plain_name) : 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (length >= strlen(ends[i]) && length <= strlen(ends[i]) + 3 &&
            strcmp(row->plain_name + length - strlen(ends[i]), ends[i]) == 0)
            return 1;
    return 0;
}

void wrapper_add_skips(sqlite3 *db, const struct row *row, const struct callers *callers, struct buf *options)
{
    add_skip(db, row, options);
    /* code without a name that functions with an allocator's name call is behind these: palloc, palloc0; and a wrapper
     * may call another one: the zmalloc of gmalloc */
    for (int i = 0; i < callers->count; i++)
        if (row->function ? is_like_libc(&callers->item[i].row)
                          : callers->item[i].row.function && wrapper_is_named(&callers->item[i].row))
            add_skip(db, &callers->item[i].row, options);
}

/* A number that the statement says of a line, whose id it binds; 0 where it fails. */
static int64_t ask(sqlite3 *db, const char *sql, int64_t line_id)
{
    sqlite3_stmt *s = NULL;
    int64_t number = 0;
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(s, 1, line_id);
        number = sqlite3_step(s) == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
    }
    sqlite3_finalize(s);
    return number;
}

/* One line makes all that the function allocates; of a function without line information one row stands for all of its
 * lines. */
static int has_one_line(sqlite3 *db, const struct row *row)
{
    return ask(db,
               "SELECT count(DISTINCT key_id) FROM account WHERE scope = 'line' AND inclusive = 0 AND kind = 'all' AND "
               "key_id IN (SELECT line_id FROM line WHERE function_id = (SELECT function_id FROM line WHERE line_id = "
               "?))",
               row->key_id) == 1;
}

static int all_stacks(struct walk *walk, const struct row *row, int (*is_so)(const struct callers_line *line))
{
    struct callers_line *line;
    int is_true = callers_open(walk_db(walk), walk, row, CALLERS_OF_RUN, NULL, &line, NULL) == 0 && is_so(line);
    callers_close(line);
    return is_true;
}

static int have_names(const struct callers *callers)
{
    int i = 0;
    while (i < callers->count && callers->item[i].row.function)
        i++;
    return i == callers->count;
}

/* Of few callers only what looks like nothing else. */
static int is_for_few(struct walk *walk, const struct row *row, const struct callers *callers)
{
    return !says_other(row) && have_names(callers) && all_stacks(walk, row, callers_line_is_direct);
}

static int has_sizes(sqlite3 *db, const struct row *row)
{
    return ask(db,
               "SELECT min(largest_bytes) < max(largest_bytes) FROM site JOIN site_line USING(site_id) WHERE line_id = "
               "? AND alloc_bytes > 0",
               row->key_id) == 1;
}

int wrapper_is(struct walk *walk, const struct row *row, const struct callers *callers)
{
    sqlite3 *db = walk_db(walk);
    const int64_t count = callers->function_count;
    if (wrapper_is_named(row))
        return count >= (row->function ? FUNCTIONS_NAMED : FUNCTIONS);
    if (count < FUNCTIONS_KNOWN || !has_one_line(db, row) || (count < FUNCTIONS && !has_sizes(db, row)))
        return 0;
    if (count < FUNCTIONS_SIZED && !is_for_few(walk, row, callers))
        return 0;
    return row->file || all_stacks(walk, row, callers_leave_one_place);
}

int wrapper_chain_load(sqlite3 *db, struct walk *walk, const struct row *row, enum callers_of of, const char *kind,
                       struct wrapper_chain *chain, struct error *err)
{
    struct callers_line *line;
    int rc = callers_open(db, walk, row, of, kind, &line, err);
    const struct callers *last;
    *chain = (struct wrapper_chain){0};
    do {
        last = &chain->callers[chain->count];
        if (rc == 0)
            rc = callers_load(line, chain->count, &chain->callers[chain->count], err);
        chain->count++;
    } while (rc == 0 && chain->count < WRAPPER_CHAIN_MAX && last->count == 1 && last->item[0].row.module &&
             last->site_count > 1);
    callers_close(line);
    return rc;
}

const struct callers *wrapper_chain_last(const struct wrapper_chain *chain)
{
    return &chain->callers[chain->count - 1];
}

void wrapper_chain_free(struct wrapper_chain *chain)
{
    for (int i = 0; i < chain->count; i++)
        callers_free(&chain->callers[i]);
}

static int load_line(sqlite3 *db, int64_t site_id, int is_recorded, struct row *row, struct error *err)
{
    sqlite3_stmt *s = NULL;
    struct buf sql = BUF(1 << 12);
    buf_printf(&sql,
               "SELECT l.line_id, fn.name, fn.plain_name, f.path, l.line, m.path, l.offset FROM %s_line sl "
               "JOIN line l USING(line_id) LEFT JOIN function fn USING(function_id) LEFT JOIN file f ON "
               "f.file_id = l.file_id LEFT JOIN module_key m ON m.key_id = l.module_key_id WHERE sl.site_id = ?",
               is_recorded ? packed_source(db, PACKED_TABLE_site) : "site");
    int rc = db_prepare(db, buf_text(&sql), &s, err);
    buf_free(&sql);
    if (rc)
        return rc;
    sqlite3_bind_int64(s, 1, site_id);
    int found = sqlite3_step(s) == SQLITE_ROW;
    if (found) {
        row->key_id = sqlite3_column_int64(s, 0);
        row->function = db_own_text(s, 1);
        row->plain_name = db_own_text(s, 2);
        row->file = db_own_text(s, 3);
        row->line = sqlite3_column_int64(s, 4);
        row->module = db_own_text(s, 5);
        row->offset = sqlite3_column_int64(s, 6);
    }
    sqlite3_finalize(s);
    return found;
}

static int may_be_wrapper(sqlite3 *db, const struct row *row)
{
    return wrapper_is_named(row) || has_one_line(db, row);
}

static int is_carver(sqlite3 *db, int64_t line_id)
{
    sqlite3_stmt *s = NULL;
    int is_one = 0;
    if (sqlite3_prepare_v2(
            db,
            "SELECT count(*), max(alloc_bytes % ?2), sum(alloc_count) FROM site JOIN site_line USING(site_id) WHERE "
            "line_id = ?1 AND alloc_bytes > 0",
            -1, &s, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(s, 1, line_id);
        sqlite3_bind_int64(s, 2, CARVED_BYTES);
        is_one = sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int64(s, 0) >= CARVED_SITES &&
                 sqlite3_column_int64(s, 1) == 0 && sqlite3_column_int64(s, 2) >= CARVED_BLOCKS;
    }
    sqlite3_finalize(s);
    return is_one;
}

int wrapper_callers(sqlite3 *db, int64_t site_id, const char *device, enum callers_of of, struct callers *callers,
                    struct buf *skips, struct error *err)
{
    struct row row = {0};
    struct walk *walk = NULL;
    struct wrapper_chain chain = {0};
    *callers = (struct callers){0};
    int is_recorded = of == CALLERS_OF_END_RECORDED;
    int rc = load_line(db, site_id, is_recorded, &row, err);
    if (rc == 1 && (is_recorded ? row.function && wrapper_is_named(&row) : may_be_wrapper(db, &row))) {
        row.device = xstrdup(device);
        rc = walk_open(db, TREE_BOTH, &walk, err);
        if (rc == 0)
            rc = wrapper_chain_load(db, walk, &row, of, NULL, &chain, err);
        if (rc == 0 && wrapper_is(walk, &row, wrapper_chain_last(&chain)))
            *callers = chain.callers[--chain.count]; /* no longer the chain's */
        callers->is_of_carver = callers->count > 0 && is_carver(db, row.key_id);
        if (rc == 0 && callers->count && skips)
            wrapper_add_skips(db, &row, callers, skips);
        wrapper_chain_free(&chain);
        walk_close(walk);
    }
    char *texts[] = {row.device, row.function, row.plain_name, row.file, row.module};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
    return rc < 0 ? rc : 0;
}
