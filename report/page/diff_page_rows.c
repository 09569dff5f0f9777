/* The tables of a diff's page: the rows that the terminal has, by each key, for all devices. */
#include "diff_page_data.h"

#include "../../common/db.h"
#include "../query/diff_text.h"
#include "../query/short_name.h"

#include <stdlib.h>

static const enum row_key keys[] = {ROW_LINE, ROW_FUNCTION, ROW_FILE, ROW_MODULE, ROW_OP};

struct texts {
    enum row_key by;
    char *cwd[DIFF_SIDES];
};

static void write_cut(struct page_pack *pack, const char *key, struct buf *text)
{
    char *cut = short_name_cut(buf_text(text));
    pack_text(pack, key, cut);
    free(cut);
    buf_reset(text);
}

static void write_names(const struct texts *t, const struct diff_row *row, struct page_pack *pack)
{
    struct buf text = BUF(1 << 20);
    const struct diff_item *shown = diff_shown_item(row);
    for (int side = DIFF_NEW; side >= DIFF_OLD; side--) {
        const struct diff_item *item = row->item[side];
        const char *base = t->cwd[side];
        if (!item || (item != shown && row->match == DIFF_SAME))
            continue;
        diff_name_text(t->by, item, base, &text);
        write_cut(pack, item == shown ? "name" : "old_name", &text);
        diff_place_text(t->by, item, base, &text);
        write_cut(pack, item == shown ? "place" : "old_place", &text);
    }
    diff_how_text(row, &text);
    write_cut(pack, "how", &text);
    pack_text(pack, "match", diff_match_names[row->match]);
    buf_free(&text);
}

/* Old and new of each of diff_stats; null: not known. */
static void write_stats(const struct diff_row *row, struct page_pack *pack)
{
    pack_open(pack, "values", '[');
    for (int i = 0; diff_stats[i] >= 0; i++)
        for (int side = 0; side < DIFF_SIDES; side++) {
            int known;
            int64_t value = stat_value(&row->stats[side], diff_stats[i], &known);
            known ? pack_int(pack, NULL, value) : pack_null(pack, NULL);
        }
    pack_close(pack, ']');
}

static void write_row(const struct diff_page *d, const struct texts *t, const struct diff_row *row,
                      struct page_pack *pack)
{
    const uint32_t device = diff_page_device(d, row->device);
    if (device == MAP_NONE)
        return;
    pack_open(pack, NULL, '{');
    pack_int(pack, "device", device);
    if (t->by != ROW_DEVICE)
        write_names(t, row, pack);
    write_stats(row, pack);
    pack_close(pack, '}');
}

static int write_key(const struct diff_page *d, struct texts *t, struct page_pack *pack)
{
    const struct diff_options options = {.by = t->by, .sort = STAT_at_peak_bytes};
    sqlite3 *const *const dbs[DIFF_SIDES] = {&d->dbs[DIFF_OLD], &d->dbs[DIFF_NEW]};
    const int counts[DIFF_SIDES] = {1, 1};
    struct diff diff;
    int rc = diff_load(dbs, counts, &options, &diff, d->err);
    if (rc == 0)
        rc = diff_name_callers(&diff, PAGE_DIFF_ROWS_MAX, d->err);
    pack_open(pack, row_key_names[t->by], '{');
    pack_int(pack, "row_count", diff.count);
    pack_int(pack, "same_count", diff.same_count);
    pack_open(pack, "rows", '[');
    for (int i = 0; rc == 0 && i < diff.count && i < PAGE_DIFF_ROWS_MAX; i++)
        write_row(d, t, &diff.rows[i], pack);
    pack_close(pack, ']');
    if (t->by == ROW_LINE) {
        pack_open(pack, "totals", '[');
        for (int i = 0; rc == 0 && i < diff.total_count; i++)
            write_row(d, &(struct texts){.by = ROW_DEVICE}, &diff.totals[i], pack);
        pack_close(pack, ']');
    }
    pack_close(pack, '}');
    diff_close(&diff);
    return rc;
}

int diff_page_write_rows(void *of, struct page_pack *pack)
{
    const struct diff_page *d = of;
    struct texts t = {.by = ROW_LINE};
    int rc = 0;
    for (int side = 0; side < DIFF_SIDES; side++)
        t.cwd[side] = db_meta_text(d->dbs[side], "cwd");
    pack_open(pack, NULL, '{');
    pack_open(pack, "stats", '[');
    for (int i = 0; diff_stats[i] >= 0; i++) {
        pack_open(pack, NULL, '{');
        pack_text(pack, "column", stat_infos[diff_stats[i]].column);
        pack_text(pack, "text", stat_infos[diff_stats[i]].text);
        pack_close(pack, '}');
    }
    pack_close(pack, ']');
    for (size_t i = 0; rc == 0 && i < sizeof keys / sizeof *keys; i++) {
        t.by = keys[i];
        rc = write_key(d, &t, pack);
    }
    pack_close(pack, '}');
    for (int side = 0; side < DIFF_SIDES; side++)
        free(t.cwd[side]);
    return rc;
}
