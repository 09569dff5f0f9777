/* Several runs of one program, held to the same rules: a rule is as its worst run has it. */
#include "check_private.h"

#include "../../common/array.h"
#include "../../common/units.h"

#include <stdlib.h>
#include <string.h>

static int is_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* The next one of another run that is of the same rule; of equal ones, those after at are free. */
static struct check_result *find(struct check_results *all, int run, const struct check_result *r)
{
    for (int i = 0; i < all->count; i++) {
        struct check_result *found = &all->result[i];
        if (found->last_run < run && found->id == r->id && found->is_growth == r->is_growth &&
            found->limit == r->limit && is_text(found->subject, r->subject) && is_text(found->origin, r->origin))
            return found;
    }
    return NULL;
}

/* By the verdict, then by what was measured. */
static int is_worse(const struct check_result *a, const struct check_result *b)
{
    static const int order[] = {[CHECK_KEPT] = 0, [CHECK_UNKNOWN] = 1, [CHECK_BROKEN] = 2};
    if (a->verdict != b->verdict)
        return order[a->verdict] > order[b->verdict];
    return check_infos[a->id].of == CHECK_OF_range ? a->slope > b->slope : a->measured > b->measured;
}

static void take_spread(struct check_spread *to, const struct check_spread *from)
{
    if (from->known_runs && (!to->known_runs || from->least < to->least))
        to->least = from->least;
    if (from->known_runs && (!to->known_runs || from->most > to->most))
        to->most = from->most;
    to->known_runs += from->known_runs;
    to->broken_runs += from->broken_runs;
}

static void merge(struct check_result *to, struct check_result *from, int run)
{
    struct check_spread spread = to->spread;
    take_spread(&spread, &from->spread);
    if (is_worse(from, to)) {
        struct check_result worse = *from;
        *from = *to;
        *to = worse;
    }
    to->spread = spread;
    to->last_run = run;
    check_free_result(from);
}

void check_results_join(struct check_results *all, struct check_results *one)
{
    const int run = all->run_count++;
    all->db[run] = one->db[0];
    for (int i = 0; i < one->count; i++) {
        struct check_result *from = &one->result[i], *to = find(all, run, from);
        from->run = from->last_run = run;
        if (to)
            merge(to, from, run);
        else
            *ARRAY_ADD(all->result, all->count, all->capacity) = *from;
    }
    free(one->result);
    *one = (struct check_results){0};
    memset(all->counts, 0, sizeof all->counts);
    for (int i = 0; i < all->count; i++)
        all->counts[all->result[i].verdict]++;
}

static void add_value(const struct check_result *r, double value, struct buf *out)
{
    char text[UNITS_TEXT];
    if (check_infos[r->id].of == CHECK_OF_range)
        buf_printf(out, "%.1f B", value);
    else
        buf_puts(out, units_count(text, (int64_t)value));
}

void check_spread_text(const struct check_results *results, const struct check_result *r, struct buf *out)
{
    const struct check_spread *s = &r->spread;
    if (results->run_count < 2 || !s->known_runs)
        return;
    buf_puts(out, "; ");
    if (s->least < s->most) {
        add_value(r, s->least, out);
        buf_puts(out, " to ");
        add_value(r, s->most, out);
    } else {
        buf_puts(out, "the same");
    }
    buf_printf(out, " in %d runs", s->known_runs);
    if (s->known_runs < results->run_count)
        buf_printf(out, " of %d", results->run_count);
    if (r->verdict == CHECK_BROKEN && s->broken_runs < results->run_count)
        buf_printf(out, ", broken in %d", s->broken_runs);
    if (r->verdict == CHECK_BROKEN && s->least < s->most)
        buf_printf(out, ", most in run %d", r->run + 1);
}
