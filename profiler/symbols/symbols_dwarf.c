#include "symbols_private.h"

#include "../../common/array.h"
#include "../../common/search.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#define UNITS_MAX     (1u << 20)
#define RANGES_MAX    (32u << 20) /* of all units */
#define FUNCTIONS_MAX (4u << 20)  /* of one unit */
#define SCOPES_MAX    (1u << 20)  /* of one function */
#define DEPTH_MAX     512         /* nesting of entries: real ones stay below 50 */

struct range {
    uint64_t start, end;
    uint64_t reach; /* largest end of this and all before it, once sorted */
    uint32_t owner; /* index of the unit, function or scope */
};

struct ranges {
    struct range *items;
    size_t count, capacity;
};

struct unit {
    Dwarf_Die die;        /* of the unit with the code's addresses and lines */
    Dwarf_Die content;    /* of the unit with the functions: the split unit where there is one */
    struct ranges ranges; /* of functions */
    Dwarf_Die *functions;
    size_t function_count, function_capacity;
    uint8_t is_opened;
    uint8_t is_deep; /* every entry was looked at */
};

/* The tree of inlined calls of one function, flat and in order of the entries. */
struct scope {
    Dwarf_Die die;
    uint32_t parent; /* scope, 0: the function itself */
    uint32_t first_range, range_count;
};

struct symbols_dwarf {
    Dwarf *dwarf;
    struct symbols_strings *strings;
    struct symbols_scopes *functions; /* NULL: not asked for yet */
    struct unit *units;
    size_t unit_count;
    struct ranges ranges; /* of units */
    uint32_t *rangeless;  /* units that do not say where their code is */
    size_t rangeless_count, rangeless_capacity;
    uint8_t rangeless_done;
    uint8_t is_split;
    /* the function looked at last */
    void *scope_function;
    struct scope *scopes;
    size_t scope_count, scope_capacity;
    struct ranges scope_ranges;
};

/* --- ranges ------------------------------------------------------------------------------------------------------ */

static void ranges_add(struct ranges *r, uint64_t start, uint64_t end, uint32_t owner)
{
    if (start >= end || r->count >= RANGES_MAX)
        return;
    *ARRAY_ADD(r->items, r->count, r->capacity) = (struct range){start, end, 0, owner};
}

/* Adds what the entry covers. Returns how many ranges. */
static uint32_t ranges_add_die(struct ranges *r, Dwarf_Die *die, uint32_t owner)
{
    Dwarf_Addr base, start, end;
    ptrdiff_t offset = 0;
    size_t before = r->count;
    while (r->count < RANGES_MAX && (offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0)
        ranges_add(r, start, end, owner);
    return (uint32_t)(r->count - before);
}

static int by_start(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->owner < y->owner ? -1 : x->owner > y->owner;
}

static void ranges_sort(struct ranges *r)
{
    if (r->count)
        qsort(r->items, r->count, sizeof *r->items, by_start);
    uint64_t reach = 0;
    for (size_t i = 0; i < r->count; i++) {
        if (r->items[i].end > reach)
            reach = r->items[i].end;
        r->items[i].reach = reach;
    }
}

/* The index just after the last range that begins at or before the address. */
static size_t ranges_after(const struct ranges *r, uint64_t address)
{
    const size_t low = SEARCH_FIRST(r->count, i, r->items[i].start <= address);
    return low;
}

/* --- units ------------------------------------------------------------------------------------------------------- */

static void index_units(struct symbols_dwarf *d)
{
    size_t capacity = 0;
    Dwarf_CU *cu = NULL;
    Dwarf_Half version;
    uint8_t type;
    Dwarf_Die die;
    d->unit_count = 0;
    while (d->unit_count < UNITS_MAX && dwarf_get_units(d->dwarf, cu, &cu, &version, &type, &die, NULL) == 0) {
        if (type != DW_UT_compile && type != DW_UT_skeleton)
            continue;
        if (dwarf_tag(&die) != DW_TAG_compile_unit && dwarf_tag(&die) != DW_TAG_skeleton_unit)
            continue;
        ARRAY_ROOM(d->units, d->unit_count + 1ul, capacity);
        struct unit *u = &d->units[d->unit_count];
        *u = (struct unit){.die = die, .content = die};
        if (ranges_add_die(&d->ranges, &die, (uint32_t)d->unit_count) == 0) {
            *ARRAY_ADD(d->rangeless, d->rangeless_count, d->rangeless_capacity) = (uint32_t)d->unit_count;
        }
        d->unit_count++;
    }
    ranges_sort(&d->ranges);
}

/* Units without addresses of their own: their line tables know. Costs the parsing of each, so only after a miss. */
static void index_rangeless(struct symbols_dwarf *d)
{
    d->rangeless_done = 1;
    if (!d->rangeless_count)
        return;
    for (size_t i = 0; i < d->rangeless_count; i++) {
        Dwarf_Lines *lines;
        size_t count;
        if (dwarf_getsrclines(&d->units[d->rangeless[i]].die, &lines, &count))
            continue;
        Dwarf_Addr start = 0, address;
        bool is_end, is_open = false;
        for (size_t n = 0; n < count; n++) {
            Dwarf_Line *line = dwarf_onesrcline(lines, n);
            if (!line || dwarf_lineaddr(line, &address) || dwarf_lineendsequence(line, &is_end))
                break;
            if (!is_open)
                start = address;
            if (is_end)
                ranges_add(&d->ranges, start, address, d->rangeless[i]);
            is_open = !is_end;
        }
    }
    ranges_sort(&d->ranges);
}

static void unit_add_function(struct unit *u, Dwarf_Die *die)
{
    if (u->function_count >= FUNCTIONS_MAX || ranges_add_die(&u->ranges, die, (uint32_t)u->function_count) == 0)
        return;
    *ARRAY_ADD(u->functions, u->function_count, u->function_capacity) = *die;
}

static int may_hold_functions(int tag, int deep)
{
    if (tag == DW_TAG_namespace || tag == DW_TAG_module)
        return 1;
    return deep && (tag == DW_TAG_class_type || tag == DW_TAG_structure_type || tag == DW_TAG_union_type ||
                    tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block || tag == DW_TAG_inlined_subroutine ||
                    tag == DW_TAG_interface_type);
}

static void walk_functions(struct unit *u, Dwarf_Die *parent, int deep, int depth)
{
    Dwarf_Die child;
    if (depth > DEPTH_MAX || dwarf_child(parent, &child))
        return;
    do {
        int tag = dwarf_tag(&child);
        if (tag == DW_TAG_subprogram)
            unit_add_function(u, &child);
        if (may_hold_functions(tag, deep) && dwarf_haschildren(&child))
            walk_functions(u, &child, deep, depth + 1);
    } while (u->function_count < FUNCTIONS_MAX && dwarf_siblingof(&child, &child) == 0);
}

/* Functions are nearly always children of the unit or of a namespace; a deep walk, which also finds those inside types
 * and functions, has to read every entry. */
static void unit_open(struct symbols_dwarf *d, struct unit *u, int deep)
{
    if (!u->is_opened) {
        Dwarf_Half version;
        uint8_t type;
        Dwarf_Die cu_die, sub_die;
        if (dwarf_cu_info(u->die.cu, &version, &type, &cu_die, &sub_die, NULL, NULL, NULL) == 0 &&
            type == DW_UT_skeleton) {
            d->is_split = 1;
            if (sub_die.cu)
                u->content = sub_die;
        }
    }
    u->ranges.count = 0;
    u->function_count = 0;
    u->is_opened = 1;
    u->is_deep = (uint8_t)deep;
    d->scope_function = NULL;
    walk_functions(u, &u->content, deep, 0);
    ranges_sort(&u->ranges);
}

/* Of several functions that claim the address (folded identical ones) the first in the file. */
static Dwarf_Die *unit_find(const struct unit *u, uint64_t address)
{
    uint32_t best = UINT32_MAX;
    for (size_t i = ranges_after(&u->ranges, address); i-- > 0 && u->ranges.items[i].reach > address;)
        if (address < u->ranges.items[i].end && u->ranges.items[i].owner < best)
            best = u->ranges.items[i].owner;
    return best == UINT32_MAX ? NULL : &u->functions[best];
}

static Dwarf_Die *find_in_units(struct symbols_dwarf *d, uint64_t address, int deep, struct unit **unit)
{
    for (size_t i = ranges_after(&d->ranges, address); i-- > 0 && d->ranges.items[i].reach > address;) {
        if (address >= d->ranges.items[i].end)
            continue;
        struct unit *u = &d->units[d->ranges.items[i].owner];
        if (!*unit)
            *unit = u;
        if (!u->is_opened || (deep && !u->is_deep))
            unit_open(d, u, deep);
        Dwarf_Die *function = unit_find(u, address);
        if (function) {
            *unit = u;
            return function;
        }
    }
    return NULL;
}

/* --- scopes of one function -------------------------------------------------------------------------------------- */

static void walk_scopes(struct symbols_dwarf *d, Dwarf_Die *parent, uint32_t parent_scope, int depth)
{
    Dwarf_Die child;
    if (depth > DEPTH_MAX || dwarf_child(parent, &child))
        return;
    do {
        int tag = dwarf_tag(&child);
        uint32_t scope = parent_scope;
        if (tag == DW_TAG_inlined_subroutine) {
            ARRAY_ROOM(d->scopes, d->scope_count + 1ul, d->scope_capacity);
            scope = (uint32_t)d->scope_count++;
            struct scope *s = &d->scopes[scope];
            *s = (struct scope){.die = child, .parent = parent_scope, .first_range = (uint32_t)d->scope_ranges.count};
            s->range_count = ranges_add_die(&d->scope_ranges, &child, scope);
        } else if (tag != DW_TAG_lexical_block && tag != DW_TAG_with_stmt && tag != DW_TAG_catch_block &&
                   tag != DW_TAG_try_block) {
            continue;
        }
        if (dwarf_haschildren(&child))
            walk_scopes(d, &child, scope, depth + 1);
    } while (d->scope_count < SCOPES_MAX && dwarf_siblingof(&child, &child) == 0);
}

static void open_function(struct symbols_dwarf *d, Dwarf_Die *function)
{
    if (d->scope_function == function->addr)
        return;
    d->scope_function = function->addr;
    d->scope_ranges.count = 0;
    d->scope_count = 1; /* 0: the function */
    ARRAY_ROOM(d->scopes, 1, d->scope_capacity);
    d->scopes[0] = (struct scope){.die = *function};
    walk_scopes(d, function, 0, 0);
}

static int scope_covers(const struct symbols_dwarf *d, const struct scope *s, uint64_t address)
{
    for (uint32_t i = 0; i < s->range_count; i++) {
        const struct range *r = &d->scope_ranges.items[s->first_range + i];
        if (address >= r->start && address < r->end)
            return 1;
    }
    return 0;
}

/* --- names and positions ----------------------------------------------------------------------------------------- */

static int unsigned_of(Dwarf_Die *die, unsigned name, int integrate, Dwarf_Word *value)
{
    Dwarf_Attribute attribute;
    return (integrate ? dwarf_attr_integrate(die, name, &attribute) : dwarf_attr(die, name, &attribute)) &&
           dwarf_formudata(&attribute, value) == 0;
}

static int small_int(Dwarf_Word value)
{
    return value > 0 && value <= INT32_MAX ? (int)value : 0;
}

static const char *directory_of(Dwarf_Die *unit)
{
    Dwarf_Attribute attribute;
    return dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
}

/* The path of file number index in the table of the unit that die is in. */
static const char *file_of(struct symbols_dwarf *d, Dwarf_CU *cu, Dwarf_Word index)
{
    Dwarf_Die unit;
    Dwarf_Half version;
    uint8_t type;
    Dwarf_Files *files;
    size_t count;
    if (dwarf_cu_info(cu, &version, &type, &unit, NULL, NULL, NULL, NULL))
        return NULL;
    if (dwarf_getsrcfiles(&unit, &files, &count) || index >= count || (index == 0 && version < 5))
        return NULL;
    return symbols_strings_path(d->strings, directory_of(&unit), dwarf_filesrc(files, index, NULL, NULL));
}

static void name_frame(struct symbols_dwarf *d, Dwarf_Die *die, struct symbols_frame *frame)
{
    Dwarf_Attribute attribute;
    const char *raw = NULL;
    if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) ||
        dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
        raw = dwarf_formstring(&attribute);
    if (!raw || !*raw)
        raw = dwarf_diename(die);
    if (raw && strncmp(raw, "__GI_", 5) == 0 && raw[5]) /* how glibc calls itself */
        raw += 5;
    frame->raw_name = symbols_strings_name(d->strings, raw, &frame->name);
    Dwarf_Word value;
    if (unsigned_of(die, DW_AT_decl_line, 1, &value))
        frame->declared_line = small_int(value);
    if (dwarf_attr_integrate(die, DW_AT_decl_file, &attribute) && dwarf_formudata(&attribute, &value) == 0)
        frame->declared_file = file_of(d, attribute.cu, value);
}

/* The position of the call that was inlined. */
static void position_of_call(struct symbols_dwarf *d, Dwarf_Die *die, struct symbols_frame *frame)
{
    Dwarf_Word value;
    if (unsigned_of(die, DW_AT_call_file, 0, &value))
        frame->file = file_of(d, die->cu, value);
    if (unsigned_of(die, DW_AT_call_line, 0, &value))
        frame->line = small_int(value);
    if (unsigned_of(die, DW_AT_call_column, 0, &value))
        frame->column = small_int(value);
}

static void position_of_address(struct symbols_dwarf *d, struct unit *u, uint64_t address, struct symbols_frame *frame)
{
    Dwarf_Line *line = dwarf_getsrc_die(&u->die, address);
    if (!line)
        return;
    frame->file = symbols_strings_path(d->strings, directory_of(&u->die), dwarf_linesrc(line, NULL, NULL));
    if (!frame->file || dwarf_lineno(line, &frame->line) || frame->line < 0)
        frame->line = 0;
    if (dwarf_linecol(line, &frame->column) || frame->column < 0)
        frame->column = 0;
}

/* Languages whose symbols tell more than their local functions' plain names do. */
static int is_mangled_language(struct unit *u)
{
    switch (dwarf_srclang(&u->content)) {
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
    case DW_LANG_Rust:
    case DW_LANG_D:
        return 1;
    default:
        return 0;
    }
}

/* Of a function that was inlined and has no name but its own: by what it is in. Returns where its symbol may be. */
static uint64_t name_by_scope(struct symbols_dwarf *d, Dwarf_Die *die, struct symbols_frame *frame)
{
    Dwarf_Attribute attribute;
    uint64_t copy;
    if (!frame->raw_name || dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute))
        return 0;
    if (!d->functions)
        d->functions = symbols_scopes_open(d->strings);
    const char *name = symbols_scopes_name(d->functions, die, frame->raw_name, &copy);
    if (name)
        frame->name = name;
    return copy;
}

int symbols_dwarf_lookup(struct symbols_dwarf *d, uint64_t address, struct symbols_frame *frames,
                         uint64_t symbol_at[SYMBOLS_INLINE_MAX])
{
    symbol_at[0] = 0;
    struct unit *unit = NULL;
    Dwarf_Die *function = find_in_units(d, address, 0, &unit);
    if (!function && unit)
        function = find_in_units(d, address, 1, &unit);
    if (!function && !unit && d->rangeless_count) {
        if (!d->rangeless_done)
            index_rangeless(d);
        function = find_in_units(d, address, 1, &unit);
    }
    if (!unit)
        return 0;
    memset(frames, 0, sizeof *frames);
    if (!function) {
        position_of_address(d, unit, address, frames);
        symbol_at[0] = address;
        return frames->line > 0;
    }
    open_function(d, function);
    uint32_t chain[SYMBOLS_INLINE_MAX];
    int depth = 0;
    chain[depth++] = 0;
    for (size_t i = 1; i < d->scope_count && depth < SYMBOLS_INLINE_MAX; i++)
        if (d->scopes[i].parent == chain[depth - 1] && scope_covers(d, &d->scopes[i], address))
            chain[depth++] = (uint32_t)i;
    memset(frames, 0, (size_t)depth * sizeof *frames);
    for (int i = 0; i < depth; i++) {
        struct scope *scope = &d->scopes[chain[depth - 1 - i]];
        name_frame(d, &scope->die, &frames[i]);
        frames[i].is_inline = i + 1 < depth;
        symbol_at[i] = i + 1 < depth && is_mangled_language(unit) ? name_by_scope(d, &scope->die, &frames[i]) : 0;
        if (i + 1 < depth)
            position_of_call(d, &scope->die, &frames[i + 1]);
    }
    position_of_address(d, unit, address, &frames[0]);
    const char *raw = frames[depth - 1].raw_name;
    if (!raw || (strncmp(raw, "_Z", 2) && strncmp(raw, "_R", 2) && is_mangled_language(unit)))
        symbol_at[depth - 1] = address;
    return depth;
}

/* --- open and close ---------------------------------------------------------------------------------------------- */

struct symbols_dwarf *symbols_dwarf_open(Dwarf *dwarf, struct symbols_strings *strings)
{
    struct symbols_dwarf *d = xcalloc(1, sizeof *d);
    d->dwarf = dwarf;
    d->strings = strings;
    index_units(d);
    return d;
}

void symbols_dwarf_close(struct symbols_dwarf *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->unit_count; i++) {
        free(d->units[i].ranges.items);
        free(d->units[i].functions);
    }
    free(d->units);
    free(d->ranges.items);
    free(d->rangeless);
    free(d->scopes);
    free(d->scope_ranges.items);
    symbols_scopes_close(d->functions);
    free(d);
}

int symbols_dwarf_is_empty(const struct symbols_dwarf *d)
{
    return d->unit_count == 0;
}

int symbols_dwarf_is_split(const struct symbols_dwarf *d)
{
    return d->is_split;
}
