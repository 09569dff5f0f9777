#include "self_stat.h"

#include "sys.h"

#include <fcntl.h>

uint64_t self_stat(unsigned place, char *text, size_t size_bytes)
{
    int fd = sys_open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    long n = fd < 0 ? 0 : sys_read(fd, text, size_bytes), i = n;
    if (fd >= 0)
        sys_close(fd);
    while (i > 0 && text[i - 1] != ')') /* of the name, which may hold anything */
        i--;
    uint64_t value = 0;
    for (unsigned at = 0; i > 0 && i < n && at <= place; i++) {
        if (text[i] == ' ')
            at++;
        else if (at == place && text[i] >= '0' && text[i] <= '9')
            value = value * 10 + (uint64_t)(text[i] - '0');
    }
    return value;
}
