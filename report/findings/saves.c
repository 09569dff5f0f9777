/* What `memprof advise` needs beside the rules: the watches of a pass over all events, and what findings save. */
#include "../../common/array.h"
#include "rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SAME_RULES = 4 };

#define LEAST_PART 1000 /* of the peak: a smaller part is next to nothing */

void finding_number(struct finding *f, const char *name, int64_t value)
{
    if (f->number_count < FINDING_NUMBERS)
        f->numbers[f->number_count++] = (struct finding_number){name, value};
}

static void claim(const struct rules *r, struct finding *f, enum finding_claim claim, int64_t saved_bytes,
                  int64_t peak_bytes)
{
    finding_saves_of(r, f, FINDING_ACTIVE, claim, saved_bytes, peak_bytes);
}

int finding_saves_much(const struct finding *f)
{
    return f->claim != FINDING_UNCLAIMED && f->saved_bytes > f->peak_bytes / LEAST_PART;
}

void finding_saves_of(const struct rules *r, struct finding *f, enum finding_base base, enum finding_claim claim,
                      int64_t saved_bytes, int64_t peak_bytes)
{
    f->base = base;
    f->claim = claim;
    f->saved_bytes = saved_bytes > 0 ? saved_bytes : 0;
    f->peak_bytes = peak_bytes;
    if (r->is_advise && !finding_saves_much(f))
        f->severity = FINDING_INFO;
}

void finding_saves(struct rules *r, struct finding *f, struct saving *saving, enum finding_claim how)
{
    struct saving_result result;
    if (r->pass && saving_measure(saving, r->pass, r->device->device_id, &result, r->err) == 0) {
        if (result.is_exact || how == FINDING_AT_MOST)
            claim(r, f, how, result.most_bytes, result.peak_bytes);
        else
            claim(r, f, FINDING_AT_LEAST, result.least_bytes, result.peak_bytes);
    }
    saving_close(saving);
}

void finding_saves_at_most(struct rules *r, struct finding *f, int64_t bytes)
{
    const int64_t peak_bytes = r->device->peak_active;
    claim(r, f, FINDING_AT_MOST, bytes < peak_bytes ? bytes : peak_bytes, peak_bytes);
}

int64_t rule_add_gone(struct rules *r, struct saving *saving, const struct rule_line *line,
                      int (*is_kept)(const struct rules *r, int64_t site_id))
{
    int64_t count = 0;
    for (size_t i = 0; r->pass && i < r->pass->gone_count; i++) {
        const struct pass_gone *gone = &r->pass->gone[i];
        const struct rule_line *of = rule_line_of(r, gone->block.site_id);
        if (!of || (line ? of != line : of->device_id != r->device->device_id) ||
            (is_kept && !is_kept(r, gone->block.site_id)))
            continue;
        saving_add_gone(saving, gone);
        count++;
    }
    return count;
}

static int is_same_line(const struct finding *a, const struct finding *b)
{
    return a->function && b->function && strcmp(a->device, b->device) == 0 && strcmp(a->function, b->function) == 0 &&
           a->line == b->line && (a->file ? b->file && strcmp(a->file, b->file) == 0 : !b->file);
}

/* What is kept is told once: that it grows with each step says more than that it is held or never freed, and all these
 * more than that it grows. */
static int rank_of(const struct finding *f)
{
    static const char *const order[SAME_RULES] = {"steps", "phase", "leaks", "growth"};
    int rank = 0;
    while (rank < SAME_RULES && strcmp(f->rule, order[rank]) != 0)
        rank++;
    return rank;
}

void findings_lessen_same(struct findings *all)
{
    for (size_t i = 0; i < all->count; i++)
        for (size_t k = 0; k < all->count; k++) {
            const struct finding *a = &all->item[i], *b = &all->item[k];
            if (!a->is_minor && !a->is_fact && rank_of(a) < rank_of(b) && rank_of(b) < SAME_RULES && is_same_line(a, b))
                finding_lessen(&all->item[k]);
        }
}

/* --- lines ------------------------------------------------------------------------------------------------------- */

void line_savings_open(struct line_savings *all, const struct rules *r)
{
    *all = (struct line_savings){.r = r, .index_of = xcalloc(r->line_count + 1ul, sizeof *all->index_of)};
}

void line_savings_add(struct line_savings *all, const struct rule_line *line)
{
    uint32_t *index = &all->index_of[line - all->r->lines];
    if (*index)
        return;
    ARRAY_ADD(all->savings, all->count, all->capacity);
    *index = all->count;
}

struct saving *line_savings_of(const struct line_savings *all, int64_t site_id)
{
    const struct rule_line *line = all->count ? rule_line_of(all->r, site_id) : NULL;
    uint32_t index = line ? all->index_of[line - all->r->lines] : 0;
    return index ? &all->savings[index - 1] : NULL;
}

void line_savings_close(struct line_savings *all)
{
    for (uint32_t i = 0; i < all->count; i++)
        saving_close(&all->savings[i]);
    free(all->savings);
    free(all->index_of);
}

/* --- the pass ---------------------------------------------------------------------------------------------------- */

static const struct watch {
    void *(*open)(struct rules *r);
    void (*see)(void *watch, const struct pass_event *e);
    void (*close)(void *watch);
} watches[WATCHES + 1] = {
#define WATCH(name) [WATCH_##name] = {watch_##name##_open, watch_##name##_see, watch_##name##_close},
#include "watches.def"
#undef WATCH
};

int watches_load(struct rules *r, struct pass *pass, void (*progress)(void *arg, int percent), void *progress_arg)
{
    struct pass_reader readers[WATCHES + 1] = {{NULL, NULL}};
    int count = 0;
    for (int i = 0; i < WATCHES; i++)
        if ((r->watch[i] = watches[i].open(r)))
            readers[count++] = (struct pass_reader){watches[i].see, r->watch[i]};
    int rc = pass_load(r->db, readers, count, progress, progress_arg, pass, r->err);
    if (rc == 0)
        r->pass = pass;
    else
        watches_close(r);
    return rc == -ENODATA || rc == -EBADMSG ? 0 : rc;
}

void watches_close(struct rules *r)
{
    for (int i = 0; i < WATCHES; i++) {
        if (r->watch[i])
            watches[i].close(r->watch[i]);
        r->watch[i] = NULL;
    }
}
