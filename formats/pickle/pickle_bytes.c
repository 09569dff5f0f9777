#include "pickle_private.h"

#include <errno.h>
#include <string.h>

int pickle_fill(struct pickle *p)
{
    size_t kept = p->end - p->next;
    memmove(p->buffer, p->buffer + p->next, kept);
    p->buffer_offset += p->next;
    p->next = 0;
    p->end = kept;
    long got = p->user.read(p->user.context, p->buffer + kept, PICKLE_BUFFER_BYTES - kept);
    if (got <= 0) {
        p->read_error = (int)got;
        return -1;
    }
    p->end += (size_t)got;
    return 0;
}

uint64_t pickle_offset(const struct pickle *p)
{
    return p->buffer_offset + p->next;
}

int pickle_skip(struct pickle *p, uint64_t length, struct error *err)
{
    while (length) {
        size_t part = length < PICKLE_BUFFER_BYTES ? length : PICKLE_BUFFER_BYTES;
        if (!pickle_take(p, part))
            return pickle_truncated(p, err);
        length -= part;
    }
    return 0;
}

uint64_t pickle_rest(struct pickle *p)
{
    uint64_t bytes = p->end - p->next;
    p->next = p->end;
    while (bytes < PICKLE_REST_MAX && pickle_fill(p) == 0) {
        bytes += p->end - p->next;
        p->next = p->end;
    }
    return bytes < PICKLE_REST_MAX ? bytes : PICKLE_REST_MAX;
}

int pickle_damaged(struct pickle *p, struct error *err, const char *what)
{
    return error_set(err, EBADMSG, "byte %llu: %s", (unsigned long long)p->op_offset, what);
}

int pickle_too_much(struct pickle *p, struct error *err, const char *what)
{
    return error_set(err, E2BIG, "byte %llu: %s", (unsigned long long)p->op_offset, what);
}

int pickle_truncated(struct pickle *p, struct error *err)
{
    if (p->read_error)
        return error_set(err, -p->read_error, "reading: %s", strerror(-p->read_error));
    return error_set(err, EBADMSG, "ends at byte %llu, before the pickle does: it was cut",
                     (unsigned long long)(p->buffer_offset + p->end));
}
