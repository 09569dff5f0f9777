#include "../../common/array.h"
#include "../../common/sum.h"
#include "../query/rows.h"
#include "../query/site_rows.h"
#include "../query/walk.h"
#include "../query/wrapper.h"
#include "rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PASSED_SITES_MAX 10000 /* of a line with more, none is looked at */

/* --- by its name ------------------------------------------------------------------------------------------------- */

static int is_wrapper(const struct walk_frame *f)
{
    const struct row row = {.function = (char *)f->function, .plain_name = (char *)f->plain_name};
    return wrapper_is_named(&row);
}

/* The nearest one that is no wrapper; NULL: the innermost is none itself, or no other is known. */
static const struct walk_frame *caller_of(const struct walk_stack *stack)
{
    int first, end;
    walk_shown(stack, &first, &end);
    for (int i = first; i < end; i++) {
        const struct walk_frame *f = stack->frames[i];
        if (f->function && !is_wrapper(f))
            return i > first && strcmp(f->function, "main") != 0 ? f : NULL;
    }
    return NULL;
}

/* Whether it is the line's own frame or one that it called: of a Python line the interpreter's lie further in. */
static int is_within(const struct walk_stack *stack, const struct walk_frame *caller, int64_t function_id)
{
    int is_reached = 0;
    for (int i = 0; i < stack->count; i++) {
        is_reached |= stack->frames[i] == caller;
        if (function_id && stack->frames[i]->function_id == function_id)
            return is_reached;
    }
    return 0;
}

static const char own_function[] = "SELECT function_id FROM site_line JOIN line USING(line_id) WHERE site_id = ?";

void finding_caller(struct rules *r, struct finding *f, int64_t site_id)
{
    struct walk *walk = NULL;
    struct walk_stack stack;
    int64_t stack_id = rule_query_amount(r, "SELECT stack_id FROM site WHERE site_id = ?", &site_id, 1, 0);
    int64_t function_id = rule_query_amount(r, own_function, &site_id, 1, 0);
    if (stack_id && walk_open(r->db, TREE_BOTH, &walk, r->err) == 0 &&
        walk_stack(walk, stack_id, &stack, r->err) == 0) {
        const struct walk_frame *caller = caller_of(&stack);
        if (caller && !is_within(&stack, caller, function_id)) {
            finding_say(f, ", most for ");
            finding_code(f, caller->function, caller->file, caller->line);
            finding_say(f, ",");
        }
    }
    walk_close(walk);
}

/* What a wrapper's sites passed to functions: the frame of the site that passed most, of each. */
struct passed {
    const struct walk_frame *frame;
    int64_t bytes, most;
};

struct passed_on {
    struct passed *item;
    uint32_t count, capacity;
    int64_t bytes; /* to all, and to nobody that is known */
};

static void pass_on(struct passed_on *all, const struct walk_frame *frame, int64_t bytes)
{
    uint32_t i = 0;
    sum_add(&all->bytes, bytes);
    while (i < all->count && frame && all->item[i].frame->function_id != frame->function_id)
        i++;
    if (!frame)
        return;
    if (i == all->count)
        *ARRAY_ADD(all->item, all->count, all->capacity) = (struct passed){.frame = frame};
    struct passed *to = &all->item[i];
    sum_add(&to->bytes, bytes);
    if (bytes > to->most) {
        to->most = bytes;
        to->frame = frame;
    }
}

/* Beside code without a name its caller stands already. What the line itself called (of the C library, or of an
 * interpreter) is no caller of it. */
static const struct walk_frame *passed_to(const struct walk_stack *stack, int64_t function_id)
{
    int first, end;
    walk_shown(stack, &first, &end);
    const struct walk_frame *caller = first < end && stack->frames[first]->function ? caller_of(stack) : NULL;
    return caller && !is_within(stack, caller, function_id) ? caller : NULL;
}

static int sum_passed(struct rules *r, struct walk *walk, const struct rule_line *line, named_caller_bytes *bytes,
                      struct passed_on *all)
{
    static const enum packed_column of_sites[] = {PACKED_site_stack_id, PACKED_site_end_bytes};
    struct site_rows rows;
    struct walk_stack stack;
    int64_t function_id = rule_query_amount(r, own_function, &line->site_id, 1, 0);
    int sites = 0, rc = site_rows_open(r->db, of_sites, 2, &rows, r->err);
    while (rc == 0 && (rc = site_rows_next(&rows, r->err)) == 1) {
        int64_t part = rule_line_of(r, rows.site_id) == line ? bytes(r, rows.site_id, site_rows_value(&rows, 1)) : 0;
        rc = part > 0 && ++sites > PASSED_SITES_MAX ? -E2BIG : 0;
        if (rc == 0 && part > 0 && (rc = walk_stack(walk, site_rows_value(&rows, 0), &stack, r->err)) == 0)
            pass_on(all, passed_to(&stack, function_id), part);
    }
    site_rows_close(&rows);
    return rc;
}

void finding_passed(struct rules *r, struct finding *f, const struct rule_line *line, named_caller_bytes *bytes)
{
    struct walk *walk = NULL;
    struct passed_on all = {.item = NULL};
    const struct passed *best = NULL;
    if (walk_open(r->db, TREE_BOTH, &walk, r->err) == 0 && sum_passed(r, walk, line, bytes, &all) == 0)
        for (uint32_t i = 0; i < all.count; i++)
            best = best && best->bytes >= all.item[i].bytes ? best : &all.item[i];
    int percent = best ? rule_percent(best->bytes, all.bytes) : 0;
    if (percent > 0) {
        if (best->bytes == all.bytes)
            finding_say(f, " It allocated all of this for ");
        else if (percent >= 50)
            finding_say(f, " It allocated %d %% of this for ", percent);
        else
            finding_say(f, " It allocated the largest part of this, %d %%, for ", percent);
        finding_code(f, best->frame->function, best->frame->file, best->frame->line);
        finding_say(f, ".");
    }
    free(all.item);
    walk_close(walk);
}

/* --- by what is kept --------------------------------------------------------------------------------------------- */

#define KEEPS_PERCENT 75 /* so much of what came through it is live at the end */
#define DEPTH_MAX     64
#define KEEPERS       3         /* findings of a rule that it is looked for: it takes all stacks of the file */
#define SITES_MAX     (1 << 20) /* of more, none is looked at */

enum { STACK, ALLOCS, ENDS, END_BYTES, COLUMNS };
static const enum packed_column columns[COLUMNS] = {PACKED_site_stack_id, PACKED_site_alloc_count,
                                                    PACKED_site_end_count, PACKED_site_end_bytes};

struct keeper { /* the addresses of a stack from the innermost on, with what came through each */
    struct map number_of;
    int count;
    int64_t address_ids[DEPTH_MAX], allocs[DEPTH_MAX], ends[DEPTH_MAX];
};

/* The stack of the line that has most live at the end; 0: none. */
static int64_t stack_of_most(struct rules *r, const struct rule_line *line,
                             int (*is_kept)(const struct rules *r, int64_t site_id))
{
    struct site_rows rows;
    int64_t most = 0, stack_id = 0;
    int rc = site_rows_open(r->db, columns, COLUMNS, &rows, r->err);
    while (rc == 0 && site_rows_next(&rows, r->err) == 1)
        if (site_rows_value(&rows, END_BYTES) > most && rule_line_of(r, rows.site_id) == line &&
            (!is_kept || is_kept(r, rows.site_id))) {
            most = site_rows_value(&rows, END_BYTES);
            stack_id = site_rows_value(&rows, STACK);
        }
    site_rows_close(&rows);
    return stack_id;
}

static void list_addresses(struct rules *r, struct walk *walk, int64_t stack_id, struct keeper *k)
{
    struct walk_step step;
    for (int depth = 0; stack_id && k->count < DEPTH_MAX && depth < WALK_FRAMES_MAX; depth++) {
        if (walk_step(walk, stack_id, depth > 0, &step, r->err) != 1)
            return;
        k->address_ids[k->count] = step.frames[0].address_id;
        if (map_number_or(&k->number_of, (uint64_t)step.frames[0].address_id, 0, (uint32_t)k->count) ==
            (uint32_t)k->count)
            k->count++;
        stack_id = step.parent_id;
    }
}

/* Once where a stack recurs. */
static void add_stack(struct rules *r, struct walk *walk, const struct site_rows *rows, struct keeper *k)
{
    uint64_t seen = 0;
    struct walk_step step;
    int64_t stack_id = site_rows_value(rows, STACK);
    for (int depth = 0; stack_id && depth < WALK_FRAMES_MAX; depth++) {
        if (walk_step(walk, stack_id, depth > 0, &step, r->err) != 1)
            return;
        uint32_t n = map_number(&k->number_of, (uint64_t)step.frames[0].address_id, 0);
        if (n < DEPTH_MAX && !(seen >> n & 1)) {
            seen |= UINT64_C(1) << n;
            sum_add(&k->allocs[n], rule_sane(site_rows_value(rows, ALLOCS)));
            sum_add(&k->ends[n], rule_sane(site_rows_value(rows, ENDS)));
        }
        stack_id = step.parent_id;
    }
}

static int keeps(const struct keeper *k, uint32_t n)
{
    return (double)k->ends[n] * 100 >= (double)k->allocs[n] * KEEPS_PERCENT;
}

/* Where the line's own frame is: of a Python line the interpreter's lie further in. */
static int own_frame(const struct walk_stack *stack, int64_t function_id, int first, int end)
{
    for (int i = first; i < end && function_id; i++)
        if (stack->frames[i]->function_id == function_id)
            return i;
    return first;
}

/* What frame is shown of the address, of wrappers and what called them the first that is none; NULL: it is the line
 * itself, the allocator's, or above main(). */
static const struct walk_frame *keeping_frame(const struct walk_stack *stack, const struct keeper *k,
                                              int64_t function_id)
{
    int first, end;
    const struct walk_frame *found = NULL;
    walk_shown(stack, &first, &end);
    first = own_frame(stack, function_id, first, end);
    for (int i = first; i < end; i++) {
        const struct walk_frame *f = stack->frames[i];
        uint32_t n = map_number(&k->number_of, (uint64_t)f->address_id, 0);
        int is_kept = n < DEPTH_MAX && keeps(k, n);
        if (is_kept && (i == first || !f->function || strcmp(f->function, "main") == 0))
            return found;
        if (is_kept && !is_wrapper(f))
            return f;
        if (!is_kept && found)
            return found;
        found = is_kept && !found ? f : found;
    }
    return found;
}

int finding_keeper(struct rules *r, struct finding *f, const struct rule_line *line,
                   int (*is_kept)(const struct rules *r, int64_t site_id))
{
    struct keeper k = {.count = 0};
    struct walk *walk = NULL;
    struct walk_stack stack;
    struct site_rows rows;
    const struct walk_frame *frame = NULL;
    const int may_look = r->site_count <= SITES_MAX && !r->findings->leaves_events;
    int64_t stack_id = may_look && f->nth < KEEPERS ? stack_of_most(r, line, is_kept) : 0;
    if (!stack_id || walk_open(r->db, TREE_BOTH, &walk, r->err))
        return 0;
    list_addresses(r, walk, stack_id, &k);
    int rc = site_rows_open(r->db, columns, COLUMNS, &rows, r->err);
    while (rc == 0 && site_rows_next(&rows, r->err) == 1)
        add_stack(r, walk, &rows, &k);
    site_rows_close(&rows);
    if (walk_stack(walk, stack_id, &stack, r->err) == 0)
        frame = keeping_frame(&stack, &k, rule_query_amount(r, own_function, &line->site_id, 1, 0));
    if (frame) {
        f->has_keeper = 1;
        finding_say(f, " Most of it was for ");
        finding_code(f, frame->function, frame->file, frame->line);
        finding_say(f, ": little of what is allocated there for it is freed.");
    }
    map_close(&k.number_of);
    walk_close(walk);
    return frame != NULL;
}
