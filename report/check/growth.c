/* What grows from one execution of a range to the next, as 'report --every' shows it, held to a rule. */
#include "../query/growth.h"

#include "../../common/units.h"
#include "../query/marks.h"
#include "check_private.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int unknown(struct check_result *r, const char *why)
{
    r->verdict = CHECK_UNKNOWN;
    snprintf(r->note, sizeof r->note, "%.*s", (int)sizeof r->note - 1, why);
    return 0;
}

static void take_lines(struct check_result *r, struct growth_result *found, int64_t top)
{
    for (int i = 0; i < found->line_count && (!top || i < top); i++) {
        struct growth_line *line = &found->line[i];
        *check_add_culprit(r) = (struct check_culprit){.value = llround(line->slope),
                                                       .slope = line->slope,
                                                       .stack_id = line->stack_id,
                                                       .device = line->device,
                                                       .function = line->function,
                                                       .file = line->file,
                                                       .line = line->line};
        line->device = line->function = line->file = NULL;
    }
}

static int sum_up(struct check_measure *m, struct growth *g, struct check_result *r, struct error *err)
{
    const struct check_options *o = m->options;
    const struct growth_filter filter = {.device = o->device,
                                         .kind = o->kind,
                                         .suppressions = o->suppressions,
                                         .language = o->lens ? o->lens->language : TREE_BOTH};
    struct growth_result found = {.slope = 0};
    int rc = growth_sum_up(g, m->db, &filter, 0, &found, err);
    r->slope = found.slope;
    r->measured = llround(r->slope);
    r->verdict = r->slope > (double)r->limit ? CHECK_BROKEN : CHECK_KEPT;
    r->is_known = rc == 0;
    if (rc == 0 && r->verdict == CHECK_BROKEN) {
        growth_result_free(&found);
        rc = growth_sum_up(g, m->db, &filter, 1, &found, err);
        take_lines(r, &found, o->top);
    }
    growth_result_free(&found);
    return rc;
}

static int measure(struct check_measure *m, struct executions *e, struct growth *g, struct check_result *r,
                   struct error *err)
{
    struct executions_samples samples;
    struct executions_result read;
    growth_samples(g, &samples);
    int rc = executions_measure(m->db, e, &(struct executions_options){.samples = &samples}, &read, err);
    if (rc == -ENODATA || (rc == 0 && (read.chunks_damaged || read.has_unknown_sample)))
        rc = unknown(r, "not all events around its executions were kept, or some are damaged");
    else if (rc == -E2BIG)
        rc = unknown(r, "too many sites change in each execution");
    else if (rc == 0)
        rc = sum_up(m, g, r, err);
    executions_result_free(&read);
    return rc;
}

int check_growth(struct check_measure *m, struct check_result *r, struct error *err)
{
    const struct check_rules *rules = m->options->rules;
    const int64_t warmup = rules->has_warmup ? rules->warmup : GROWTH_WARMUP;
    struct executions e;
    struct growth *g = NULL;
    char text[UNITS_TEXT];
    int64_t rest = 0;
    uint32_t ended = 0;
    int rc = marks_find_executions(m->db, "range", r->subject, &e, err);
    for (uint32_t i = 0; i < e.count; i++)
        ended += e.execution[i].is_ended;
    if (rc == 0)
        g = growth_open(&e, warmup, &rest);
    if (rc == -EINVAL) {
        rc = unknown(r, err->text); /* which ranges there are, for who mistyped one */
    } else if (rc == 0 && !g) {
        unknown(r, "");
        snprintf(
            r->note, sizeof r->note,
            "%u execution%s: the first %lld %s not count, and at least %d after them are needed to tell what grows",
            ended, ended == 1 ? "" : "s", (long long)warmup, warmup == 1 ? "does" : "do", GROWTH_LEAST);
    } else if (rc == 0 && m->options->lens && m->options->lens->pid) {
        rc = unknown(r, "growth is measured over all processes; leave out --process");
    } else if (rc == 0) {
        rc = measure(m, &e, g, r, err);
        if (rc == 0 && r->is_known)
            snprintf(r->note, sizeof r->note, "%s executions, the first %lld left out", units_count(text, ended),
                     (long long)warmup);
    }
    growth_close(g);
    executions_free(&e);
    return rc;
}
