#include "allocator.h"

#include "demangle.h"

#include <fnmatch.h>
#include <stddef.h>
#include <string.h>

enum { FAMILY_C, FAMILY_CXX, FAMILY_SCOPE, FAMILY_CRATE, FAMILY_HEADER };

static const struct {
    int how;
    const char *text;
} family[] = {
#define C(name)      {FAMILY_C, name},
#define CXX(pattern) {FAMILY_CXX, pattern},
#define SCOPE(name)  {FAMILY_SCOPE, name "::"},
#define CRATE(name)  {FAMILY_CRATE, name "::"},
#define HEADER(path) {FAMILY_HEADER, path},
#include "allocator.def"
#undef C
#undef CXX
#undef SCOPE
#undef CRATE
#undef HEADER
};

/* v0 names, and the legacy scheme's, which is C++'s with a hash as the last part. */
static int is_rust(const char *raw, size_t length)
{
    return strncmp(raw, "_R", 2) == 0 ||
           (length > 23 && strncmp(raw + length - 20, "17h", 3) == 0 && raw[length - 1] == 'E');
}

static int is_member(int how, const char *text, const char *raw, size_t length, const char *name, const char *scope)
{
    switch (how) {
    case FAMILY_C:
        return strncmp(text, raw, length) == 0 && text[length] == 0;
    case FAMILY_CXX:
        return scope && fnmatch(text, name, 0) == 0;
    case FAMILY_SCOPE:
        return scope && !is_rust(raw, length) && strncmp(scope, text, strlen(text)) == 0;
    case FAMILY_HEADER:
        return 0;
    default:
        return scope && is_rust(raw, length) && strncmp(name + (*name == '<'), text, strlen(text)) == 0;
    }
}

static int is_in_header(const char *declared_file)
{
    for (size_t i = 0; declared_file && i < sizeof family / sizeof *family; i++)
        if (family[i].how == FAMILY_HEADER && fnmatch(family[i].text, declared_file, 0) == 0)
            return 1;
    return 0;
}

int allocator_is_function(const char *raw_name, const char *name, const char *declared_file)
{
    size_t length = raw_name ? strcspn(raw_name, "@") : 0;
    if (!length)
        return 0;
    if (is_in_header(declared_file))
        return 1;
    /* only a mangled name can be one of C++ or Rust */
    const char *scope = name && strcmp(raw_name, name) ? demangle_scope(name) : NULL;
    for (size_t i = 0; i < sizeof family / sizeof *family; i++)
        if (is_member(family[i].how, family[i].text, raw_name, length, name, scope))
            return 1;
    return 0;
}
