#include "environment.h"

#include "process.h"

extern char **__environ;
extern void *__libc_stack_end;

const char *environment_value(const char *entry, const char *name)
{
    while (*name && *entry == *name)
        entry++, name++;
    return !*name && *entry == '=' ? entry + 1 : NULL;
}

const char *environment_find(const char *name)
{
    const char *value = NULL;
    char **e = __environ;
    /* The executable's DT_PREINIT_ARRAY runs before libc has set it: argc, argv, NULL, then the environment. */
    if (!e && __libc_stack_end)
        e = (char **)__libc_stack_end + *(long *)__libc_stack_end + 2;
    for (; !value && e && *e; e++)
        value = environment_value(*e, name);
    return value;
}

void environment_strip(void)
{
    const char *library = process.control->library_path;
    char **to = __environ;
    for (char **from = __environ; from && *from; from++) {
        char *value = (char *)(uintptr_t)environment_value(*from, WIRE_ENV_PRELOAD);
        if (environment_value(*from, WIRE_ENV_SESSION))
            continue;
        if (value) {
            size_t n = 0;
            while (library[n] && value[n] == library[n])
                n++;
            if (!library[n] && !value[n])
                continue;
            if (!library[n] && (value[n] == ':' || value[n] == ' ')) { /* ours is first: what follows is the user's */
                size_t i = 0;
                do
                    value[i] = value[n + 1 + i];
                while (value[i++]);
            }
        }
        *to++ = *from;
    }
    if (to)
        *to = NULL;
}
