#include "allocator.h"

#include "demangle.h"

#include <fnmatch.h>
#include <stddef.h>
#include <string.h>

enum { FAMILY_C, FAMILY_CXX, FAMILY_SCOPE, FAMILY_CRATE, FAMILY_HEADER, FAMILY_OWN };

static const struct {
    int how;
    const char *text;
} family[] = {
#define C(name)      {FAMILY_C, name},
#define CXX(pattern) {FAMILY_CXX, pattern},
#define SCOPE(name)  {FAMILY_SCOPE, name "::"},
#define CRATE(name)  {FAMILY_CRATE, name "::"},
#define HEADER(path) {FAMILY_HEADER, path},
#define OWN(pattern) {FAMILY_OWN, pattern},
#include "allocator.def"
#undef C
#undef CXX
#undef SCOPE
#undef CRATE
#undef HEADER
#undef OWN
};

/* v0 names, and the legacy scheme's, which is C++'s with a hash as the last part. What the linker's optimiser moved
 * between units has a suffix behind that. */
static int is_rust(const char *raw, size_t length)
{
    const char *suffix = memmem(raw, length, ".llvm.", 6);
    length = suffix ? (size_t)(suffix - raw) : length;
    return strncmp(raw, "_R", 2) == 0 ||
           (length > 23 && strncmp(raw + length - 20, "17h", 3) == 0 && raw[length - 1] == 'E');
}

static int is_crate(const char *path)
{
    for (size_t i = 0; i < sizeof family / sizeof *family; i++)
        if (family[i].how == FAMILY_CRATE && strncmp(path, family[i].text, strlen(family[i].text)) == 0)
            return 1;
    return 0;
}

/* "<alloc::vec::Vec<u8> as my::Trait>::f": an implementation is the trait's crate's, or the type's where that is a
 * library's trait. */
static int is_of_other_trait(const char *name)
{
    int depth = 0;
    for (const char *p = name; *name == '<' && *p; p++) {
        depth += *p == '<' ? 1 : *p == '>' && p[-1] != '-' ? -1 : 0;
        if (depth == 0)
            return 0;
        if (depth == 1 && strncmp(p, " as ", 4) == 0) {
            size_t word = strcspn(p + 4, " <>()[]{},&*=;:+");
            return word && strncmp(p + 4 + word, "::", 2) == 0 && !is_crate(p + 4);
        }
    }
    return 0;
}

/* As fnmatch, which takes its time: few names begin as a pattern does. */
static int is_like(const char *pattern, const char *name)
{
    size_t same = 0;
    while (pattern[same] && pattern[same] == name[same])
        same++;
    return strchr("*\\", pattern[same]) && fnmatch(pattern, name, 0) == 0;
}

/* Whether a row names the function. */
static int names(int how, const char *text, const char *raw, size_t length, const char *name, const char *scope)
{
    switch (how) {
    case FAMILY_C:
        return strncmp(text, raw, length) == 0 && text[length] == 0;
    case FAMILY_CXX:
        return scope && is_like(text, name);
    case FAMILY_OWN:
        return scope && is_like(text, scope);
    case FAMILY_SCOPE:
        return scope && !is_rust(raw, length) && strncmp(scope, text, strlen(text)) == 0;
    case FAMILY_HEADER:
        return 0;
    default:
        return scope && is_rust(raw, length) && strncmp(name + (*name == '<'), text, strlen(text)) == 0 &&
               !is_of_other_trait(name);
    }
}

/* "<u8 as alloc::vec::spec_from_elem::SpecFromElem>::from_elem": all that Rust lets others implement for a primitive
 * type or for a bare parameter has a trait or an argument of their own. So if no path in the brackets begins in another
 * crate, its libraries have written it. */
static int is_rust_library_impl(const char *name)
{
    static const char marks[] = " <>()[]{},&*=;:+";
    int depth = 0, is_inside = 0; /* is_inside: of a path, behind its first part */
    if (*name != '<')
        return 0;
    for (const char *p = name; *p;) {
        size_t word = strcspn(p, marks);
        if (word && !is_inside && strncmp(p + word, "::", 2) == 0 && !is_crate(p))
            return 0;
        const char *mark = p + word;
        depth += *mark == '<' ? 1 : *mark == '>' && !(word && mark[-1] == '-') ? -1 : 0; /* fn() -> u8 */
        if (depth == 0)
            return 1;
        is_inside = strncmp(mark, "::", 2) == 0;
        p = mark + (is_inside ? 2 : *mark != 0);
    }
    return 0;
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
        if (!(family[i].how == FAMILY_OWN && declared_file) &&
            names(family[i].how, family[i].text, raw_name, length, name, scope))
            return family[i].how != FAMILY_OWN;
    return scope && is_rust(raw_name, length) && is_rust_library_impl(name);
}
