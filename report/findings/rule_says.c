/* What a rule says: a finding and its parts, in order. */
#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/text.h"
#include "../query/short_name.h"
#include "../query/wrapper.h"
#include "rules.h"
#include "runtime.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void finding_lessen(struct finding *f)
{
    f->severity = FINDING_INFO;
    f->is_minor = 1;
}

static struct finding_part *add_part(struct finding *f, enum finding_part_kind kind, char *text)
{
    struct finding_part *part = ARRAY_ADD(f->parts, f->part_count, f->part_capacity);
    *part = (struct finding_part){.kind = kind, .text = text};
    return part;
}

void finding_say(struct finding *f, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    add_part(f, FINDING_TEXT, text ? text : xstrdup("?"));
}

static void finding_place(struct finding *f, const char *function, const char *file, int64_t line)
{
    if (line < 0 || line > 100000000) /* what cannot be one */
        line = 0;
    if (!f->function) {
        f->function = xstrdup(function);
        f->file = xstrdup_if(file);
        f->line = line;
    }
    if (file)
        finding_say(f, " (%s:%lld)", text_filename(file), (long long)line);
}

void finding_code(struct finding *f, const char *function, const char *file, int64_t line)
{
    add_part(f, FINDING_CODE, short_name(function));
    finding_place(f, function, file, line);
}

static int64_t end_bytes_of(void *rules, int64_t site_id, int64_t end_bytes)
{
    (void)rules, (void)site_id;
    return rule_sane(end_bytes);
}

static void say_caller(struct rules *r, struct finding *f, int64_t line_id, named_caller_bytes *bytes)
{
    struct buf text = BUF(1 << 20);
    char *caller = NULL;
    int other_count;
    if (named_caller_by(r->db, line_id, bytes, r, &caller, &other_count, r->err) == 0 && caller) {
        named_caller_text(caller, other_count, &text);
        finding_say(f, " (%s)", buf_text(&text));
        free(f->caller);
        f->caller = short_name(caller);
    }
    free(caller);
    buf_free(&text);
}

static void say_place(struct rules *r, struct finding *f, int64_t site_id, const char *table, named_caller_bytes *bytes)
{
    struct buf name = BUF(1 << 20);
    char *function = NULL, *file = NULL;
    int64_t line = 0, unnamed = 0;
    int is_made = 0; /* by a program as it ran: its names are none of C++ */
    sqlite3_stmt *s = rule_query(
        r, "SELECT fn.name, f.path, l.line, coalesce(k.path, m.path), coalesce(l.offset, a.offset), a.address_id, "
           "l.line_id "
           "FROM site s LEFT JOIN site_line sl ON sl.site_id = s.site_id LEFT JOIN line l ON l.line_id = sl.line_id "
           "LEFT JOIN function fn ON fn.function_id = l.function_id LEFT JOIN file f ON f.file_id = l.file_id "
           "LEFT JOIN module_key k ON k.key_id = l.module_key_id LEFT JOIN stack t ON t.stack_id = s.stack_id "
           "LEFT JOIN address a ON a.address_id = t.address_id LEFT JOIN module m ON m.module_id = a.module_id "
           "WHERE s.site_id = ?");
    if (s) {
        sqlite3_bind_int64(s, 1, site_id);
        if (sqlite3_step(s) == SQLITE_ROW) {
            if (sqlite3_column_type(s, 0) != SQLITE_NULL)
                buf_puts(&name, db_text(s, 0));
            else if (sqlite3_column_type(s, 3) != SQLITE_NULL)
                buf_printf(&name, "%s+0x%llx", text_basename(db_text(s, 3)), (long long)sqlite3_column_int64(s, 4));
            else if (sqlite3_column_type(s, 5) != SQLITE_NULL)
                buf_puts(&name, "??"); /* as in every table */
            if (sqlite3_column_type(s, 1) != SQLITE_NULL)
                file = xstrdup(db_text(s, 1));
            is_made = !file && sqlite3_column_type(s, 0) != SQLITE_NULL && sqlite3_column_type(s, 3) == SQLITE_NULL;
            line = sqlite3_column_int64(s, 2);
            unnamed = sqlite3_column_type(s, 0) == SQLITE_NULL && !file ? sqlite3_column_int64(s, 6) : 0;
        }
        sqlite3_finalize(s);
    }
    function = name.length ? buf_take(&name) : xstrdup("(unknown stack)");
    struct finding_part *part = add_part(f, FINDING_LINE, is_made ? short_name_cut(function) : short_name(function));
    part->number = site_id;
    part->anchor = table;
    finding_place(f, function, file, line);
    if (unnamed)
        say_caller(r, f, unnamed, bytes);
    free(function);
    free(file);
    buf_free(&name);
}

void finding_line(struct rules *r, struct finding *f, int64_t site_id, const char *table)
{
    say_place(r, f, site_id, table, strcmp(table, "end") == 0 ? end_bytes_of : NULL);
}

void finding_line_by(struct rules *r, struct finding *f, int64_t site_id, named_caller_bytes *bytes)
{
    say_place(r, f, site_id, "end", bytes);
}

/* Where the largest caller is known at all. */
static void say_most(struct rules *r, struct finding *f, const struct callers *callers)
{
    const struct caller *most = &callers->item[0];
    struct buf name = BUF(1 << 20);
    if (most->row.function || (most->row.module && *most->row.module)) {
        row_function_text(&most->row, &name);
        finding_say(f, callers->is_of_carver ? ", most of them for " : ", the largest part for ");
        char *caller = short_name(buf_text(&name));
        if (f->caller && strcmp(f->caller, caller) == 0) {
            finding_say(f, "that one");
            finding_place(f, caller, most->row.file, most->row.line);
        } else {
            finding_code(f, buf_text(&name), most->row.file, most->row.line);
        }
        free(caller);
        finding_say(f, ": %s in %s block%s", units_bytes(r->a, most->bytes), units_count(r->b, most->blocks),
                    most->blocks == 1 ? "" : "s");
    }
    buf_free(&name);
}

int finding_wrapper(struct rules *r, struct finding *f, const struct rule_line *line, enum line_sum sum)
{
    struct callers callers;
    enum callers_of of = sum == LINE_PEAK_BYTES ? CALLERS_OF_PEAK : CALLERS_OF_END;
    f->skips = (struct buf)BUF(1 << 16);
    int64_t bytes = line->sums[sum];
    int is_wrapper = wrapper_callers(r->db, line->site_id, r->device->name, of, &callers, &f->skips, r->err) == 0 &&
                     callers.count > 0;
    /* what leaks leave out of a line is in its callers */
    for (int i = 0; i < callers.count; i++)
        __builtin_sub_overflow(bytes, callers.item[i].bytes, &bytes);
    if (is_wrapper) {
        finding_say(f, f->has_keeper ? " The line" : " It");
        finding_say(f, callers.is_of_carver ? " takes whole blocks, and may give its callers parts"
                                            : " allocates for its callers");
        if (bytes == 0)
            say_most(r, f, &callers);
        finding_say(f, ".");
        f->next = callers.is_of_carver ? "With --skip each of its callers has the blocks that were taken when it asked:"
                                       : "With --skip each of its callers has what it was given:";
    } else if (sum != LINE_PEAK_BYTES && !f->has_keeper) {
        finding_passed(r, f, line, sum == LINE_END_EVEN_BYTES ? rule_even_bytes : end_bytes_of);
    }
    callers_free(&callers);
    return is_wrapper;
}

int finding_runtime(struct rules *r, struct finding *f, int64_t site_id)
{
    const struct runtime *runtime = runtime_of_site(r->db, site_id);
    if (!runtime)
        return 0;
    finding_say(f, " This was mapped by %s for itself.", runtime->name);
    f->next = runtime->advice;
    return 1;
}

void finding_look(struct finding *f, enum finding_part_kind kind, int64_t time_ns, const char *section,
                  const char *text)
{
    struct finding_part *part = add_part(f, kind, xstrdup(text));
    part->number = time_ns;
    part->anchor = section;
}
