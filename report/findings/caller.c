#include "../query/rows.h"
#include "../query/walk.h"
#include "../query/wrapper.h"
#include "rules.h"

#include <string.h>

/* The nearest one that is no wrapper; NULL: the innermost is none itself, or no other is known. */
static const struct walk_frame *caller_of(const struct walk_stack *stack)
{
    int first, end;
    walk_shown(stack, &first, &end);
    for (int i = first; i < end; i++) {
        const struct walk_frame *f = stack->frames[i];
        const struct row row = {.function = (char *)f->function, .plain_name = (char *)f->plain_name};
        if (f->function && !wrapper_is_named(&row))
            return i > first && strcmp(f->function, "main") != 0 ? f : NULL;
    }
    return NULL;
}

void finding_caller(struct rules *r, struct finding *f, int64_t site_id)
{
    struct walk *walk = NULL;
    struct walk_stack stack;
    int64_t stack_id = rule_query_amount(r, "SELECT stack_id FROM site WHERE site_id = ?", &site_id, 1, 0);
    if (stack_id && walk_open(r->db, TREE_BOTH, &walk, r->err) == 0 &&
        walk_stack(walk, stack_id, &stack, r->err) == 0) {
        const struct walk_frame *caller = caller_of(&stack);
        if (caller) {
            finding_say(f, ", most for ");
            finding_code(f, caller->function, caller->file, caller->line);
            finding_say(f, ",");
        }
    }
    walk_close(walk);
}
