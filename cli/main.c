#include "cli.h"
#include "own_stack.h"

#include "../common/build.h"
#include "../common/near.h"
#include <dlfcn.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int command_function(const struct arguments *arguments);

static command_function *const functions[COMMAND_COUNT] = {
#define COMMAND(id, name, arguments, help, text) [COMMAND_##id] = cmd_##id,
#include "commands.def"
#undef COMMAND
};

static int command_named(const char *name)
{
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(command_infos[i].name, name) == 0)
            return i;
    return -1;
}

static int in_path(const char *name)
{
    const char *path = getenv("PATH");
    char file[4096];
    while (path && *path) {
        int length = (int)strcspn(path, ":");
        int n = snprintf(file, sizeof file, "%.*s/%s", length, path, name);
        if (length && n < (int)sizeof file && access(file, X_OK) == 0)
            return 1;
        path += length + (path[length] == ':');
    }
    return 0;
}

static int unknown_command(const char *name)
{
    const char *names[COMMAND_COUNT];
    size_t length = strlen(name);
    for (int i = 0; i < COMMAND_COUNT; i++)
        names[i] = command_infos[i].name;
    if (*name == '-')
        return cli_usage("unknown option '%s'; 'memprof --help' shows the commands", name);
    if (length > 3 && strcmp(name + length - 3, ".db") == 0)
        return cli_usage("'%s' is not a command; to read it: memprof report %s", name, name);
    const char *near = near_name(name, names, COMMAND_COUNT);
    if (near)
        return cli_usage("unknown command '%s'; did you mean '%s'?", name, near);
    if (strchr(name, '/') ? access(name, X_OK) == 0 : in_path(name))
        return cli_usage("'%s' is a program, not a command of memprof; to record it: memprof run %s", name, name);
    return cli_usage("unknown command '%s'; 'memprof --help' lists them, 'memprof run PROGRAM' records", name);
}

static int print_version(void)
{
    struct error err;
    char *library = cli_library(&err);
    void *debuginfod = dlopen("libdebuginfod.so.1", RTLD_LAZY | RTLD_LOCAL);
    printf("memprof %s\n", build_version);
    printf("library     %s\n", library ? library : "not found; run 'make' or 'make install'");
    printf("CUDA        %s\n",
           build_has_cuda ? "yes: hooks of the driver, where a program loads it" : "not in this build (make CUDA=0)");
    printf("debuginfod  %s\n",
           debuginfod ? "yes, asked when DEBUGINFOD_URLS is set" : "no: libdebuginfod.so.1 is not installed");
    printf("SQLite      %s\n", sqlite3_libversion());
    if (debuginfod)
        dlclose(debuginfod);
    free(library);
    return cli_close_output(EXIT_OK);
}

static int print_help(int argc, char **argv)
{
    int command = argc > 2 ? command_named(argv[2]) : -1;
    if (argc > 2 && command < 0)
        return unknown_command(argv[2]);
    if (command >= 0)
        options_help(stdout, (enum command_index)command);
    else
        options_usage(stdout);
    return cli_close_output(EXIT_OK);
}

static int run(int argc, char **argv)
{
    /* the character set only: numbers are written the same in every locale */
    setlocale(LC_CTYPE, "");
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* nobody asks for them, and they take a lock each allocation */
    if (argc < 2) {
        options_usage(stderr);
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        return print_version();
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        return print_help(strcmp(name, "help") == 0 ? argc : 2, argv);
    int command = command_named(name);
    if (command < 0)
        return unknown_command(name);
    struct arguments arguments;
    int rc = options_parse((enum command_index)command, argc - 1, argv + 1, &arguments);
    if (rc == -1) {
        options_help(stdout, (enum command_index)command);
        return cli_close_output(EXIT_OK);
    }
    return rc ? rc : functions[command](&arguments);
}

int main(int argc, char **argv)
{
    return own_stack_run(run, argc, argv);
}
