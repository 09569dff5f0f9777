/* glibc's mallinfo2 for tests: says when it is asked once the program that has this library preloaded is ending. */
#include <dlfcn.h>
#include <malloc.h>
#include <unistd.h>

int mallinfo_ending; /* the program sets it */

struct mallinfo2 mallinfo2(void)
{
    static struct mallinfo2 (*real)(void);
    static const char line[] = "asked at the end\n";
    if (!real)
        real = (struct mallinfo2(*)(void))dlsym(RTLD_NEXT, "mallinfo2");
    if (mallinfo_ending && write(2, line, sizeof line - 1) < 0)
        _exit(1);
    return real();
}
