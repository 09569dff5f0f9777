/* A place of the baseline that has another name in the recording: its file was renamed. */
#include "check_private.h"

#include "../../common/match.h"
#include "../../common/text.h"

#include <stdlib.h>
#include <string.h>

/* --- from a recording: as 'memprof diff' matches it --- */

static int load_diff(struct check_measure *m, struct error *err)
{
    const struct diff_options what = {.by = ROW_FUNCTION, .sort = STAT_at_peak_bytes};
    sqlite3 *const old = m->options->baseline->db, *const new = m->db;
    sqlite3 *const *const dbs[DIFF_SIDES] = {&old, &new};
    if (m->diff)
        return 0;
    m->diff = xcalloc(1, sizeof *m->diff);
    return diff_load(dbs, (const int[DIFF_SIDES]){1, 1}, &what, m->diff, err);
}

static char *renamed_in_diff(struct check_measure *m, const char *subject, int *rc, struct error *err)
{
    struct buf place = BUF(1 << 16);
    const struct diff_item *old, *now;
    char *found = NULL;
    *rc = load_diff(m, err);
    for (uint32_t i = 0; *rc == 0 && !found && (old = diff_old_item(m->diff, i, &now)); i++)
        if (now && check_place_name(old->function, old->file, &place) && strcmp(buf_text(&place), subject) == 0 &&
            check_place_name(now->function, now->file, &place) && strcmp(buf_text(&place), subject) != 0)
            found = xstrdup(buf_text(&place));
    buf_free(&place);
    return found;
}

/* --- from a file of rules, which has but names --- */

static int is_there(const char *file, const struct rows *all)
{
    for (int i = 0; i < all->count; i++)
        if (all->row[i].file && match_file(file, all->row[i].file))
            return 1;
    return 0;
}

static int is_of_baseline(const struct check_rules *values, const char *file)
{
    const size_t length = strlen(file);
    for (int i = 0; i < values->count; i++)
        if (check_infos[values->rule[i].id].of == CHECK_OF_place &&
            strncmp(values->rule[i].subject, file, length) == 0 && values->rule[i].subject[length] == ':')
            return 1;
    return 0;
}

/* The file that a function is in now: one that was not there before, of the same language. 0: it may be several. */
static int look_for(const struct check_rules *values, const struct check_place *place, const struct rows *all,
                    const char **found)
{
    const char *end = strrchr(place->file, '.');
    for (int i = 0; i < all->count; i++) {
        const char *file = all->row[i].file ? text_filename(all->row[i].file) : NULL;
        const char *its_end = file ? strrchr(file, '.') : NULL;
        if (!file || !end || !its_end || strcmp(end, its_end) != 0 ||
            !check_is_of_function(place->function, &all->row[i]) || is_of_baseline(values, file))
            continue;
        if (*found && strcmp(*found, file) != 0)
            return 0;
        *found = file;
    }
    return 1;
}

/* All functions of the file that the recording has at all are in one other file. */
static char *renamed_by_names(const struct check_rules *values, const struct check_place *gone, const struct rows *all)
{
    const char *found = NULL, *own = NULL;
    struct buf text = BUF(1 << 16);
    int is_one = !is_there(gone->file, all);
    for (int i = 0; is_one && i < values->count; i++) {
        struct check_place place;
        if (check_infos[values->rule[i].id].of != CHECK_OF_place || check_place_parse(values->rule[i].subject, &place))
            continue;
        if (place.file && place.function && strcmp(place.file, gone->file) == 0)
            is_one = look_for(values, &place, all, &found);
        check_place_free(&place);
    }
    if (is_one && look_for(values, gone, all, &own) && own)
        buf_printf(&text, "%s:%s", own, gone->function);
    return text.length && !text.failed ? buf_take(&text) : (buf_free(&text), NULL);
}

char *check_renamed(struct check_measure *m, const char *subject, const struct rows *all, int *rc, struct error *err)
{
    const struct check_baseline *baseline = m->options->baseline;
    struct check_place place;
    char *now = NULL;
    *rc = 0;
    if (check_place_parse(subject, &place))
        return NULL;
    if (place.file && place.function)
        now = baseline->db ? renamed_in_diff(m, subject, rc, err) : renamed_by_names(&baseline->values, &place, all);
    check_place_free(&place);
    return now;
}
