#include "advise.h"

#include "../../common/db.h"
#include "../../common/sum.h"
#include "../../common/units.h"
#include "../findings/finding.h"
#include "../findings/notes.h"
#include "../print/table.h"
#include "../query/device.h"
#include "../query/heap_end.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 3 /* of a rule on a device */

static void keep_advice(struct findings *all)
{
    struct findings kept = *all, rest = {.count = 0};
    kept.count = 0;
    kept.capacity = all->count + 1;
    kept.item = xcalloc(kept.capacity, sizeof *kept.item);
    rest.item = xcalloc(kept.capacity, sizeof *rest.item);
    for (size_t i = 0; i < all->count; i++) {
        struct findings *to = finding_is_fact(&all->item[i]) ? &rest : &kept;
        to->item[to->count++] = all->item[i];
    }
    findings_free(&rest);
    free(all->item);
    *all = kept;
}

static void print_finding(const struct findings *all, const struct finding *f, const struct report_out *out)
{
    struct buf line = BUF(1 << 16);
    const int is_info = f->severity == FINDING_INFO;
    fputc('\n', out->file);
    buf_printf(&line, "%s%s", finding_mark(f), f->title);
    if (strcmp(f->device, "host") != 0)
        buf_printf(&line, " (%s)", f->device);
    if (f->claim != FINDING_UNCLAIMED) {
        buf_puts(&line, ", ");
        finding_saving(f, &line);
    }
    table_prose(out, is_info ? TABLE_PLAIN : TABLE_STRONG, buf_text(&line));
    buf_reset(&line);
    buf_puts(&line, "  ");
    finding_plain(f, &line);
    table_prose(out, TABLE_PLAIN, buf_text(&line));
    buf_reset(&line);
    buf_puts(&line, "  ");
    finding_next(all, f, &line);
    if (f->next)
        table_prose(out, TABLE_DIM, buf_text(&line));
    buf_free(&line);
}

static const char no_events[] =
    "Not all events are in this recording, or some are damaged: what a change saves at the peak is not known, or only "
    "as a bound, and reuse, growing blocks and phases were not looked at. 'memprof run' without --aggregate and "
    "--max-events keeps them; a merged recording has none.";

static const char no_events_in_it[] =
    "This recording was made of a profile, which holds sums by stack and no events: what a change saves at the peak is "
    "not known, and reuse, growing blocks, temporaries and phases cannot be looked at. What 'memprof run' records of "
    "the program itself has them.";

static const char *not_known(sqlite3 *db, const struct findings *all)
{
    char *form = all->has_events ? NULL : db_meta_text(db, "imported_form");
    const char *text = all->has_events ? NULL : form ? no_events_in_it : no_events;
    free(form);
    return text;
}

/* What is not shown of a rule on a device. */
static void print_more(int64_t count, int64_t saved_bytes, const struct report_out *out)
{
    char line[256], number[UNITS_TEXT], bytes[UNITS_TEXT] = "nothing";
    if (saved_bytes)
        units_bytes(bytes, saved_bytes);
    snprintf(line, sizeof line, "  (and %s more of this kind, %s summed; --top 0 shows all)",
             units_count(number, count), bytes);
    table_prose(out, TABLE_DIM, line);
}

static int is_same_kind(const struct finding *a, const struct finding *b)
{
    return strcmp(a->rule, b->rule) == 0 && strcmp(a->device, b->device) == 0;
}

/* Of a rule on a device the first --top. */
static void print_some(const struct findings *all, size_t number, int64_t top, const struct report_out *out)
{
    const struct finding *f = &all->item[number];
    int64_t before = 0, behind = 0, saved_bytes = 0;
    for (size_t i = 0; i < number; i++)
        before += is_same_kind(&all->item[i], f);
    if (top && before >= top)
        return;
    print_finding(all, f, out);
    for (size_t i = number + 1; i < all->count; i++)
        if (is_same_kind(&all->item[i], f)) {
            behind++;
            sum_add(&saved_bytes, all->item[i].saved_bytes);
        }
    if (behind && before + 1 == top)
        print_more(behind, saved_bytes, out);
}

static void print(sqlite3 *db, const struct findings *all, const struct advise_options *o, const struct report_out *out)
{
    const char *text = not_known(db, all);
    if (text)
        table_prose(out, TABLE_DIM, text);
    if (!all->count)
        table_line(out, TABLE_PLAIN, "Nothing to advise.");
    for (size_t i = 0; i < all->count; i++)
        print_some(all, i, o->top < 0 ? SHOWN : o->top, out);
}

static void record(sqlite3 *db, const struct findings *all, const struct advise_options *o,
                   const struct report_out *out)
{
    struct record document;
    record_open(&document, out);
    record_document_begin(&document);
    notes_record(db, o->file, &document);
    record_member_text(&document, "not_known", not_known(db, all));
    findings_record(all, &document);
    record_document_end(&document);
    record_close(&document);
}

int advise_report(sqlite3 *db, const struct advise_options *o, const struct report_out *out, struct error *err)
{
    struct heap_end heap_end = {.is_there = 0};
    struct findings all = {.count = 0};
    int rc = device_check(db, o->device, NULL, err);
    if (rc == 0) {
        const struct findings_options options = {.asked_for = FINDINGS_ADVISE,
                                                 .device = o->device,
                                                 .file = o->file,
                                                 .heap_end = &heap_end,
                                                 .progress = o->progress};
        if (device_is("host", o->device))
            heap_end_load(db, &heap_end);
        rc = findings_load(db, &options, &all, err);
    }
    keep_advice(&all);
    if (rc == 0 && out->format == REPORT_JSON)
        record(db, &all, o, out);
    else if (rc == 0)
        print(db, &all, o, out);
    findings_free(&all);
    heap_end_free(&heap_end);
    return rc;
}
