/* The kernelspec of Jupyter that starts Python's kernel under memprof. */
#include "cli.h"

#include "../common/buf.h"
#include "../common/io.h"
#include "../common/replace.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define OURS      "\"memprof\": true" /* in the metadata: who may replace it and take it away */
#define RECORDING "memprof-kernel.db" /* in the notebook's directory, as a kernel's working directory is */

/* DATA/kernels/memprof, after the rules of jupyter --data-dir. */
static int find_directory(const struct arguments *a, struct buf *path, struct error *err)
{
    const char *data = getenv("JUPYTER_DATA_DIR"), *xdg = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (a->given[OPTION_kernel_prefix])
        buf_printf(path, "%s/share/jupyter", a->value[OPTION_kernel_prefix]);
    else if (data && *data)
        buf_puts(path, data);
    else if (xdg && *xdg)
        buf_printf(path, "%s/jupyter", xdg);
    else if (home && *home)
        buf_printf(path, "%s/.local/share/jupyter", home);
    else
        return error_set(err, EINVAL, "kernel --user: HOME is not set; --prefix DIR says where kernels are");
    buf_puts(path, "/kernels/memprof");
    return 0;
}

/* 1: a kernelspec of ours is there; 0: none; -EEXIST with err: another one. */
static int look(const char *file, struct error *err)
{
    char text[1 << 14];
    FILE *f = fopen(file, "re");
    if (!f && errno == ENOENT)
        return 0;
    size_t length = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[length] = 0;
    if (f)
        fclose(f);
    return strstr(text, OURS) ? 1 : error_set(err, EEXIST, "%s: is not memprof's; move it away first", file);
}

/* All directories up to the last one. */
static int make_directories(const char *path, struct error *err)
{
    char *part = xstrdup(path);
    int rc = 0;
    for (char *slash = part + 1; rc == 0 && (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        if (mkdir(part, 0777) && errno != EEXIST)
            rc = error_set(err, errno, "%s: %s", part, strerror(errno));
    }
    if (rc == 0 && mkdir(part, 0777) && errno != EEXIST)
        rc = error_set(err, errno, "%s: %s", part, strerror(errno));
    free(part);
    return rc;
}

/* Where a program of this name is, as execvp would find it; NULL: nowhere. */
static char *find_program(const char *name)
{
    const char *path = getenv("PATH");
    struct buf at = BUF(2 * PATH_MAX);
    if (strchr(name, '/'))
        return access(name, X_OK) == 0 ? realpath(name, NULL) : NULL;
    for (const char *p = path ? path : "/usr/bin:/bin"; *p; p += strspn(p, ":")) {
        size_t length = strcspn(p, ":");
        buf_reset(&at);
        buf_printf(&at, "%.*s/%s", (int)length, p, name);
        p += length;
        if (!at.failed && *at.data == '/' && access(at.data, X_OK) == 0)
            return buf_take(&at);
    }
    buf_free(&at);
    return NULL;
}

/* Without symbols: Jupyter waits for a kernel's end for some seconds only, and the first report finishes the file. */
static void write_spec(FILE *f, const char *memprof, const char *python)
{
    const char *const words[] = {
        memprof, "run",  "-q", "--no-symbols",       "-o", RECORDING,          "--python-module",
        "--",    python, "-m", "ipykernel_launcher", "-f", "{connection_file}"};
    struct buf text = BUF(1 << 16);
    buf_puts(&text, "{\n \"argv\": [");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        buf_puts(&text, i ? ", \"" : "\"");
        buf_json(&text, words[i]);
        buf_puts(&text, "\"");
    }
    buf_puts(&text, "],\n \"display_name\": \"Python 3 (memprof)\",\n \"language\": \"python\",\n"
                    " \"interrupt_mode\": \"message\",\n \"metadata\": {\"debugger\": true, " OURS "}\n}\n");
    fputs(buf_text(&text), f);
    buf_free(&text);
}

/* A note only: it may be installed later. Not where python does not start at all, which Jupyter says. */
static void look_for_ipykernel(const char *python)
{
    static const char code[] = "import importlib.util as u, sys; sys.exit(3 * (u.find_spec('ipykernel') is None))";
    char *const words[] = {(char *)(uintptr_t)python, "-c", (char *)(uintptr_t)code, NULL};
    pid_t pid;
    int status = 0;
    if (posix_spawn(&pid, python, NULL, NULL, words, environ))
        return;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 3)
        cli_note("%s: has no ipykernel, so the kernel will not start; install it, or name with --python the Python "
                 "that has it",
                 python);
}

static int install(const struct arguments *a, const char *directory, const char *file, struct error *err)
{
    const char *name = a->given[OPTION_kernel_python] ? a->value[OPTION_kernel_python] : "python3";
    char *python = find_program(name), memprof[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", memprof, sizeof memprof - 1);
    struct replace out;
    int rc = look(file, err);
    if (rc >= 0 && !python)
        rc = error_set(err, ENOENT, "%s: no such program; --python FILE names the Python that has ipykernel", name);
    else if (rc >= 0 && length <= 0)
        rc = error_set(err, errno, "/proc/self/exe: %s", strerror(errno));
    if (rc >= 0)
        rc = make_directories(directory, err);
    if (rc >= 0 && (rc = replace_open(&out, file, err)) == 0) {
        memprof[length] = 0;
        write_spec(out.out, memprof, python);
        rc = replace_close(&out, ferror(out.out) ? error_set(err, EIO, "%s: cannot be written", file) : 0, err);
    }
    if (rc == 0) {
        printf("%s\n", file);
        look_for_ipykernel(python);
    }
    free(python);
    return rc;
}

static int uninstall(const char *directory, const char *file, struct error *err)
{
    int is_there = look(file, err);
    if (is_there < 0)
        return is_there;
    if (!is_there)
        return error_set(err, ENOENT, "%s: is not there; nothing was removed", file);
    if (unlink(file))
        return error_set(err, errno, "%s: %s", file, strerror(errno));
    rmdir(directory); /* unless the user put something beside it */
    return 0;
}

int cmd_kernel(const struct arguments *a)
{
    struct error err = {""};
    struct buf directory = BUF(PATH_MAX), file = BUF(PATH_MAX);
    const char *what = a->rest_count == 1 ? a->rest[0] : "";
    int is_install = strcmp(what, "install") == 0, rc;
    if (!is_install && strcmp(what, "uninstall") != 0)
        return cli_usage("kernel: say 'memprof kernel install' or 'memprof kernel uninstall'");
    if (a->given[OPTION_user] == a->given[OPTION_kernel_prefix])
        return cli_usage("kernel %s: where? --user, or --prefix DIR for DIR/share/jupyter/kernels", what);
    if (a->given[OPTION_kernel_python] && !is_install)
        return cli_usage("kernel uninstall: --python belongs to install");
    rc = find_directory(a, &directory, &err);
    buf_printf(&file, "%s/kernel.json", buf_text(&directory));
    if (rc == 0 && (directory.failed || file.failed))
        rc = error_set(&err, ENAMETOOLONG, "kernel: the directory's name is too long");
    if (rc == 0)
        rc = is_install ? install(a, directory.data, file.data, &err) : uninstall(directory.data, file.data, &err);
    buf_free(&directory);
    buf_free(&file);
    return cli_close_output(rc == 0 ? EXIT_OK : cli_fail(&err));
}
