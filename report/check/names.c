/* Rules on functions as people read them: the names of C++'s instances have hundreds of characters. */
#include "check_private.h"

#include "../query/short_name.h"

#include <stdlib.h>
#include <string.h>

static int count_of(const char *text, char c)
{
    int count = 0;
    for (; *text; text++)
        count += *text == c;
    return count;
}

/* Not those of a pattern such as "Cache<int, *put": its short form would be another one. */
static int has_matching_brackets(const char *name)
{
    return count_of(name, '<') == count_of(name, '>') && count_of(name, '(') == count_of(name, ')');
}

/* "cache.h:Cache::put" for "cache.h:Cache<int, std::string>::put(int)"; NULL: it stays. */
static char *short_place(const char *subject)
{
    struct check_place place;
    struct buf text = BUF(1 << 20);
    char *name = NULL;
    if (check_place_parse(subject, &place))
        return NULL;
    if (place.function && has_matching_brackets(place.function)) {
        name = short_name(place.function);
        buf_printf(&text, "%s%s%s", place.file ? place.file : "", place.file ? ":" : "", name);
    }
    check_place_free(&place);
    if (!name)
        return NULL;
    free(name);
    return buf_take(&text);
}

static int by_short_subject(const void *a, const void *b)
{
    const struct check_result *const *x = a, *const *y = b;
    int order = strcmp((*x)->short_subject, (*y)->short_subject);
    return order ? order : strcmp((*x)->subject, (*y)->subject);
}

static int is_same(const struct check_result *a, const struct check_result *b)
{
    return strcmp(a->short_subject, b->short_subject) == 0;
}

/* Two instances of a template, each with a rule, keep what tells them apart. result: sorted. */
static void keep_apart(struct check_result **result, int count)
{
    for (int i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && is_same(result[i], result[end]);)
            end++;
        if (strcmp(result[i]->subject, result[end - 1]->subject) == 0)
            continue;
        for (int k = i; k < end; k++) {
            free(result[k]->short_subject);
            result[k]->short_subject = NULL;
        }
    }
}

void check_shorten_subjects(struct check_results *results)
{
    struct check_result **shortened = xcalloc((size_t)results->count + 1, sizeof *shortened);
    int count = 0;
    for (int i = 0; i < results->count; i++) {
        struct check_result *r = &results->result[i];
        r->short_subject = r->subject && check_infos[r->id].of == CHECK_OF_place ? short_place(r->subject) : NULL;
        if (r->short_subject)
            shortened[count++] = r;
    }
    if (count)
        qsort(shortened, (size_t)count, sizeof *shortened, by_short_subject);
    keep_apart(shortened, count);
    free(shortened);
}
