#include "many.h"

#include "../../common/text.h"
#include "../../common/units.h"
#include "../print/listing.h"
#include "../query/common_peak.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS_ALL = 40, ROWS_DEFAULT = 20, PROBLEMS_SHOWN = 10 };

const char *const many_sort_names[MANY_SORT_COUNT] = {
#define X(id, name, text) name,
#include "many_sort.def"
#undef X
};

void many_sort_list(const struct report_out *out)
{
    static const char *const texts[] = {
#define X(id, name, text) text,
#include "many_sort.def"
#undef X
    };
    static const struct column columns[] = {COLUMN("name", "", TEXT), COLUMN("text", "", TEXT)};
    struct listing *l = listing_open(columns, COLUMN_COUNT_OF(columns), out, NULL);
    for (int i = 0; i < MANY_SORT_COUNT; i++) {
        listing_text(l, many_sort_names[i]);
        listing_text(l, texts[i]);
    }
    listing_print(l);
    listing_close(l);
}

/* --- rows --- */

struct line { /* of the table; row NULL: nothing is known of the file, or it has nothing on the device */
    const struct many_row *row;
    int file, place;
    int64_t value;
};

struct printer {
    struct many *many;
    const struct many_report *report;
    const struct report_out *out;
    struct common_peak *common; /* by device */
    struct line *lines;
    int count;
};

static int64_t sort_value(const struct printer *p, int sort, const struct many_row *row, int file)
{
    const struct recording *r = &p->many->list.recording[file];
    switch (sort) {
    case MANY_SORT_start:
        return r->start_unix_ns;
    case MANY_SORT_duration:
        return r->duration_ns;
    case MANY_SORT_peak:
        return row ? row->peak_bytes : -1;
    case MANY_SORT_reserved:
        return row ? row->reserved_bytes : -1;
    case MANY_SORT_end:
        return row ? row->end_bytes : -1;
    case MANY_SORT_allocated:
        return row ? row->alloc_bytes : -1;
    case MANY_SORT_allocs:
        return row ? row->alloc_count : -1;
    case MANY_SORT_temporary:
        return row ? row->temporary_count : -1;
    default:
        return 0;
    }
}

static int by_value(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    return x->value != y->value ? (x->value > y->value ? -1 : 1) : x->place - y->place;
}

static int by_name(const void *a, const void *b, void *recordings)
{
    const struct recording *all = recordings;
    const struct line *x = a, *y = b;
    int order = strverscmp(all[x->file].path, all[y->file].path);
    return order ? order : x->place - y->place;
}

/* A line for each file and device, in the order asked for. */
static void make_lines(struct printer *p, int sort)
{
    int most = 0;
    for (int i = 0; i < p->many->list.count; i++)
        most += p->many->files[i].row_count + 1;
    p->lines = xcalloc((size_t)most + 1, sizeof *p->lines);
    for (int i = 0; i < p->many->list.count; i++) {
        const struct many_file *f = &p->many->files[i];
        for (int k = 0; k < f->row_count || k == 0; k++) {
            const struct many_row *row = k < f->row_count ? &f->rows[k] : NULL;
            p->lines[p->count] = (struct line){row, i, p->count, sort_value(p, sort, row, i)};
            p->count++;
        }
    }
    if (sort == MANY_SORT_file)
        qsort_r(p->lines, (size_t)p->count, sizeof *p->lines, by_name, p->many->list.recording);
    else
        qsort(p->lines, (size_t)p->count, sizeof *p->lines, by_value);
}

/* One word where all is well, so that what is not can be seen. */
static void add_state(const struct printer *p, int file, struct buf *out)
{
    const struct many_file *f = &p->many->files[file];
    const struct recording *r = &p->many->list.recording[file];
    if (!r->is_read)
        buf_puts(out, "not read");
    else if (r->problem)
        buf_puts(out, "damaged");
    else if (f->state && strcmp(f->state, "complete") != 0)
        buf_puts(out, f->state);
    else if (f->note_count)
        buf_puts(out, "incomplete");
    if (f->has_failed)
        buf_printf(out, "%s%s", out->length ? ", " : "", f->ended);
    if (!out->length)
        buf_puts(out, "whole");
}

enum {
    COLUMN_notes = 24,  /* the last one for programs */
    VALUE_RESERVED = 3, /* among those of a row */
    COLUMN_ALL = COLUMN_notes + 1 + 10
};

static const struct column columns_of_rows[COLUMN_ALL] = {
    COLUMN("file", NULL, TEXT),
    COLUMN("rank", NULL, NUMBER),
    COLUMN("host", NULL, TEXT),
    COLUMN("command", NULL, TEXT),
    COLUMN("start_unix_ns", NULL, NUMBER),
    COLUMN("duration_ns", NULL, NUMBER),
    COLUMN("state", NULL, TEXT),
    COLUMN("ended", NULL, TEXT),
    COLUMN("device", NULL, TEXT),
    COLUMN("uuid", NULL, TEXT),
    COLUMN("peak_bytes", NULL, NUMBER),
    COLUMN("peak_ns", NULL, NUMBER),
    COLUMN("peak_count", NULL, NUMBER),
    COLUMN("peak_reserved_bytes", NULL, NUMBER),
    COLUMN("end_bytes", NULL, NUMBER),
    COLUMN("end_count", NULL, NUMBER),
    COLUMN("alloc_count", NULL, NUMBER),
    COLUMN("alloc_bytes", NULL, NUMBER),
    COLUMN("temporary_count", NULL, NUMBER),
    COLUMN("top_bytes", NULL, NUMBER),
    COLUMN("top_function", NULL, TEXT),
    COLUMN("top_file", NULL, TEXT),
    COLUMN("top_line", NULL, NUMBER),
    COLUMN("problem", NULL, TEXT),
    [COLUMN_notes] = COLUMN("notes", NULL, TEXT, .flags = COLUMN_JSON),
    COLUMN(NULL, "rank", NUMBER, .none = "-"),
    COLUMN(NULL, "file", TEXT, .cut = TEXT_CUT_LEFT),
    COLUMN(NULL, "device", TEXT),
    COLUMN(NULL, "peak", BYTES, .none = "-"),
    COLUMN(NULL, "reserved", BYTES, .none = "-", .flags = COLUMN_OPTIONAL),
    COLUMN(NULL, "live at\nthe end", BYTES, .none = "-"),
    COLUMN(NULL, "state", TEXT, .cut = TEXT_CUT_RIGHT),
    COLUMN(NULL, "held\nmost", BYTES),
    COLUMN(NULL, "function", TEXT, .cut = TEXT_CUT_NAME),
    COLUMN(NULL, "source", TEXT, .cut = TEXT_CUT_LEFT),
};

static void list_programs(const struct printer *p, struct listing *l, const struct line *line)
{
    const struct recording *r = &p->many->list.recording[line->file];
    const struct many_file *f = &p->many->files[line->file];
    const struct many_row *row = line->row;
    const struct row *top = row && row->lines.count ? &row->lines.row[0] : NULL;
    struct buf function = BUF(1 << 20), notes = BUF(1 << 20);
    listing_text(l, r->path);
    listing_int_if(l, r->rank >= 0, r->rank);
    listing_text(l, r->host);
    listing_text(l, r->command);
    listing_int_if(l, r->start_unix_ns > 0, r->start_unix_ns);
    listing_int_if(l, r->is_read, r->duration_ns);
    listing_text(l, f->state);
    listing_text(l, f->ended);
    listing_text(l, row ? p->many->devices[row->device] : NULL);
    listing_text(l, row ? row->uuid : NULL);
    const int64_t values[] = {
        row ? row->peak_bytes : 0,     row ? row->peak_ns : 0,     row ? row->peak_count : 0,
        row ? row->reserved_bytes : 0, row ? row->end_bytes : 0,   row ? row->end_count : 0,
        row ? row->alloc_count : 0,    row ? row->alloc_bytes : 0, row ? row->temporary_count : 0};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        listing_int_if(l, row && (i != VALUE_RESERVED || row->reserved_bytes >= 0), values[i]);
    if (top)
        row_function_text(top, &function);
    listing_int_if(l, top != NULL, top ? top->stats.value[STAT_at_peak_bytes] : 0);
    listing_text(l, function.data);
    listing_text(l, top ? top->file : NULL);
    listing_int_if(l, top && top->line > 0, top ? top->line : 0);
    listing_text(l, r->problem);
    buf_puts(&notes, "[");
    for (int i = 0; i < f->note_count; i++) {
        buf_puts(&notes, i ? ", " : "");
        record_json_string(&notes, f->notes[i]);
    }
    buf_puts(&notes, "]");
    listing_raw(l, notes.data);
    buf_free(&function);
    buf_free(&notes);
}

static void list_people(const struct printer *p, struct listing *l, const struct line *line)
{
    const struct recording *r = &p->many->list.recording[line->file];
    const struct many_file *f = &p->many->files[line->file];
    const struct many_row *row = line->row;
    const struct row *top = row && row->lines.count ? &row->lines.row[0] : NULL;
    struct buf state = BUF(1 << 16), function = BUF(1 << 20), source = BUF(1 << 20);
    add_state(p, line->file, &state);
    if (top) {
        row_function_text(top, &function);
        row_source_text(top, f->cwd, &source);
    }
    listing_int_if(l, r->rank >= 0, r->rank);
    listing_text(l, r->path);
    listing_text(l, row ? p->many->devices[row->device] : NULL);
    listing_int_if(l, row != NULL, row ? row->peak_bytes : 0);
    listing_int_if(l, row && row->reserved_bytes >= 0, row ? row->reserved_bytes : 0);
    listing_int_if(l, row != NULL, row ? row->end_bytes : 0);
    listing_text(l, state.data);
    listing_int_if(l, top != NULL, top ? top->stats.value[STAT_at_peak_bytes] : 0);
    listing_text(l, function.data);
    listing_text(l, source.data);
    buf_free(&state);
    buf_free(&function);
    buf_free(&source);
}

/* What is the same in all rows says nothing: a rank that none has, one device, files that are all whole. */
static void choose_columns(const struct printer *p, struct column columns[COLUMN_ALL])
{
    struct column *people = &columns[COLUMN_notes + 1];
    int has_rank = 0, is_whole = 1;
    memcpy(columns, columns_of_rows, sizeof columns_of_rows);
    for (int i = 0; i < p->many->list.count; i++) {
        struct buf state = BUF(1 << 16);
        add_state(p, i, &state);
        has_rank |= p->many->list.recording[i].rank >= 0;
        is_whole &= strcmp(buf_text(&state), "whole") == 0;
        buf_free(&state);
    }
    for (int i = 0; i < COLUMN_ALL - COLUMN_notes - 1; i++)
        people[i].place = i + 1;
    people[0].title = has_rank ? people[0].title : NULL;
    people[2].title = p->many->device_count > 1 ? people[2].title : NULL;
    people[6].title = is_whole ? NULL : people[6].title;
}

static int rows_shown(const struct printer *p)
{
    int64_t top = p->report->top;
    if (top < 0)
        top = p->out->format != REPORT_TEXT || p->count <= ROWS_ALL ? 0 : ROWS_DEFAULT;
    return top > 0 && top < p->count ? (int)top : p->count;
}

/* What the rows that are shown would leave unexplained. */
static void print_footnotes(const struct printer *p)
{
    int is_end_above = 0, is_sum = 0;
    for (int i = 0; p->out->format == REPORT_TEXT && i < rows_shown(p); i++) {
        const struct many_row *row = p->lines[i].row;
        is_end_above |= row && row->end_bytes > row->peak_bytes;
        is_sum |= row && row->is_sum;
    }
    if (is_end_above)
        table_prose(p->out, TABLE_DIM, "(" MANY_END_ABOVE ")");
    if (is_sum)
        table_prose(p->out, TABLE_DIM, "(" MANY_IS_SUM ")");
}

static void list_rows(struct printer *p, struct record *document)
{
    struct column columns[COLUMN_ALL];
    struct buf title = BUF(4096);
    int sort = p->report->sort >= 0 ? p->report->sort : MANY_SORT_rank;
    choose_columns(p, columns);
    make_lines(p, sort);
    if (p->report->sort < 0 && rows_shown(p) < p->count) { /* those that matter, not the first ranks */
        free(p->lines);
        p->count = 0;
        make_lines(p, sort = MANY_SORT_peak);
    }
    struct listing *l = listing_open_in(document, "files", columns, COLUMN_ALL, NULL);
    for (int i = 0; i < rows_shown(p); i++) {
        list_programs(p, l, &p->lines[i]);
        list_people(p, l, &p->lines[i]);
    }
    buf_printf(&title, "By file, sorted by %s", many_sort_names[sort]);
    listing_print_under(l, buf_text(&title), p->count);
    print_footnotes(p);
    listing_heading(l);
    listing_close(l);
    buf_free(&title);
}

/* --- sums --- */

static const char *const clock_names[] = {[MANY_CLOCK_NONE] = "unknown",
                                          [MANY_CLOCK_WALLS] = "several machines",
                                          [MANY_CLOCK_WALL] = "wall",
                                          [MANY_CLOCK_MACHINE] = "machine"};

static void print_common(const struct printer *p, int device)
{
    const struct common_peak *c = &p->common[device];
    char text[2][UNITS_TEXT];
    struct buf line = BUF(4096);
    buf_printf(&line, "Common peak of %s: ", p->many->devices[device]);
    if (c->least_bytes == c->most_bytes)
        buf_puts(&line, units_bytes(text[0], c->least_bytes));
    else
        buf_printf(&line, "between %s and %s", units_bytes(text[0], c->least_bytes),
                   units_bytes(text[1], c->most_bytes));
    if (c->time_ns >= 0)
        buf_printf(&line, "%s at %s since the first one began", c->least_bytes == c->most_bytes ? "" : ", the former",
                   units_ns(text[0], c->time_ns));
    if (c->clock == MANY_CLOCK_MACHINE)
        buf_puts(&line, ", by the machine's own clock");
    else if (c->clock == MANY_CLOCK_WALL)
        buf_puts(&line, ", by the machine's wall clock, which may have been set in between");
    else
        buf_printf(&line, ", the highest peak and the sum of all: %s",
                   c->clock == MANY_CLOCK_WALLS ? "recordings of several machines, whose clocks nobody compared"
                                                : "of one at least it is not known when it began");
    if (c->without_events)
        buf_printf(&line, "; %d of them %s no events that would tell more", c->without_events,
                   c->without_events == 1 ? "has" : "have");
    table_prose(p->out, TABLE_PLAIN, buf_text(&line));
    buf_free(&line);
}

static void list_sums(const struct printer *p, struct record *document)
{
    static const struct column columns[] = {
        COLUMN("device", "device", TEXT),
        COLUMN("files", "files", COUNT),
        COLUMN("most_peak_bytes", "highest\npeak", BYTES),
        COLUMN("most_file", "of", TEXT, .cut = TEXT_CUT_LEFT),
        COLUMN("mean_peak_bytes", "mean\npeak", BYTES),
        COLUMN("imbalance", "imbalance", NUMBER),
        COLUMN("sum_of_peaks_bytes", "sum of\npeaks", BYTES),
        COLUMN("sum_of_reserved_peaks_bytes", "sum of\nreserved", BYTES, .none = "-", .flags = COLUMN_OPTIONAL),
        COLUMN("sum_of_end_bytes", "sum live\nat the end", BYTES, .flags = COLUMN_OPTIONAL),
        COLUMN("common_clock", NULL, TEXT),
        COLUMN("common_peak_least_bytes", NULL, NUMBER),
        COLUMN("common_peak_most_bytes", NULL, NUMBER),
        COLUMN("common_peak_ns", NULL, NUMBER),
    };
    struct listing *l = listing_open_in(document, "devices", columns, COLUMN_COUNT_OF(columns), NULL);
    for (int i = 0; i < p->many->device_count; i++) {
        struct many_sum sum;
        char imbalance[32];
        many_add(p->many, i, &sum);
        snprintf(imbalance, sizeof imbalance, "%.2f", sum.imbalance);
        listing_text(l, p->many->devices[i]);
        listing_int(l, sum.count);
        listing_int(l, sum.most_bytes);
        listing_text(l, sum.most_file < 0 ? NULL : p->many->list.recording[sum.most_file].path);
        listing_int(l, sum.count ? sum.peak_bytes / sum.count : 0);
        if (p->out->format == REPORT_TEXT)
            listing_text(l, imbalance);
        else
            listing_raw(l, imbalance);
        listing_int(l, sum.peak_bytes);
        listing_int_if(l, sum.reserved_bytes >= 0, sum.reserved_bytes);
        listing_int(l, sum.end_bytes);
        listing_text(l, clock_names[p->common[i].clock]);
        listing_int(l, p->common[i].least_bytes);
        listing_int(l, p->common[i].most_bytes);
        listing_int_if(l, p->common[i].time_ns >= 0, p->common[i].time_ns);
    }
    listing_print_under(l, "Over all files (imbalance: the highest peak by the mean)", 0);
    for (int i = 0; p->out->format == REPORT_TEXT && p->many->read_count > 1 && i < p->many->device_count; i++)
        print_common(p, i);
    listing_close(l);
}

static void print_problems(const struct printer *p)
{
    int shown = 0, left = 0;
    for (int i = 0; i < p->many->list.count; i++) {
        const struct recording *r = &p->many->list.recording[i];
        const struct many_file *f = &p->many->files[i];
        for (int k = r->problem ? -1 : 0; k < f->note_count; k++) {
            struct buf text = BUF(1 << 16);
            char *problem = k < 0 ? recordings_problem(r) : NULL;
            if (shown == PROBLEMS_SHOWN) {
                left++;
                free(problem);
                continue;
            }
            shown++;
            if (problem)
                buf_printf(&text, "! %s", problem);
            else
                buf_printf(&text, "! %s: %s", r->path, f->notes[k]);
            if (text.data)
                table_prose(p->out, TABLE_STRONG, text.data);
            buf_free(&text);
            free(problem);
        }
    }
    if (left)
        fprintf(p->out->file, "! and %d more; --json has all\n", left);
    if (p->many->list.repeated_count)
        fprintf(p->out->file, "! %d file%s named more than once; each counts once\n", p->many->list.repeated_count,
                p->many->list.repeated_count == 1 ? " was" : "s were");
}

void many_print(struct many *many, const struct many_report *report, const struct report_out *out)
{
    struct printer p = {.many = many, .report = report, .out = out};
    struct record document;
    p.common = xcalloc((size_t)many->device_count + 1, sizeof *p.common);
    for (int i = 0; i < many->device_count && out->format != REPORT_CSV; i++)
        common_peak_find(many, i, &p.common[i]); /* may find that one is damaged */
    record_open(&document, out);
    if (out->format == REPORT_TEXT) {
        char count[UNITS_TEXT];
        fprintf(out->file, "%s recordings", units_count(count, many->list.count));
        if (many->read_count < many->list.count)
            fprintf(out->file, ", %d of them cannot be read", many->list.count - many->read_count);
        fputc('\n', out->file);
        print_problems(&p);
    } else {
        record_document_begin(&document);
    }
    if (out->format != REPORT_CSV)
        list_sums(&p, &document);
    list_rows(&p, &document);
    if (out->format != REPORT_TEXT)
        record_document_end(&document);
    record_close(&document);
    free(p.lines);
    free(p.common);
}
