#include "policy_file.h"

#include "../profiler/collect/policy_parse.h"
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_file(const char *path, char *text, size_t *length, struct error *err)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return error_set(err, errno, "--policy %s: %s", path, strerror(errno));
    errno = 0;
    *length = fread(text, 1, POLICY_FILE_MAX + 1, f);
    int rc = ferror(f)                   ? error_set(err, errno, "--policy %s: %s", path, strerror(errno))
             : *length > POLICY_FILE_MAX ? error_set(err, EFBIG, "--policy %s: longer than 64 KiB", path)
                                         : 0;
    fclose(f);
    text[rc ? 0 : *length] = 0;
    return rc;
}

static void tell(void *arg, unsigned line, const char *what)
{
    cli_usage("%s:%u: %s", (const char *)arg, line, what);
}

int policy_file(const char *path, char **text, int *has_orders)
{
    struct policy policy;
    struct error err = {""};
    size_t length = 0;
    *text = xmalloc(POLICY_FILE_MAX + 2);
    int status = read_file(path, *text, &length, &err) ? cli_usage("%s", err.text) : 0;
    if (status == 0 && policy_parse(&policy, *text, length, 1, tell, (void *)(uintptr_t)path))
        status = EXIT_USAGE;
    if (status == 0) {
        *has_orders = policy_has_orders(&policy);
        policy_free(&policy);
        return 0;
    }
    free(*text);
    *text = NULL;
    return status;
}
