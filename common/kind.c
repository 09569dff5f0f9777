#include "kind.h"

const char *kind_name(unsigned kind)
{
    static const char *const names[] = {
#define X(name, text) #name,
#include "kind.def"
#undef X
        "all",
    };
    return kind <= KIND_all ? names[kind] : "?";
}
