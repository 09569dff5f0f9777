/* gcc leaves C++ functions local to a file without a linkage name. Where one was inlined, its entry's place among
 * namespaces, classes and functions says what it is called: "app::(anonymous namespace)::Pool::take",
 * "app::go(int)::$_0::operator()". */
#include "../../common/map.h"
#include "symbols_private.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX   256         /* nesting of entries: real ones stay below 50 */
#define ENTRIES_MAX (16u << 20) /* looked at, of all units */
#define CHAIN_MAX   16          /* an entry that refers to another one that does */
#define SCOPE_MAX   2048        /* bytes of a scope's name; what is longer gets no longer */

struct symbols_scopes {
    struct symbols_strings *strings;
    struct map units;         /* those that were looked at */
    struct map scope_of;      /* functions -> their scopes' names; "": the file's own */
    struct map copy_of;       /* functions -> the address of their own code, where there is any */
    struct text_map closures; /* scopes -> how many were in them */
    uint32_t entry_count;
};

struct symbols_scopes *symbols_scopes_open(struct symbols_strings *strings)
{
    struct symbols_scopes *s = xcalloc(1, sizeof *s);
    s->strings = strings;
    return s;
}

void symbols_scopes_close(struct symbols_scopes *s)
{
    if (!s)
        return;
    map_close(&s->units);
    map_close(&s->scope_of);
    map_close(&s->copy_of);
    text_map_close(&s->closures);
    free(s);
}

/* The entry that an instance or a definition is of. */
static Dwarf_Die declaration_of(Dwarf_Die die)
{
    static const unsigned refers[] = {DW_AT_abstract_origin, DW_AT_specification};
    for (int i = 0; i < CHAIN_MAX; i++) {
        Dwarf_Attribute attribute;
        Dwarf_Die next;
        if (!dwarf_attr(&die, refers[0], &attribute) && !dwarf_attr(&die, refers[1], &attribute))
            break;
        if (!dwarf_formref_die(&attribute, &next))
            break;
        die = next;
    }
    return die;
}

static uint64_t *slot_of(struct map *m, Dwarf_Die *die)
{
    return map_slot(m, dwarf_dieoffset(die), (uintptr_t)die->cu);
}

static uint64_t get(const struct map *m, Dwarf_Die *die)
{
    return map_get(m, dwarf_dieoffset(die), (uintptr_t)die->cu);
}

static const char *scope_of(const struct symbols_scopes *s, Dwarf_Die *declaration)
{
    return (const char *)(uintptr_t)get(&s->scope_of, declaration);
}

/* "app" and "Pool" -> "app::Pool". Its text is not to be in the frames of walk, which recurses. */
static __attribute__((noinline)) const char *join(struct symbols_scopes *s, const char *scope, const char *name,
                                                  const char *end)
{
    char text[SCOPE_MAX];
    int n = snprintf(text, sizeof text, "%s%s%s%s", scope, *scope ? "::" : "", name, end);
    return n > 0 && (size_t)n < sizeof text ? symbols_strings_keep(s->strings, text) : scope;
}

/* gcc 12's have no name, others' "<lambda(int)>". */
static int is_closure(Dwarf_Die *type)
{
    const char *name = dwarf_diename(type);
    Dwarf_Die child;
    if (name && *name)
        return strncmp(name, "<lambda(", 8) == 0;
    for (int rc = dwarf_child(type, &child); rc == 0; rc = dwarf_siblingof(&child, &child))
        if (dwarf_tag(&child) == DW_TAG_subprogram && (name = dwarf_diename(&child)) && strcmp(name, "operator()") == 0)
            return 1;
    return 0;
}

/* Closures by their number in the scope, as clang writes them: "$_0". A symbol would number those that take the same.
 */
static const char *scope_of_type(struct symbols_scopes *s, const char *scope, Dwarf_Die *type)
{
    const char *name = dwarf_diename(type);
    char closure[32];
    if (is_closure(type)) {
        snprintf(closure, sizeof closure, "$_%u", (*text_map_slot(&s->closures, scope, strlen(scope)))++);
        name = closure;
    }
    return join(s, scope, name && *name ? name : "{unnamed type}", "");
}

static const char *linkage_name(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    return dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) ? dwarf_formstring(&attribute) : NULL;
}

/* What the types within a function are in. */
static const char *scope_of_function(struct symbols_scopes *s, const char *scope, Dwarf_Die *die)
{
    const char *raw = linkage_name(die), *name = dwarf_diename(die), *full;
    if (raw && symbols_strings_name(s->strings, raw, &full) && full)
        return join(s, "", full, "");
    return name && *name ? join(s, scope, name, strcmp(name, "main") || *scope ? "()" : "") : scope;
}

static void take_function(struct symbols_scopes *s, const char *scope, Dwarf_Die *die)
{
    Dwarf_Addr begin;
    Dwarf_Die declaration = declaration_of(*die);
    uint64_t *slot = slot_of(&s->scope_of, &declaration);
    if (!*slot)
        *slot = (uintptr_t)scope;
    if (dwarf_entrypc(die, &begin) == 0 && begin) {
        slot = slot_of(&s->copy_of, &declaration);
        if (!*slot)
            *slot = begin;
    }
}

static void walk(struct symbols_scopes *s, Dwarf_Die *parent, const char *scope, int depth)
{
    Dwarf_Die child, declaration;
    Dwarf_Attribute attribute;
    if (depth > DEPTH_MAX || dwarf_child(parent, &child))
        return;
    do {
        const char *inner = scope, *name;
        switch (dwarf_tag(&child)) {
        case DW_TAG_namespace:
            name = dwarf_diename(&child);
            inner = join(s, scope, name && *name ? name : "(anonymous namespace)", "");
            break;
        case DW_TAG_class_type:
        case DW_TAG_structure_type:
        case DW_TAG_union_type:
            if (!dwarf_haschildren(&child))
                continue;
            inner = scope_of_type(s, scope, &child);
            break;
        case DW_TAG_subprogram:
            take_function(s, scope, &child);
            if (!dwarf_haschildren(&child) || dwarf_attr(&child, DW_AT_abstract_origin, &attribute))
                continue; /* what is in an instance is in what it is of */
            declaration = declaration_of(child);
            inner = scope_of_function(s, scope_of(s, &declaration), &child);
            break;
        case DW_TAG_lexical_block:
            break;
        default:
            continue;
        }
        walk(s, &child, inner, depth + 1);
    } while (++s->entry_count < ENTRIES_MAX && dwarf_siblingof(&child, &child) == 0);
}

static void look_at_unit(struct symbols_scopes *s, Dwarf_Die *die)
{
    Dwarf_Die unit;
    if (!dwarf_diecu(die, &unit, NULL, NULL))
        return;
    uint64_t *seen = map_slot(&s->units, (uintptr_t)die->cu, 0);
    if (*seen)
        return;
    *seen = 1;
    walk(s, &unit, symbols_strings_keep(s->strings, ""), 0);
}

const char *symbols_scopes_name(struct symbols_scopes *s, Dwarf_Die *function, const char *name, uint64_t *copy)
{
    Dwarf_Die declaration = declaration_of(*function);
    look_at_unit(s, function); /* where the function's own code would be */
    look_at_unit(s, &declaration);
    const char *scope = scope_of(s, &declaration);
    *copy = get(&s->copy_of, &declaration);
    return scope && *scope ? join(s, scope, name, "") : NULL;
}
