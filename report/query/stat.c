#include "stat.h"

#include "../../common/sum.h"

#include <math.h>
#include <string.h>

const struct stat_info stat_infos[STAT_LINES_COUNT] = {
#define STAT(column, name, unit, combine, text)                                                                        \
    [STAT_##column] = {#column, name, STAT_UNIT_##unit, STAT_COMBINE_##combine, text, STAT_STORED, 0, 0},
#define SCANNED(column, name, unit, text)                                                                              \
    [STAT_##column] = {#column, name, STAT_UNIT_##unit, STAT_COMBINE_sum, text, STAT_SCANNED, 0, 0},
#define WINDOWED(column, name, unit, text)                                                                             \
    [STAT_##column] = {#column, name, STAT_UNIT_##unit, STAT_COMBINE_sum, text, STAT_WINDOWED, 0, 0},
#define DERIVED(column, name, unit, a, how, b, text)                                                                   \
    [STAT_##column] = {#column, name, STAT_UNIT_##unit, STAT_COMBINE_sum, text, STAT_##how, STAT_##a, STAT_##b},
#define OF_LINES(column, name, unit, text)                                                                             \
    [STAT_##column] = {#column, name, STAT_UNIT_##unit, STAT_COMBINE_sum, text, STAT_OF_LINES, 0, 0},
#include "../../common/stat.def"
#undef STAT
};

const struct stat_torch stat_torch_names[] = {
#define TORCH(key, stat) {key, STAT_##stat},
#include "stat_torch.def"
};
const int stat_torch_count = sizeof stat_torch_names / sizeof *stat_torch_names;

static int is_name(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && strncmp(name, text, length) == 0;
}

/* By the title of its column in a table, or by a beginning that only one name has; -1 without one. */
static int find_short(const char *name, size_t length)
{
    static const struct {
        const char *name;
        int stat;
    } titles[] = {
        {"allocated", STAT_alloc_bytes},     {"allocs", STAT_alloc_count},      {"frees", STAT_free_count},
        {"temporary", STAT_temporary_count}, {"temp", STAT_temporary_count},    {"peak", STAT_at_peak_bytes},
        {"at peak", STAT_at_peak_bytes},     {"live", STAT_end_bytes},          {"live at end", STAT_end_bytes},
        {"largest", STAT_largest_bytes},     {"resident", STAT_resident_bytes}, {"untouched", STAT_untouched_bytes}};
    int found = -1;
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        if (is_name(titles[i].name, name, length))
            return titles[i].stat;
    for (int i = 0; i < STAT_SHOWN_COUNT; i++) {
        if (length == 0 || strncmp(stat_infos[i].name, name, length) != 0)
            continue;
        if (found >= 0)
            return -1;
        found = i;
    }
    return found;
}

int stat_find(const char *name, size_t length)
{
    for (int i = 0; i < STAT_LINES_COUNT; i++)
        if (is_name(stat_infos[i].name, name, length) || is_name(stat_infos[i].column, name, length))
            return i;
    for (int i = 0; i < stat_torch_count; i++)
        if (is_name(stat_torch_names[i].name, name, length))
            return stat_torch_names[i].stat;
    return find_short(name, length);
}

void stat_columns(struct buf *sql, const char *prefix)
{
    for (int i = 0; i < STAT_VALUE_COUNT; i++)
        buf_printf(sql, "%s%s%s", i ? ", " : "", prefix, stat_infos[i].column);
}

int stat_is_of_view(int stat)
{
    const struct stat_info *info = &stat_infos[stat];
    int is_derived = info->how == STAT_MINUS || info->how == STAT_PER;
    return info->how == STAT_SCANNED || info->how == STAT_WINDOWED ||
           (is_derived && (stat_is_of_view((int)info->a) || stat_is_of_view((int)info->b)));
}

void stat_expression(int stat, struct buf *sql)
{
    const struct stat_info *info = &stat_infos[stat];
    if (info->how <= STAT_WINDOWED)
        buf_puts(sql, info->column);
    else if (info->how == STAT_MINUS)
        buf_printf(sql, "(%s - %s)", stat_infos[info->a].column, stat_infos[info->b].column);
    else
        buf_printf(sql, "(%s / nullif(%s, 0))", stat_infos[info->a].column, stat_infos[info->b].column);
}

void stat_read(struct stat_row *row, sqlite3_stmt *statement, int first)
{
    row->known = 0;
    memset(row->error, 0, sizeof row->error);
    for (int i = 0; i < STAT_VALUE_COUNT; i++) {
        row->value[i] = sqlite3_column_int64(statement, first + i);
        if (sqlite3_column_type(statement, first + i) != SQLITE_NULL)
            row->known |= 1u << i;
    }
}

/* Of two estimates that are independent; most rows are counts, without one. */
static double error_of_sum(double a, double b)
{
    if (a < 0 || b < 0)
        return -1;
    return a > 0 && b > 0 ? hypot(a, b) : a + b;
}

static double larger_error(double a, double b)
{
    return a < 0 || b < 0 ? -1 : fmax(a, b);
}

static int has_errors(const struct stat_row *row)
{
    int any = 0;
    for (int i = 0; i < STAT_COUNT; i++)
        any |= row->error[i] != 0;
    return any;
}

static void max_add(int64_t *max, int64_t value)
{
    *max = value > *max ? value : *max;
}

void stat_add(struct stat_row *sum, const struct stat_row *row, int is_first)
{
    if (is_first) {
        *sum = *row;
        return;
    }
#define COMBINE_sum(stat)                       sum_add(&sum->value[stat], row->value[stat]);
#define COMBINE_max(stat)                       max_add(&sum->value[stat], row->value[stat]);
#define COMBINE_exact(stat)                     sum->known &= ~(1u << (stat));
#define STAT(column, name, unit, combine, text) COMBINE_##combine(STAT_##column)
#define SCANNED(column, name, unit, text)       COMBINE_sum(STAT_##column)
#define WINDOWED(column, name, unit, text)      COMBINE_sum(STAT_##column)
#include "../../common/stat.def"
#undef STAT
    const int is_estimate = has_errors(sum) || has_errors(row);
    for (int i = 0; i < STAT_COUNT && is_estimate; i++)
        sum->error[i] = stat_infos[i].combine == STAT_COMBINE_max ? larger_error(sum->error[i], row->error[i])
                                                                  : error_of_sum(sum->error[i], row->error[i]);
    sum->known |= row->known & ~(1u << STAT_own_peak_bytes);
}

/* Of a quotient of two estimates it is not known: both are of the same blocks. */
double stat_error(const struct stat_row *row, int stat)
{
    if (stat < STAT_COUNT)
        return row->error[stat];
    const struct stat_info *info = &stat_infos[stat];
    if (info->how <= STAT_WINDOWED || info->how == STAT_OF_LINES)
        return 0;
    const double error = error_of_sum(stat_error(row, info->a), stat_error(row, info->b));
    return info->how == STAT_MINUS || error == 0 ? error : -1;
}

int64_t stat_value(const struct stat_row *row, int stat, int *known)
{
    const struct stat_info *info = &stat_infos[stat];
    if (info->how <= STAT_WINDOWED) {
        *known = row->known >> stat & 1;
        return *known ? row->value[stat] : 0;
    }
    int64_t a = row->value[info->a], b = row->value[info->b];
    *known = (row->known >> info->a & 1) && (row->known >> info->b & 1);
    if (info->how == STAT_MINUS)
        return *known ? sum_of(a, b == INT64_MIN ? INT64_MAX : -b) : 0;
    *known = *known && b > 0;
    return *known ? a / b : 0;
}
