#include "cli.h"

#include "../common/buf.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A value from outside never adds directories: its slashes and control characters become '_'. */
static void add_value(struct buf *out, const char *value)
{
    for (const char *p = value; *p; p++)
        buf_putc(out, *p == '/' || (unsigned char)*p < 0x20 || *p == 0x7f ? '_' : *p);
}

/* Replaces one %-sequence at *pattern and moves past it. */
static int add_sequence(struct buf *out, const char **pattern, struct error *err)
{
    const char *p = *pattern + 1;
    char text[HOST_NAME_MAX + 1], name[128];
    *pattern += 2;
    switch (*p) {
    case '%':
        buf_putc(out, '%');
        return 0;
    case 'p':
        buf_printf(out, "%ld", (long)getpid());
        return 0;
    case 'h':
        if (gethostname(text, sizeof text))
            snprintf(text, sizeof text, "localhost");
        text[sizeof text - 1] = 0;
        add_value(out, text);
        return 0;
    case 'q': {
        const char *end = p[1] == '{' ? strchr(p, '}') : NULL;
        if (!end || end == p + 2 || end - p - 2 >= (long)sizeof name)
            return error_set(err, EINVAL, "-o: '%%q' needs a name in braces, such as %%q{RANK}");
        snprintf(name, sizeof name, "%.*s", (int)(end - p - 2), p + 2);
        const char *value = getenv(name);
        if (!value || !*value)
            return error_set(err, EINVAL, "-o: %%q{%s}: the environment variable %s is not set", name, name);
        add_value(out, value);
        *pattern = end + 1;
        return 0;
    }
    case 0:
        return error_set(err, EINVAL, "-o: a lone %% at the end; write %%%% for a %%");
    default:
        return error_set(err, EINVAL, "-o: unknown '%%%c'; known are %%p, %%h, %%q{NAME} and %%%%", *p);
    }
}

/* The part between slashes that begins at start: when a value made it "." or "..", it would leave its directory. */
static void keep_inside(struct buf *out, size_t start, int replaced)
{
    size_t length = out->length - start;
    if (replaced && length && length <= 2 && strspn(out->data + start, ".") == length)
        memset(out->data + start, '_', length);
}

char *output_name(const char *pattern, struct error *err)
{
    struct buf out = BUF(PATH_MAX - 1);
    size_t part = 0;
    int replaced = 0, rc = 0;
    const char *p = pattern;
    if (!*p)
        rc = error_set(err, EINVAL, "-o: empty name");
    while (rc == 0 && *p) {
        if (*p == '%') {
            replaced |= p[1] != '%';
            rc = add_sequence(&out, &p, err);
            continue;
        }
        if (*p == '/') {
            keep_inside(&out, part, replaced);
            part = out.length + 1;
            replaced = 0;
        }
        buf_putc(&out, *p++);
    }
    if (rc == 0)
        keep_inside(&out, part, replaced);
    if (rc == 0 && (out.failed || !out.data))
        rc = error_set(err, ENAMETOOLONG, "-o: the name is too long");
    if (rc) {
        buf_free(&out);
        return NULL;
    }
    return out.data;
}

/* A whole number; -1: it is none. */
static int64_t rank_of(const char *name)
{
    const char *value = getenv(name);
    char *end;
    if (!value || *value < '0' || *value > '9')
        return -1;
    errno = 0;
    long long rank = strtoll(value, &end, 10);
    return errno || *end ? -1 : rank;
}

int output_rank(const char *pattern, char name[OUTPUT_RANK_NAME], int64_t *rank)
{
    /* torchrun; Open MPI; PMIx; MPICH, Intel MPI; MVAPICH2; Slurm */
    static const char *const usual[] = {"RANK",     "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                        "PMI_RANK", "MV2_COMM_WORLD_RANK",  "SLURM_PROCID"};
    for (const char *p = pattern; (p = strchr(p, '%')); p += p[1] ? 2 : 1) {
        const char *end = p[1] == 'q' && p[2] == '{' ? strchr(p, '}') : NULL;
        if (!end || end - p - 3 <= 0 || end - p - 3 >= OUTPUT_RANK_NAME)
            continue;
        snprintf(name, OUTPUT_RANK_NAME, "%.*s", (int)(end - p - 3), p + 3);
        if ((strcasestr(name, "rank") || strcasestr(name, "procid")) && (*rank = rank_of(name)) >= 0)
            return 1;
    }
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        snprintf(name, OUTPUT_RANK_NAME, "%s", usual[i]);
        if ((*rank = rank_of(name)) >= 0)
            return 1;
    }
    return 0;
}
