#include "allocator.h"

#include <fnmatch.h>
#include <stddef.h>
#include <string.h>

static const char *const c_names[] = {
#define C(name) name,
#define CXX(pattern)
#include "allocator.def"
#undef C
#undef CXX
};

static const char *const patterns[] = {
#define C(name)
#define CXX(pattern) pattern,
#include "allocator.def"
#undef C
#undef CXX
};

int allocator_is_function(const char *raw_name, const char *name)
{
    size_t length = raw_name ? strcspn(raw_name, "@") : 0;
    for (size_t i = 0; length && i < sizeof c_names / sizeof *c_names; i++)
        if (strncmp(c_names[i], raw_name, length) == 0 && c_names[i][length] == 0)
            return 1;
    /* only a mangled name can be one of C++ or Rust */
    if (!name || !raw_name || strcmp(raw_name, name) == 0)
        return 0;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (fnmatch(patterns[i], name, 0) == 0)
            return 1;
    return 0;
}
