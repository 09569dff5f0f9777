#include "cli.h"

#include "../common/units.h"
#include "../profiler/import/import.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One line on the terminal, rewritten; the message that follows clears it. */
static void show_progress(void *context, const char *what, int percent)
{
    (void)context;
    fprintf(stderr, "\rmemprof: %s, %d%% \x1b[K", what, percent);
    fflush(stderr);
}

int cmd_import(const struct arguments *a)
{
    struct error err = {""};
    struct import_result result;
    int on_terminal = isatty(STDERR_FILENO) && !a->given[OPTION_quiet];
    if (a->rest_count == 0)
        return cli_usage("import: no file given; expected: memprof import FILE [-o OUT.db]");
    if (a->rest_count > 1)
        return cli_usage("import: one file at a time, not also '%s'", a->rest[1]);
    char *output = output_name(a->given[OPTION_output] ? a->value[OPTION_output] : "out.db", &err);
    if (!output) {
        cli_fail(&err);
        return EXIT_USAGE;
    }
    struct import_options options = {
        .path = a->rest[0],
        .output = output,
        .with_source = a->given[OPTION_source],
        .progress = on_terminal ? show_progress : NULL,
    };
    int rc = import_file(&options, &result, &err);
    if (on_terminal)
        fputs("\r\x1b[K", stderr);
    if (rc == 0 && !a->given[OPTION_quiet]) {
        char events[UNITS_TEXT], size[UNITS_TEXT], peak[UNITS_TEXT], reserved[UNITS_TEXT];
        const int has_reserved = result.peak_reserved_bytes >= 0;
        cli_note("%s event%s of %u device%s written to %s (%s); peak %s active%s%s%s; 'memprof report %s' shows it",
                 units_count(events, (int64_t)result.event_count), result.event_count == 1 ? "" : "s", result.devices,
                 result.devices == 1 ? "" : "s", result.output, units_bytes(size, result.output_bytes),
                 units_bytes(peak, result.peak_bytes), has_reserved ? ", " : "",
                 has_reserved ? units_bytes(reserved, result.peak_reserved_bytes) : "", has_reserved ? " reserved" : "",
                 result.output);
        if (result.note)
            cli_note("%s", result.note);
    }
    free(result.note);
    free(result.output);
    free(output);
    return rc ? cli_fail_output(rc, &err) : EXIT_OK;
}
