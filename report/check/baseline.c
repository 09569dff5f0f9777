/* What a recording has, as rules: for a file that people look through, and to measure growth from. */
#include "check_private.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/map.h"
#include "../../common/text.h"
#include "../../common/units.h"
#include "../query/bare_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHARE = 100,     /* functions whose own peak is a hundredth of the device's peak or more */
    PLACES_MAX = 50, /* of those, the largest */
    NAME_MAX_BYTES = 1000
};

/* Those that are the same in every run of the same program; reserved bytes of the host are not: they are sampled. */
static const enum check_id of_device[] = {CHECK_max_peak,        CHECK_max_reserved, CHECK_max_leak,
                                          CHECK_max_live_at_end, CHECK_max_allocs,   CHECK_max_allocated,
                                          CHECK_max_temporary};

static void add(struct check_rules *rules, enum check_id id, const char *subject, int64_t limit, const char *origin)
{
    *ARRAY_ADD(rules->rule, rules->count, rules->capacity) =
        (struct check_rule){.id = id, .subject = xstrdup(subject), .limit = limit, .origin = xstrdup(origin)};
}

/* Of a merged file, what it is at most: a file that is measured from it has such a bound, too. */
static int can_write(const struct check_value *value)
{
    return value->is_known || (value->is_sum && value->most >= 0);
}

static int add_devices(struct check_measure *m, struct check_rules *rules, struct error *err)
{
    int rc = check_measure_devices(m, err);
    for (int i = 0; rc == 0 && i < m->device_count; i++) {
        const char *device = m->device[i].name;
        for (size_t k = 0; rc == 0 && k < sizeof of_device / sizeof *of_device; k++) {
            struct check_value value;
            if (of_device[k] == CHECK_max_reserved && strcmp(device, "host") == 0)
                continue;
            rc = check_value_of_device(m, of_device[k], device, &value, err);
            if (of_device[k] == CHECK_max_live_at_end && !m->device[i].torn_bytes) /* max-leak says it */
                continue;
            if (rc == 0 && can_write(&value))
                add(rules, of_device[k], device, value.is_known ? value.value : value.most, m->options->file);
        }
    }
    return rc;
}

/* --- places --- */

/* What a line of a file can say and is read back as it was. */
static int is_plain(const char *text)
{
    size_t length = strlen(text);
    if (!length || length > NAME_MAX_BYTES || text[0] == ' ' || text[length - 1] == ' ')
        return 0;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 127 || (text[i] == '#' && i && text[i - 1] == ' '))
            return 0;
    return 1;
}

int check_place_name(const char *function, const char *path, struct buf *place)
{
    const char *file = path ? text_filename(path) : NULL;
    struct check_place back;
    buf_reset(place);
    if (!function || !is_plain(function) || (file && (!is_plain(file) || strchr(file, ':'))))
        return 0;
    if (file)
        buf_printf(place, "%s:", file);
    buf_puts(place, function);
    if (place->failed || check_place_parse(buf_text(place), &back))
        return 0;
    int is_same = back.function && strcmp(back.function, function) == 0 && !back.line &&
                  (file ? back.file && strcmp(back.file, file) == 0 : !back.file);
    check_place_free(&back);
    return is_same;
}

static int64_t peak_of(const struct check_measure *m, const char *device)
{
    for (int i = 0; device && i < m->device_count; i++)
        if (strcmp(m->device[i].name, device) == 0)
            return m->device[i].value[CHECK_max_peak];
    return 0;
}

static int by_subject(const void *a, const void *b)
{
    return strcmp(((const struct check_rule *)a)->subject, ((const struct check_rule *)b)->subject);
}

/* Code without a symbol is named by its address, which says nothing of another build: no rule is written of it. bare:
 * the name of the first such, the caller's to free. */
static void note_bare(const struct row *row, char **bare)
{
    struct buf name = BUF(1 << 16);
    if (row->function || !row->module || *bare)
        return;
    bare_code_name(row->module, row->offset, &name);
    *bare = xstrdup(buf_text(&name));
    buf_free(&name);
}

static int add_places(struct check_measure *m, struct check_rules *rules, char **bare, struct error *err)
{
    const struct check_place any = {.function = (char[]){"*"}};
    const struct rows *rows = check_rows_of_place(m, CHECK_max_line, &any, err);
    const int first = rules->count;
    struct buf place = BUF(1 << 16);
    struct text_map seen = {0};
    int rc = rows ? 0 : -EIO;
    for (int i = 0; rc == 0 && i < rows->count && rules->count - first < PLACES_MAX; i++) {
        struct check_value value;
        int known;
        int64_t most = stat_value(&rows->row[i].stats, STAT_own_peak_bytes, &known);
        if (!known || most <= 0 || most < peak_of(m, rows->row[i].device) / SHARE)
            continue;
        note_bare(&rows->row[i], bare);
        if (!check_place_name(rows->row[i].function, rows->row[i].file, &place))
            continue;
        uint32_t *slot = text_map_slot(&seen, place.data, place.length);
        if (*slot)
            continue;
        *slot = 1;
        rc = check_value_of_place(m, CHECK_max_line, place.data, &value, err);
        if (rc == 0 && can_write(&value))
            add(rules, CHECK_max_line, place.data, value.is_known ? value.value : value.most, m->options->file);
    }
    /* by name, so that a later file is easily compared with this one */
    if (rules->count > first)
        qsort(rules->rule + first, (size_t)(rules->count - first), sizeof *rules->rule, by_subject);
    text_map_close(&seen);
    buf_free(&place);
    return rc;
}

static int load_rules(sqlite3 *db, const struct check_options *options, struct check_rules *rules, char **bare,
                      struct error *err)
{
    struct check_measure m = {.db = db, .options = options};
    int rc = add_devices(&m, rules, err);
    if (rc == 0)
        rc = add_places(&m, rules, bare, err);
    check_measure_close(&m);
    return rc;
}

int check_rules_of(sqlite3 *db, const struct check_options *options, struct check_rules *rules, struct error *err)
{
    char *bare = NULL;
    int rc = load_rules(db, options, rules, &bare, err);
    free(bare);
    return rc;
}

/* --- the file --- */

static void write_filters(const struct check_options *o, FILE *file)
{
    const struct lens_options *lens = o->lens;
    struct buf text = BUF(1 << 16);
    if (o->device)
        buf_printf(&text, " --device %s", o->device);
    if (o->kind)
        buf_printf(&text, " --kind %s", o->kind);
    if (lens && lens->pid)
        buf_printf(&text, " --process %lld", (long long)lens->pid);
    for (int i = 0; lens && i < lens->skip_count; i++) {
        buf_puts(&text, " --skip ");
        buf_shell(&text, lens->skips[i]);
    }
    if (lens && lens->language != TREE_BOTH)
        buf_puts(&text, lens->language == TREE_NATIVE ? " --native" : " --python-only");
    if (o->all)
        buf_puts(&text, " --all");
    struct buf clean = BUF(1 << 18);
    text_clean(&clean, buf_text(&text));
    if (text.length && !clean.failed)
        fprintf(file, "# With:%s\n", buf_text(&clean));
    buf_free(&text);
    buf_free(&clean);
}

static void write_command(sqlite3 *db, FILE *file)
{
    char *command = db_meta_text(db, "command");
    struct buf clean = BUF(1 << 16);
    text_clean(&clean, command ? command : "?");
    fprintf(file, "# Of: %.300s\n", clean.failed ? "?" : buf_text(&clean));
    buf_free(&clean);
    free(command);
}

static void write_rule(const struct check_rule *rule, FILE *file)
{
    char text[UNITS_TEXT];
    const struct check_info *info = &check_infos[rule->id];
    fprintf(file, "%s %s=%lld", info->name, rule->subject, (long long)rule->limit);
    if (info->unit == CHECK_UNIT_bytes && rule->limit >= 1024)
        fprintf(file, "  # %s", units_bytes(text, rule->limit));
    fputc('\n', file);
}

static int is_place(const struct check_rule *rule)
{
    return check_infos[rule->id].of == CHECK_OF_place;
}

/* Devices first, each with its rules in their order; then places by name. */
static int by_rule(const void *a, const void *b)
{
    const struct check_rule *x = a, *y = b;
    if (is_place(x) != is_place(y))
        return is_place(x) - is_place(y);
    int order = strcmp(x->subject, y->subject);
    return order ? order : (int)x->id - (int)y->id;
}

/* The more of what both have. more: empty then. */
static void add_more(struct check_rules *rules, struct check_rules *more)
{
    const int had = rules->count;
    for (int i = 0; i < more->count; i++) {
        struct check_rule *rule = &more->rule[i], *same = NULL;
        if (had)
            same = bsearch(rule, rules->rule, (size_t)had, sizeof *rule, by_rule);
        if (same && rule->limit > same->limit)
            same->limit = rule->limit;
        if (!same)
            add(rules, rule->id, rule->subject, rule->limit, rule->origin);
    }
    check_rules_free(more);
    qsort(rules->rule, (size_t)rules->count, sizeof *rules->rule, by_rule);
}

static void write_bare(const char *bare, FILE *file)
{
    struct buf name = BUF(1 << 18);
    text_clean(&name, bare);
    fprintf(file,
            "\n# Code without a symbol, such as %.300s, held 1 %% of the peak or more and has no max-line:\n"
            "# " BARE_CODE_OF_ONE_BUILD ". Symbols (a -dbgsym package, DEBUGINFOD_URLS) give it one.\n",
            name.failed ? "?" : buf_text(&name));
    buf_free(&name);
}

int check_write_rules(sqlite3 *const dbs[], int count, const struct check_options *options, FILE *file,
                      struct error *err)
{
    struct check_rules rules = {0};
    char *bare = NULL;
    int rc = load_rules(dbs[0], options, &rules, &bare, err), was_place = 0;
    for (int i = 1; rc == 0 && i < count; i++) {
        struct check_rules more = {0};
        if (i == 1 && rules.count)
            qsort(rules.rule, (size_t)rules.count, sizeof *rules.rule, by_rule);
        rc = load_rules(dbs[i], options, &more, &bare, err);
        add_more(&rules, &more);
    }
    if (rc == 0) {
        fputs("# Rules of 'memprof check --rules FILE', and what '--baseline FILE' measures growth from.\n", file);
        write_command(dbs[0], file);
        if (count > 1)
            fprintf(file, "# The most of %d runs.\n", count);
        write_filters(options, file);
        fputs("# One rule a line: NAME [SUBJECT=]VALUE. Sizes may be written as 64M or 1.5G, too.\n\n", file);
    }
    for (int i = 0; rc == 0 && i < rules.count; i++) {
        if (is_place(&rules.rule[i]) && !was_place)
            fputs("\n# The most that a function held at any instant, of those with 1 % of the peak or more.\n", file);
        was_place = is_place(&rules.rule[i]);
        write_rule(&rules.rule[i], file);
    }
    if (rc == 0 && bare)
        write_bare(bare, file);
    check_rules_free(&rules);
    free(bare);
    return rc;
}
