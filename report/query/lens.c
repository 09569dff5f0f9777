#include "lens.h"

#include "../../common/db.h"
#include "../../common/match.h"
#include "bare_code.h"
#include "lens_private.h"
#include "merged.h"
#include "survivors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- what is skipped --------------------------------------------------------------------------------------------- */

static int skip_functions(struct lens *l, const char *pattern, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int found = 0, step = SQLITE_DONE, rc;
    uint32_t index = 1;
    rc = db_prepare(l->db, "SELECT name, plain_name FROM main.function ORDER BY function_id", &s, err);
    while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW && index < l->tree.function_count) {
        char *name = xstrdup(db_text(s, 0));
        if (match_function(pattern, name, db_text(s, 1)))
            found = l->tree.functions[index].is_skipped = 1;
        free(name);
        index++;
    }
    if (rc == 0 && step != SQLITE_DONE && step != SQLITE_ROW)
        rc = db_error(l->db, err);
    sqlite3_finalize(s);
    return rc ? rc : found;
}

static int is_bare(const struct lens *l, const struct tree_address *a)
{
    return a->module && !(a->frame_count && l->tree.frames[a->first_frame].function);
}

/* Code without a symbol goes by what a table shows of it: "git+0x28961c". */
static int skip_addresses(struct lens *l, const char *pattern)
{
    int found = 0;
    for (uint32_t i = 1; i < l->tree.address_count; i++) {
        struct tree_address *a = &l->tree.addresses[i];
        if (is_bare(l, a) && bare_code_matches(pattern, l->tree.modules[a->module].name, (int64_t)a->offset))
            found = a->is_skipped = 1;
    }
    return found;
}

/* Or by what the page shows, where that is the code of one module: "etree+0x12f". */
static int skip_label(struct lens *l, const char *pattern)
{
    struct buf whole = BUF(1 << 16), name = BUF(1 << 16);
    int is_one = 1;
    for (uint32_t i = 1; i < l->tree.address_count && is_one; i++) {
        const struct tree_address *a = &l->tree.addresses[i];
        if (!is_bare(l, a) || !bare_code_is_label(pattern, l->tree.modules[a->module].name, (int64_t)a->offset))
            continue;
        buf_reset(&name);
        bare_code_name(l->tree.modules[a->module].name, (int64_t)a->offset, &name);
        is_one = !whole.length || strcmp(buf_text(&whole), buf_text(&name)) == 0;
        if (!whole.length)
            buf_puts(&whole, buf_text(&name));
    }
    int found = is_one && whole.length && skip_addresses(l, buf_text(&whole));
    buf_free(&whole);
    buf_free(&name);
    return found;
}

int lens_mark_skipped(struct lens *l, struct error *err)
{
    for (int i = 0; i < l->options->skip_count; i++) {
        const char *pattern = l->options->skips[i];
        int found = skip_functions(l, pattern, err);
        if (found < 0)
            return found;
        if (!found && strchr(pattern, '+'))
            found = skip_addresses(l, pattern) || skip_label(l, pattern);
        if (found && l->options->skips_found)
            *l->options->skips_found |= 1ull << i;
        if (!found && !l->options->skips_found)
            return error_set(
                err, EINVAL,
                "--skip '%s': no such function in this recording; 'memprof report --by function' lists them", pattern);
    }
    return 0;
}

/* A view of the functions that stands before the file's: what is skipped is an allocator's. */
static int hide_skipped(struct lens *l, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_exec(l->db,
                     "CREATE TEMP TABLE lens_skipped(function_id INTEGER PRIMARY KEY);"
                     "CREATE TEMP VIEW function AS SELECT function_id, name, plain_name, raw_name, file_id, line, "
                     "is_allocator OR function_id IN temp.lens_skipped AS is_allocator FROM main.function",
                     err);
    if (rc == 0)
        rc = db_prepare(l->db, "INSERT INTO temp.lens_skipped VALUES(?)", &s, err);
    for (uint32_t i = 1; i < l->tree.function_count && rc == 0; i++) {
        if (!l->tree.functions[i].is_skipped)
            continue;
        sqlite3_bind_int64(s, 1, l->tree.functions[i].id);
        rc = sqlite3_step(s) == SQLITE_DONE ? 0 : db_error(l->db, err);
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    return rc;
}

/* --- all --------------------------------------------------------------------------------------------------------- */

/* The only thread, or process (one of its threads), that allocated anything in the run; 0: there are several. */
static int64_t only_thread(sqlite3 *db, int is_by_process)
{
    return db_int(db,
                  is_by_process
                      ? "SELECT iif(count(DISTINCT i.first_id) = 1, min(a.key_id), 0) FROM main.account a JOIN "
                        "main.thread t ON t.thread_id = a.key_id JOIN v_image i USING(process_id) WHERE "
                        "a.scope = 'thread'"
                      : "SELECT iif(count(DISTINCT key_id) = 1, min(key_id), 0) FROM main.account WHERE "
                        "scope = 'thread'",
                  0);
}

/* From the sums of chunks; in a file that lacks those of threads, the sites' are those of the only thread, and its
 * process. Without them the events tell. */
static int load_summed(struct lens *l, struct error *err)
{
    struct lens_window *w = l->options->window;
    if (!w->is_summed)
        return -EAGAIN;
    int rc = window_load(l->db, w->ranges, w->count, w->is_by_process ? WINDOW_PROCESSES : WINDOW_PARTS, &l->replay,
                         &w->result, err);
    const int64_t thread_id =
        rc == 0 && !w->result.has_parts && !w->is_by_size ? only_thread(l->db, w->is_by_process) : 0;
    if (rc == 0 && !w->result.has_parts && (!w->result.is_counted || !thread_id)) {
        replay_free(&l->replay);
        return -EAGAIN;
    }
    if (rc == 0 && !w->result.has_parts)
        window_fill_thread(&l->replay, thread_id);
    return rc;
}

int lens_load_replay(struct lens *l, struct error *err)
{
    const struct lens_options *o = l->options;
    int is_one = o->pid != 0, is_large = o->min_size_bytes > 0;
    int rc = is_one ? replay_images(l->db, o->pid, &l->images, err) : 0;
    if (rc == 0 && is_one)
        is_one = db_int(l->db, "SELECT count(DISTINCT pid) FROM process", 0) != 1;
    if (rc || (!is_one && !o->window && !is_large))
        return rc;
    l->is_replayed = 1;
    struct lens_window *w = o->window;
    if (!is_one && !is_large && !w->is_by_event)
        return window_load(l->db, w->ranges, w->count, WINDOW_SITES, &l->replay, &w->result, err);
    if (!replay_is_possible(l->db))
        return error_set(err, EINVAL, "%s needs all events, which this recording does not keep (%s)%s",
                         is_one     ? "--process"
                         : is_large ? "--min-size"
                                    : "a window by thread, process or size",
                         merged_count(l->db) ? "memprof merge" : "--aggregate, --max-events",
                         is_one ? "; 'memprof report --by process' shows the totals" : "");
    rc = w && !is_one && !is_large ? load_summed(l, err) : -EAGAIN;
    if (rc != -EAGAIN)
        return rc;
    if (w)
        w->result = (struct window_result){
            .is_counted = 1, .start_ns = w->ranges[0].from_ns, .end_ns = w->ranges[w->count - 1].to_ns};
    return replay_load(l->db, is_one ? &l->images : NULL, w ? w->ranges : NULL, w ? w->count : 0, o->min_size_bytes,
                       &l->replay, err);
}

static int load_survivors(struct lens *l, struct error *err)
{
    const struct lens_window *w = l->options->window;
    if (!w->result.is_counted)
        return error_set(err, EINVAL,
                         "what a window leaves behind only its events tell, which this recording does not "
                         "keep (--aggregate, --max-events)");
    return survivors_load(l->db, l->options->pid ? &l->images : NULL, w->ranges, w->count, &l->replay, err);
}

void lens_add_no_frame(struct lens *l)
{
    struct tree *t = &l->tree;
    int64_t last = t->function_count > 1 ? t->functions[t->function_count - 1].id : 0;
    struct tree_function *f = ARRAY_ADD(t->functions, t->function_count, t->function_capacity);
    f->id = last + 1;
    l->no_frame = tree_add_line(t, t->function_count - 1);
}

int lens_apply(sqlite3 *db, const struct lens_options *options, struct error *err)
{
    struct lens l = {.db = db, .options = options};
    int rc = 0;
    if (!options->skip_count && !options->pid && !options->window && !options->min_size_bytes &&
        options->language == TREE_BOTH)
        return 0;
    if (options->language == TREE_PYTHON && db_int(db, "SELECT 1 FROM frame WHERE language = 'python' LIMIT 1", 0) == 0)
        return error_set(err, EINVAL, "--python-only: no Python code in this recording");
    if (options->is_of_sites && !(options->window && (options->window->is_by_event || options->window->has_survivors)))
        return lens_apply_sites(&l, err);
    lens_kind(&l, "all");
    rc = tree_open(db, &l.tree, err);
    if (rc == 0)
        rc = lens_mark_skipped(&l, err);
    if (rc == 0 && (options->pid || options->window || options->min_size_bytes))
        rc = lens_load_replay(&l, err);
    if (rc == 0 && options->window && options->window->has_survivors)
        rc = load_survivors(&l, err);
    if (rc == 0 && options->language != TREE_BOTH)
        lens_add_no_frame(&l);
    if (rc == 0)
        rc = lens_load_sites(&l, err);
    if (rc == 0) {
        lens_account(&l);
        lens_account_threads(&l);
        rc = lens_restore_own_peaks(&l, err);
    }
    if (rc == 0)
        rc = lens_write(&l, err);
    if (rc == 0 && options->hides_skipped)
        rc = hide_skipped(&l, err);
    tree_close(&l.tree);
    replay_free(&l.replay);
    map_close(&l.row_of);
    map_close(&l.changed);
    map_close(&l.seen);
    free(l.sites);
    free(l.rows);
    free(l.kinds);
    return rc;
}
