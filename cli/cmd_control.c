/* What is asked of a recording that goes on: mark, pause, resume. */
#include "cli.h"

#include "../profiler/outside/request.h"

#include <stdlib.h>
#include <string.h>

/* already: what to say where nothing changes by it; NULL: it always does. */
static int ask(const char *what, enum wire_wish wish, const char *text, const char *already)
{
    struct error err = {""};
    struct outside *o = NULL;
    enum wire_reply reply = WIRE_REPLY_DONE;
    const int pid = what[strspn(what, "0123456789")] ? 0 : atoi(what);
    int rc = outside_open(what, &o, &err);
    if (rc == 0)
        rc = request_ask(o, what, wish, pid, text, &reply, &err);
    outside_close(o);
    if (rc)
        return cli_fail(&err);
    if (reply == WIRE_REPLY_ALREADY && already)
        cli_note("%s: %s", what, already);
    return EXIT_OK;
}

int cmd_mark(const struct arguments *a)
{
    if (a->rest_count != 2)
        return cli_usage("mark: expected: memprof mark PID|FILE NAME");
    if (!*a->rest[1])
        return cli_usage("mark: the name is empty; name the mark");
    return ask(a->rest[0], WIRE_WISH_MARK, a->rest[1], NULL);
}

int cmd_pause(const struct arguments *a)
{
    if (a->rest_count != 1)
        return cli_usage("pause: expected: memprof pause PID|FILE");
    return ask(a->rest[0], WIRE_WISH_PAUSE, "", "it was paused already");
}

int cmd_resume(const struct arguments *a)
{
    if (a->rest_count != 1)
        return cli_usage("resume: expected: memprof resume PID|FILE");
    return ask(a->rest[0], WIRE_WISH_RESUME, "", "it was not paused");
}
