/*
 * remote.h: another process's memory and the objects that its dynamic loader has loaded, by what the loader keeps for
 * debuggers (r_debug). Everything read there may be anything.
 */
#ifndef MEMPROF_REMOTE_H
#define MEMPROF_REMOTE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct remote_object {
    uint64_t bias, dynamic;
    uint64_t start, end; /* of all its segments; 0: not known */
    uint64_t code_end;   /* of its executable segment's last byte, not rounded; 0: there is none */
    uint64_t symbols, strings, gnu_hash, versions;
    char name[512]; /* as the loader calls it; "": the program */
};

struct remote {
    pid_t pid;
    uint64_t debug; /* its r_debug */
    struct remote_object *objects;
    size_t count;
};

/* 1, or 0: it could not be read whole; errno says why. */
int remote_read(pid_t pid, uint64_t address, void *to, size_t bytes);
/* Up to room - 1 bytes of a string. 0: it could not be read. */
int remote_string(pid_t pid, uint64_t address, char *to, size_t room);

/* Reads the list of objects. 0; -EPERM: its memory may not be read; -ENOENT: there is no such list, as in a program
 * without a dynamic loader. Closed by remote_close, also then. */
int remote_open(struct remote *r, pid_t pid);
void remote_close(struct remote *r);

/* Whether the loader's list is whole just now, and no object is being added or deleted. */
int remote_is_consistent(const struct remote *r);
/* The address of the function that an object defines, in its default version, and its size; 0: it defines none. */
uint64_t remote_symbol(const struct remote *r, const struct remote_object *o, const char *name, uint64_t *size_bytes);
/* The first object that defines it; NULL: none. */
const struct remote_object *remote_owner(const struct remote *r, const char *name);

/* Of the page that its code ends in. */
static inline uint64_t remote_code_page_end(const struct remote_object *o)
{
    return (o->code_end + 4095) & ~4095ul;
}

static inline int remote_holds(const struct remote_object *o, uint64_t pc)
{
    return o && pc >= o->start && pc < o->end;
}

#endif
