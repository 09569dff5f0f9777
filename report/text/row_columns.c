#include "row_columns.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct column columns[ROW_COLUMN_COUNT] = {
    [ROW_COLUMN_device] = COLUMN("device", NULL, TEXT, .none = "?"),
    [ROW_COLUMN_kind] = COLUMN("kind", NULL, TEXT),
    [ROW_COLUMN_inclusive] = COLUMN("inclusive", NULL, NUMBER),
    [ROW_COLUMN_key_id] = COLUMN("key_id", NULL, NUMBER),
    [ROW_COLUMN_function] = COLUMN("function", NULL, TEXT),
    [ROW_COLUMN_file] = COLUMN("file", NULL, PATH, .none = "(no source position)"),
    [ROW_COLUMN_line] = COLUMN("line", NULL, NUMBER),
    [ROW_COLUMN_module] = COLUMN("module", NULL, PATH, .none = "(no module)"),
    [ROW_COLUMN_offset] = COLUMN("offset", NULL, NUMBER),
    [ROW_COLUMN_thread] = COLUMN("thread", NULL, TEXT, .none = "?"),
    [ROW_COLUMN_tid] = COLUMN("tid", NULL, NUMBER),
    [ROW_COLUMN_pid] = COLUMN("pid", NULL, NUMBER),
    [ROW_COLUMN_process_id] = COLUMN("process_id", NULL, NUMBER),
    [ROW_COLUMN_command] = COLUMN("command", NULL, TEXT, .none = "?"),
    [ROW_COLUMN_title] = COLUMN("title", NULL, TEXT),
    [ROW_COLUMN_recording] = COLUMN(NULL, NULL, PATH, .none = "?"),
    [ROW_COLUMN_rank] = COLUMN(NULL, NULL, NUMBER, .none = "-"),
    [ROW_COLUMN_op] = COLUMN("op", NULL, TEXT, .none = "?"),
    [ROW_COLUMN_phase] = COLUMN("phase", NULL, TEXT),
    [ROW_COLUMN_live_bytes] = COLUMN("live_bytes", NULL, BYTES),
    [ROW_COLUMN_live_count] = COLUMN("live_count", NULL, COUNT),
    [ROW_COLUMN_caller] = COLUMN("caller", NULL, TEXT),
    [ROW_COLUMN_other_callers] = COLUMN("other_callers", NULL, NUMBER),
    [ROW_COLUMN_share] = COLUMN(NULL, NULL, PERCENT),
    [ROW_COLUMN_name] = COLUMN(NULL, NULL, TEXT),
    [ROW_COLUMN_place] = COLUMN(NULL, NULL, TEXT),
};

struct column stat_column(int stat)
{
    static const enum column_unit units[] = {
        [STAT_UNIT_bytes] = COLUMN_BYTES, [STAT_UNIT_count] = COLUMN_COUNT, [STAT_UNIT_ns] = COLUMN_NS};
    return (struct column){.key = stat_infos[stat].column,
                           .unit = units[stat_infos[stat].unit],
                           .flags = stat_infos[stat].how == STAT_WINDOWED ? COLUMN_WINDOW : 0,
                           .none = "-"};
}

void stat_values(struct listing *l, const struct stat_row *row)
{
    for (int i = 0, known; i < STAT_SHOWN_COUNT; i++) {
        int64_t value = stat_value(row, i, &known);
        listing_estimate(l, known, value, stat_error(row, i));
    }
}

void row_columns_init(struct row_columns *c, enum row_key by, int is_instant, const char *json)
{
    memcpy(c->columns, columns, sizeof columns);
    c->shown = 0;
    for (int i = 0; i < STAT_SHOWN_COUNT; i++) {
        c->columns[ROW_COLUMN_stats + i] = stat_column(i);
        c->columns[ROW_COLUMN_errors + i] = stat_error_column(i, 0);
        if (is_instant)
            c->columns[ROW_COLUMN_stats + i].key = NULL;
    }
    if (!is_instant)
        c->columns[ROW_COLUMN_live_bytes].key = c->columns[ROW_COLUMN_live_count].key = NULL;
    if (by != ROW_LINE && by != ROW_FUNCTION)
        c->columns[ROW_COLUMN_caller].key = c->columns[ROW_COLUMN_other_callers].key = NULL;
    if (by != ROW_PROCESS)
        c->columns[ROW_COLUMN_command].key = c->columns[ROW_COLUMN_title].key = NULL;
    if (by != ROW_OP)
        c->columns[ROW_COLUMN_op].key = c->columns[ROW_COLUMN_phase].key = NULL;
    else /* what PyTorch calls its modules */
        c->columns[ROW_COLUMN_module] = (struct column)COLUMN("module", NULL, TEXT);
    c->columns[ROW_COLUMN_json].key = json;
}

/* Those that are estimates where the blocks of a heap are a sample. */
struct column stat_error_column(int stat, int is_sampled)
{
    static const char *const keys[STAT_SHOWN_COUNT] = {
#define SPREAD(column, unit) [STAT_##column] = #column "_error",
#include "../../common/spread.def"
#undef SPREAD
        [STAT_own_peak_bytes] = "own_peak_bytes_error", [STAT_active_peak_bytes] = "active_peak_bytes_error",
        [STAT_lifetime_ns] = "lifetime_ns_error",       [STAT_net_growth_bytes] = "net_growth_bytes_error",
        [STAT_mean_bytes] = "mean_bytes_error",         [STAT_mean_lifetime_ns] = "mean_lifetime_ns_error",
    };
    return (struct column){.unit = COLUMN_NUMBER, .key = is_sampled ? keys[stat] : NULL};
}

void stat_errors(struct listing *l, const struct stat_row *row)
{
    for (int i = 0, known; i < STAT_SHOWN_COUNT; i++) {
        const double error = stat_error(row, i);
        stat_value(row, i, &known);
        listing_int_if(l, known && error >= 0, llround(error));
    }
}

void row_columns_estimates(struct row_columns *c)
{
    for (int i = 0; i < STAT_SHOWN_COUNT; i++)
        if (c->columns[ROW_COLUMN_stats + i].key)
            c->columns[ROW_COLUMN_errors + i] = stat_error_column(i, 1);
}

void row_columns_show(struct row_columns *c, int column, const char *title, enum text_cut cut, int flags)
{
    struct column *shown = &c->columns[column];
    shown->title = title;
    shown->place = ++c->shown;
    shown->cut = cut;
    shown->flags = flags;
}

static void names(struct listing *l, const struct row *row, const char *base)
{
    struct buf name = BUF(1 << 20), place = BUF(1 << 20);
    if (listing_shows(l, ROW_COLUMN_name))
        row_function_text(row, &name);
    if (listing_shows(l, ROW_COLUMN_place))
        row_source_text(row, base, &place);
    listing_text(l, name.data);
    listing_text(l, place.data);
    buf_free(&name);
    buf_free(&place);
}

void row_list(struct listing *l, const struct row *row, int inclusive, int stat, int64_t whole, const char *base,
              const char *json)
{
    listing_text(l, row->device);
    listing_text(l, row->kind);
    listing_int(l, inclusive);
    listing_int(l, row->key_id);
    listing_text(l, row->function);
    listing_text(l, row->file);
    listing_int_if(l, row->line > 0, row->line);
    listing_text(l, row->module);
    listing_int_if(l, row->module && !row->function && !row->op, row->offset);
    listing_text(l, row->thread);
    listing_int_if(l, row->thread != NULL, row->tid);
    listing_int_if(l, row->thread || row->command, row->pid);
    listing_int_if(l, row->thread || row->command, row->process_id);
    listing_text(l, row->command);
    listing_text(l, row->title);
    listing_text(l, row->recording);
    listing_int_if(l, row->recording && row->rank >= 0, row->rank);
    listing_text(l, row->op);
    listing_text(l, row->phase);
    listing_estimate(l, 1, row->stats.value[STAT_end_bytes], row->stats.error[STAT_end_bytes]);
    listing_estimate(l, 1, row->stats.value[STAT_end_count], row->stats.error[STAT_end_count]);
    stat_values(l, &row->stats);
    stat_errors(l, &row->stats);
    listing_text(l, row->caller);
    listing_int_if(l, row->caller != NULL, row->other_callers);
    listing_raw(l, json);
    listing_share(l, stat >= 0 ? row->stats.value[stat] : 0, whole);
    names(l, row, base);
}

void stat_list(const struct report_out *out, int end)
{
    static const struct column help[] = {
        COLUMN("statistic", "statistic", TEXT),
        COLUMN("unit", "unit", TEXT),
        COLUMN("meaning", "meaning", TEXT, .cut = TEXT_CUT_RIGHT),
    };
    static const char *const units[] = {"bytes", "count", "time"};
    struct listing *l = listing_open(help, COLUMN_COUNT_OF(help), out, NULL);
    for (int i = 0; i < end; i++) {
        listing_text(l, stat_infos[i].name);
        listing_text(l, units[stat_infos[i].unit]);
        listing_text(l, stat_infos[i].text);
    }
    for (int i = 0; i < stat_torch_count; i++) {
        const struct stat_info *ours = &stat_infos[stat_torch_names[i].stat];
        char meaning[64];
        snprintf(meaning, sizeof meaning, "PyTorch's name of %s", ours->name);
        listing_text(l, stat_torch_names[i].name);
        listing_text(l, units[ours->unit]);
        listing_text(l, meaning);
    }
    listing_print(l);
    listing_close(l);
}
