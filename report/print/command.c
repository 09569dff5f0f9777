#include "command.h"

#include <string.h>

void command_add_file(struct buf *command, const char *file)
{
    if (!file || strcmp(file, "out.db") == 0)
        return;
    buf_putc(command, ' ');
    buf_shell(command, file);
}
