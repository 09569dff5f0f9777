#include "check_private.h"

#include "../../common/db.h"
#include "../../common/text.h"
#include "../../common/units.h"
#include "../findings/advice.h"
#include "../findings/notes.h"
#include "../print/command.h"
#include "../print/listing.h"
#include "../query/short_name.h"
#include "../query/threads.h"
#include "../query/unhooked.h"
#include "../text/stack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- the texts of a result --- */

static int is_bytes(const struct check_result *r)
{
    return check_infos[r->id].unit == CHECK_UNIT_bytes;
}

void check_name_text(const struct check_result *r, enum check_names names, struct buf *out)
{
    buf_puts(out, check_infos[r->id].name);
    if (r->subject)
        buf_printf(out, " %s", names == CHECK_NAMES_SHORT && r->short_subject ? r->short_subject : r->subject);
    if (r->is_growth)
        buf_puts(out, ", growth");
}

/* "940.50 KiB (963,072)": what two sizes differ by is often less than a unit's last digit shows. */
static void add_amount(const struct check_result *r, int64_t amount, struct buf *out)
{
    char text[2][UNITS_TEXT];
    if (!is_bytes(r))
        buf_puts(out, units_count(text[0], amount));
    else if (amount < 1024)
        buf_puts(out, units_bytes(text[0], amount));
    else
        buf_printf(out, "%s (%s)", units_bytes(text[0], amount), units_count(text[1], amount));
}

/* A mean of bytes: whole ones, but for the few of which a part is much. */
static void add_slope(const struct check_result *r, double slope, struct buf *out)
{
    if (fabs(slope) < 10 && fabs(slope - round(slope)) >= 0.05)
        buf_printf(out, "%.1f B", slope);
    else
        add_amount(r, llround(slope), out);
}

/* "2.00 GiB", but "878.91 KiB (900,000)": the number too where the text is not all of it. */
static void add_bound(const struct check_result *r, int64_t bound, struct buf *out)
{
    char text[UNITS_TEXT];
    int64_t shown;
    if (is_bytes(r) && units_parse_bytes(units_bytes(text, bound), &shown) == 0 && shown == bound)
        buf_puts(out, text);
    else
        add_amount(r, bound, out);
}

void check_measured_text(const struct check_result *r, struct buf *out)
{
    if (!r->is_known && !r->measured)
        buf_puts(out, "?");
    else if (check_infos[r->id].of == CHECK_OF_range)
        add_slope(r, r->slope, out);
    else {
        buf_puts(out, r->is_known ? "" : "at least ");
        add_amount(r, r->measured, out);
    }
}

static void add_growth(const struct check_options *o, const struct check_result *r, struct buf *out)
{
    const struct check_rules *rules = o->rules;
    char text[UNITS_TEXT];
    int64_t more = r->measured - r->baseline;
    buf_puts(out, "was ");
    add_amount(r, r->baseline, out);
    buf_printf(out, ": %s%s", more >= 0 ? "+" : "", units_count(text, more));
    if (r->baseline)
        buf_printf(out, " (%+.2f %%)", (double)more * 100 / (double)r->baseline);
    buf_puts(out, ", at most ");
    if (rules->has_percent || !rules->has_growth_bytes)
        buf_printf(out, "+%g %% (+%s)", rules->percent,
                   units_count(text, check_percent_of(rules->percent, r->baseline)));
    if (rules->has_percent && rules->floor_bytes && is_bytes(r))
        buf_printf(out, ", or +%s", units_bytes(text, rules->floor_bytes));
    if (rules->has_growth_bytes && is_bytes(r))
        buf_printf(out, "%s+%s", rules->has_percent ? " and " : "", units_bytes(text, rules->growth_bytes));
}

void check_limit_text(const struct check_options *o, const struct check_results *results, const struct check_result *r,
                      struct buf *out)
{
    char text[UNITS_TEXT];
    if (r->is_growth) {
        add_growth(o, r, out);
    } else {
        buf_puts(out, "at most ");
        add_bound(r, r->limit, out);
        if (check_infos[r->id].of == CHECK_OF_range)
            buf_puts(out, " an execution");
        else if (r->verdict == CHECK_BROKEN)
            buf_printf(out, ": %s%s more", units_count(text, r->measured - r->limit), is_bytes(r) ? " B" : "");
    }
    if (*r->note)
        buf_printf(out, "; %s", r->note);
    check_spread_text(results, r, out);
}

int check_walks_open(const struct check_options *o, const struct check_results *results, struct check_walks *walks,
                     struct error *err)
{
    int rc = 0;
    *walks = (struct check_walks){{NULL}};
    for (int i = 0; rc == 0 && i < results->run_count; i++)
        rc = walk_open(results->db[i], o->lens ? o->lens->language : TREE_BOTH, &walks->walk[i], err);
    return rc;
}

void check_walks_close(struct check_walks *walks)
{
    for (int i = 0; i < CHECK_RUNS_MAX; i++)
        walk_close(walks->walk[i]);
}

/* Without a file it may be any text: a module's name, or what a program calls the code that it made. */
static void add_function(const struct check_culprit *c, enum check_names names, struct buf *out)
{
    const int is_long = c->function && (c->file || strstr(c->function, "::"));
    char *name = is_long && names == CHECK_NAMES_SHORT ? short_name(c->function) : NULL;
    buf_printf(out, "  %s", name ? name : c->function ? c->function : "??");
    free(name);
}

void check_culprit_text(const struct check_result *r, const struct check_culprit *c, enum check_names names,
                        const char *base, struct buf *out)
{
    char text[UNITS_TEXT];
    if (check_infos[r->id].of == CHECK_OF_range) {
        buf_putc(out, '+');
        add_slope(r, c->slope, out);
    } else {
        buf_printf(out, "%s%s", r->is_difference ? "+" : "",
                   is_bytes(r) ? units_bytes(text, c->value) : units_count(text, c->value));
    }
    if (c->of != CULPRIT_FILE)
        add_function(c, names, out);
    if (!c->file)
        return;
    buf_puts(out, "  ");
    text_path(out, c->file, base);
    if (c->line > 0 && c->of == CULPRIT_LINE)
        buf_printf(out, ":%lld", (long long)c->line);
}

int check_print_culprits(struct walk *walk, const struct check_options *o, const struct check_result *r,
                         enum check_names names, const char *base, const struct report_out *out, const char *indent,
                         struct error *err)
{
    /* as `leaks` shows them */
    const int is_folded = o->frames > 0 && (!o->lens || o->lens->language == TREE_BOTH);
    int rc = 0;
    for (int i = 0; rc == 0 && i < r->culprit_count; i++) {
        struct buf line = BUF(1 << 20), inner = BUF(64);
        struct walk_stack stack;
        buf_puts(&line, indent);
        check_culprit_text(r, &r->culprits[i], names, base, &line);
        table_line(out, TABLE_PLAIN, buf_text(&line));
        buf_printf(&inner, "%s    ", indent);
        if (r->culprits[i].stack_id)
            rc = walk_stack(walk, r->culprits[i].stack_id, &stack, err);
        if (rc == 0 && r->culprits[i].stack_id && is_folded)
            walk_fold(&stack);
        if (rc == 0 && r->culprits[i].stack_id)
            stack_print(&stack, out, base, o->frames, buf_text(&inner));
        buf_free(&line);
        buf_free(&inner);
    }
    return rc;
}

/* --- rows --- */

enum { COLUMN_CULPRITS = 18 };
static const struct column columns[] = {
    COLUMN("verdict", NULL, TEXT),
    COLUMN("rule", NULL, TEXT),
    COLUMN("subject", NULL, TEXT),
    COLUMN("is_growth", NULL, NUMBER),
    COLUMN("unit", NULL, TEXT),
    COLUMN("measured", NULL, NUMBER),
    COLUMN("is_exact", NULL, NUMBER),
    COLUMN("limit", NULL, NUMBER),
    COLUMN("over", NULL, NUMBER),
    COLUMN("baseline", NULL, NUMBER),
    COLUMN("growth_per_execution", NULL, TEXT),
    COLUMN("origin", NULL, TEXT),
    COLUMN("note", NULL, TEXT),
    COLUMN("run", NULL, NUMBER),
    COLUMN("least", NULL, NUMBER),
    COLUMN("most", NULL, NUMBER),
    COLUMN("known_runs", NULL, NUMBER),
    COLUMN("broken_runs", NULL, NUMBER),
    [COLUMN_CULPRITS] = COLUMN("culprits", NULL, TEXT, .flags = COLUMN_JSON),
    COLUMN(NULL, "", TEXT, .place = 1),
    COLUMN(NULL, "rule", TEXT, .place = 2, .cut = TEXT_CUT_MIDDLE),
    COLUMN(NULL, "measured", NUMBER, .place = 3),
    COLUMN(NULL, "bound", TEXT, .place = 4),
};

static int culprits_json(struct walk *walk, const struct check_result *r, struct buf *json, struct error *err)
{
    struct record record;
    int rc = 0;
    record_open_in(&record, json);
    for (int i = 0; rc == 0 && i < r->culprit_count; i++) {
        const struct check_culprit *c = &r->culprits[i];
        struct buf frames = BUF(64 << 20);
        struct walk_stack stack;
        if (c->stack_id)
            rc = walk_stack(walk, c->stack_id, &stack, err);
        if (rc == 0 && c->stack_id)
            stack_json(&stack, &frames);
        record_begin(&record);
        if (check_infos[r->id].of == CHECK_OF_range)
            record_real(&record, "growth_per_execution", c->slope);
        else
            record_int(&record, r->is_difference ? "difference" : "value", c->value);
        record_text(&record, "device", c->device);
        record_text(&record, "function", c->function);
        record_text(&record, "file", c->file);
        record_int_if(&record, "line", c->line > 0, c->line);
        record_raw(&record, "frames", frames.length ? frames.data : "null");
        record_end(&record);
        buf_free(&frames);
    }
    record_close(&record);
    return rc;
}

static void list_spread(struct listing *l, const struct check_result *r)
{
    const struct check_spread *s = &r->spread;
    listing_int(l, r->run + 1);
    listing_int_if(l, s->known_runs, llround(s->least));
    listing_int_if(l, s->known_runs, llround(s->most));
    listing_int(l, s->known_runs);
    listing_int(l, s->broken_runs);
}

static int list_result(const struct check_walks *walks, const struct check_options *o,
                       const struct check_results *results, struct listing *l, const struct check_result *r,
                       struct error *err)
{
    struct buf json = BUF(64 << 20), text = BUF(1 << 20);
    const int is_range = check_infos[r->id].of == CHECK_OF_range;
    int rc = listing_shows(l, COLUMN_CULPRITS) ? culprits_json(walks->walk[r->run], r, &json, err) : 0;
    listing_text(l, check_verdict_names[r->verdict]);
    listing_text(l, check_infos[r->id].name);
    listing_text(l, r->subject);
    listing_int(l, r->is_growth);
    listing_text(l, is_bytes(r) ? "bytes" : "count");
    listing_int_if(l, r->is_known || r->measured, r->measured);
    listing_int(l, r->is_known);
    listing_int(l, r->limit);
    listing_int_if(l, r->verdict == CHECK_BROKEN && !is_range, r->measured - r->limit);
    listing_int_if(l, r->is_growth, r->baseline);
    buf_printf(&text, "%.3f", r->slope);
    listing_raw(l, is_range && r->is_known ? text.data : NULL);
    listing_text(l, r->origin);
    listing_text(l, *r->note ? r->note : NULL);
    list_spread(l, r);
    listing_raw(l, json.length ? json.data : "[]");
    listing_style(l, r->verdict == CHECK_KEPT ? TABLE_PLAIN : TABLE_STRONG);
    listing_text(l, check_verdict_names[r->verdict]);
    buf_reset(&text);
    check_name_text(r, CHECK_NAMES_SHORT, &text);
    listing_text(l, buf_text(&text));
    buf_reset(&text);
    check_measured_text(r, &text);
    listing_text(l, buf_text(&text));
    buf_reset(&text);
    check_limit_text(o, results, r, &text);
    listing_text(l, buf_text(&text));
    buf_free(&text);
    buf_free(&json);
    return rc;
}

static int list_results(const struct check_walks *walks, const struct check_options *o,
                        const struct check_results *results, struct record *document, struct error *err)
{
    struct listing *l = listing_open_in(document, "rules", columns, COLUMN_COUNT_OF(columns), NULL);
    int rc = 0;
    for (int i = 0; rc == 0 && i < results->count; i++)
        rc = list_result(walks, o, results, l, &results->result[i], err);
    listing_heading(l);
    listing_print(l);
    listing_close(l);
    return rc;
}

static void print_sum(const struct check_results *results, const struct report_out *out)
{
    struct buf line = BUF(256);
    buf_printf(&line, "%d rule%s: %d kept, %d broken", results->count, results->count == 1 ? "" : "s",
               results->counts[CHECK_KEPT], results->counts[CHECK_BROKEN]);
    if (results->counts[CHECK_UNKNOWN])
        buf_printf(&line, ", %d not known, which is not kept", results->counts[CHECK_UNKNOWN]);
    buf_puts(&line, ".");
    table_line(out, TABLE_STRONG, line.data);
    buf_free(&line);
}

/* A bound that was kept says nothing of them. */
static void print_missing(sqlite3 *db, const struct check_options *o, const struct report_out *out)
{
    const int64_t missing = db_int(db, PROCESSES_NOT_RECORDED, 0);
    struct buf line = BUF(1 << 16);
    char text[UNITS_TEXT];
    if (missing) {
        buf_printf(&line, "! %s process%s not recorded, and in none of these numbers: 'memprof info",
                   units_count(text, missing), missing == 1 ? " was" : "es were");
        command_add_file(&line, o->file);
        buf_puts(&line, "' says why");
        table_prose(out, TABLE_PLAIN, buf_text(&line));
    }
    buf_free(&line);
}

/* What the first rule of leaks that was broken may count too much. */
static void say_unhooked(const struct check_results *results, struct buf *text)
{
    for (int i = 0; i < results->count && !text->length; i++) {
        const struct check_result *r = &results->result[i];
        if (r->verdict == CHECK_BROKEN && check_is_of_leaks(r->id))
            unhooked_say(results->db[r->run], text);
    }
}

static void print_unhooked(const struct check_results *results, const struct report_out *out)
{
    struct buf line = BUF(1 << 16);
    say_unhooked(results, &line);
    if (line.length) {
        buf_putc(&line, '.');
        fputc('\n', out->file);
        table_prose(out, TABLE_PLAIN, line.data);
    }
    buf_free(&line);
}

static void record_unhooked(const struct check_results *results, struct record *document)
{
    struct buf text = BUF(1 << 16);
    say_unhooked(results, &text);
    record_member_text(document, "not_seen", text.length ? text.data : NULL);
    buf_free(&text);
}

static int print_text(sqlite3 *db, const struct check_walks *walks, const struct check_options *o,
                      const struct check_results *results, struct record *document, struct error *err)
{
    const struct report_out *out = document->out;
    char *base = db_meta_text(db, "cwd");
    notes_print(db, out);
    print_missing(db, o, out);
    advice_arenas_print(o->baseline ? o->baseline->db : NULL, db, out);
    int rc = list_results(walks, o, results, document, err);
    for (int i = 0; rc == 0 && i < results->count; i++) {
        const struct check_result *r = &results->result[i];
        struct buf title = BUF(1 << 20);
        if (!r->culprit_count)
            continue;
        check_name_text(r, CHECK_NAMES_SHORT, &title);
        buf_printf(&title, ", %s:", r->is_difference ? "what grew most" : check_infos[r->id].text);
        fputc('\n', out->file);
        table_line(out, TABLE_STRONG, buf_text(&title));
        rc = check_print_culprits(walks->walk[r->run], o, r, CHECK_NAMES_SHORT, base, out, "  ", err);
        buf_free(&title);
    }
    if (rc == 0)
        print_unhooked(results, out);
    fputc('\n', out->file);
    if (rc == 0 && o->failed) {
        struct buf line = BUF(256);
        buf_printf(&line, "%s.", o->failed);
        table_line(out, TABLE_STRONG, buf_text(&line));
        buf_free(&line);
    }
    if (rc == 0)
        print_sum(results, out);
    free(base);
    return rc;
}

int check_print(sqlite3 *db, const struct check_options *options, const struct check_results *results,
                const struct report_out *out, struct error *err)
{
    struct record document;
    struct check_walks walks;
    int rc = check_walks_open(options, results, &walks, err);
    record_open(&document, out);
    if (rc == 0 && out->format == REPORT_TEXT) {
        rc = print_text(db, &walks, options, results, &document, err);
    } else if (rc == 0) {
        record_document_begin(&document);
        notes_record(db, options->file, &document);
        record_member_text(&document, "baseline", options->baseline ? options->baseline->file : NULL);
        record_member_int(&document, "runs", results->run_count);
        record_member_int(&document, "kept", results->counts[CHECK_KEPT]);
        record_member_int(&document, "broken", results->counts[CHECK_BROKEN]);
        record_member_int(&document, "unknown", results->counts[CHECK_UNKNOWN]);
        record_member_int(&document, "processes_not_recorded", db_int(db, PROCESSES_NOT_RECORDED, 0));
        record_unhooked(results, &document);
        record_member_text(&document, "failed", options->failed);
        record_member_text(&document, "killed", options->is_killed ? options->failed : NULL);
        rc = list_results(&walks, options, results, &document, err);
        record_document_end(&document);
    }
    record_close(&document);
    check_walks_close(&walks);
    return rc;
}
