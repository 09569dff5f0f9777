#include "cli.h"

#include "../common/buf.h"
#include "../common/text.h"

#include <errno.h>
#include <stdarg.h>

static void print_message(const char *text)
{
    struct buf clean = BUF(1 << 16);
    text_clean(&clean, text);
    fprintf(stderr, "memprof: %s\n", buf_text(&clean));
    buf_free(&clean);
}

static void print_formatted(const char *format, va_list args)
{
    char text[4096];
    vsnprintf(text, sizeof text, format, args);
    print_message(text);
}

int cli_fail(const struct error *err)
{
    print_message(err->text);
    return EXIT_FAILED;
}

int cli_fail_output(int rc, const struct error *err)
{
    cli_fail(err);
    return rc == -EEXIST ? EXIT_USAGE : EXIT_FAILED;
}

int cli_usage(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_formatted(format, args);
    va_end(args);
    return EXIT_USAGE;
}

void cli_note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_formatted(format, args);
    va_end(args);
}
