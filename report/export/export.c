#include "export.h"

#include <string.h>

const struct export_format export_formats[] = {
#define FORMAT(name, function, suffix, takes, text) {name, suffix, text, (takes), function},
#include "export.def"
#undef FORMAT
};
const int export_format_count = sizeof export_formats / sizeof *export_formats;

const struct export_format *export_find(const char *name)
{
    for (int i = 0; i < export_format_count; i++)
        if (strcmp(export_formats[i].name, name) == 0)
            return &export_formats[i];
    return NULL;
}
