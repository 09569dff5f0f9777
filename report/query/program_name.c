#include "program_name.h"

#include "../../common/text.h"

#include <ctype.h>
#include <string.h>

/* The next word of a shell's command line, without its quotes; 0 at the end. */
static int next_word(const char **command, struct buf *word)
{
    const char *p = *command;
    int quoted = 0;
    buf_reset(word);
    while (*p == ' ')
        p++;
    const char *begin = p;
    for (; *p && (quoted || *p != ' '); p++) {
        if (*p == '\'')
            quoted = !quoted;
        else if (*p != '\\' || quoted || !p[1])
            buf_putc(word, *p);
        else
            buf_putc(word, *++p);
    }
    *command = p;
    return p > begin;
}

/* Programs that run a file of code, known by what is left of their names without a version. */
static const struct interpreter {
    const char *name;
    const char *code;     /* options of one letter that are followed by code, not by a file */
    const char *module;   /* ... by the name of what is run */
    const char *argument; /* ... by something else */
    const char *words;    /* whole words that are followed by an argument, each between blanks */
} interpreters[] = {
    {"python", "c", "m", "WX", " --check-hash-based-pycs "},
    {"pypy", "c", "m", "WX", ""},
    {"sh", "c", "", "oO", ""},
    {"dash", "c", "", "o", ""},
    {"bash", "c", "", "oO", " --rcfile --init-file "},
    {"zsh", "c", "", "o", ""},
    {"ksh", "c", "", "o", ""},
    {"perl", "eE", "", "I", ""},
    {"ruby", "e", "", "rIEC", ""},
    {"node", "ep", "", "rC", " --require --import --loader --conditions --eval --print "},
    {"nodejs", "ep", "", "rC", " --require --import --loader --conditions --eval --print "},
    {"php", "r", "", "cdz", ""},
    {"lua", "e", "", "l", ""},
    {"luajit", "e", "", "l", ""},
    {"Rscript", "e", "", "", ""},
    {"java", NULL, NULL, NULL, " -cp -classpath --class-path -p --module-path --add-modules "},
};

static const struct interpreter *find_interpreter(const char *program)
{
    size_t length = strlen(program);
    while (length && (isdigit((unsigned char)program[length - 1]) || program[length - 1] == '.'))
        length--;
    for (size_t i = 0; i < sizeof interpreters / sizeof *interpreters; i++)
        if (strlen(interpreters[i].name) == length && memcmp(interpreters[i].name, program, length) == 0)
            return &interpreters[i];
    return NULL;
}

static int is_listed(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at++)
        if (at > list && at[-1] == ' ' && at[length] == ' ')
            return 1;
    return 0;
}

static int has(const char *letters, char letter)
{
    return letter && strchr(letters, letter) != NULL;
}

/* What an option's letters say about what is run: -Bc CODE, -mMODULE. */
enum option { OPTION_PLAIN, OPTION_ARGUMENT, OPTION_CODE, OPTION_MODULE };

static enum option read_option(const struct interpreter *interpreter, const char *option, const char **rest)
{
    enum option kind = OPTION_PLAIN;
    if (is_listed(interpreter->words, option))
        kind = OPTION_ARGUMENT;
    *rest = "";
    if (!interpreter->code || option[1] == '-')
        return kind;
    for (const char *letter = option + 1; *letter && kind == OPTION_PLAIN; letter++) {
        *rest = letter + 1;
        if (has(interpreter->code, *letter))
            kind = OPTION_CODE;
        else if (has(interpreter->module, *letter))
            kind = OPTION_MODULE;
        else if (has(interpreter->argument, *letter))
            kind = OPTION_ARGUMENT;
    }
    return kind;
}

/* A "-" is code from standard input, but for shells the end of their options. */
static int is_input(const struct interpreter *interpreter, const char *word)
{
    size_t length = strlen(interpreter->name);
    return strcmp(word, "-") == 0 && !(length >= 2 && strcmp(interpreter->name + length - 2, "sh") == 0);
}

/* Goes over an interpreter's options and appends the file, module or class that it runs; 0 when there is none. */
static int find_script(const struct interpreter *interpreter, const char *command, struct buf *script)
{
    struct buf word = BUF(1u << 16);
    int is_over = 0;
    while (!is_over && next_word(&command, &word) && word.length) {
        const char *rest;
        if (is_input(interpreter, word.data))
            break;
        if (*word.data != '-' && *word.data != '+') {
            buf_puts(script, word.data);
            break;
        }
        switch (strcmp(word.data, "--") == 0 ? OPTION_PLAIN : read_option(interpreter, word.data, &rest)) {
        case OPTION_PLAIN:
            break;
        case OPTION_ARGUMENT:
            is_over = !*rest && !next_word(&command, &word);
            break;
        case OPTION_CODE:
            is_over = 1;
            break;
        case OPTION_MODULE:
            is_over = 1;
            if (*rest)
                buf_puts(script, rest);
            else if (next_word(&command, &word) && word.length)
                buf_puts(script, word.data);
        }
    }
    buf_free(&word);
    return script->length > 0;
}

/* The dynamic loader, called as a program: /lib64/ld-linux-x86-64.so.2 ./a.out */
static int is_loader(const char *program)
{
    return strcmp(program, "ld.so") == 0 ||
           (strstr(program, ".so.") && (strncmp(program, "ld-linux", 8) == 0 || strncmp(program, "ld-musl-", 8) == 0 ||
                                        strncmp(program, "ld64.so", 7) == 0));
}

/* Goes past a loader and its options to what it was told to run; 0 where there is neither. */
static int pass_loader(const char **command)
{
    static const char arguments[] = " --library-path --inhibit-rpath --audit --preload --argv0 --glibc-hwcaps-prepend "
                                    "--glibc-hwcaps-mask ";
    struct buf word = BUF(1u << 16);
    const char *rest = *command, *run = NULL;
    if (next_word(&rest, &word) && word.length && is_loader(text_basename(word.data)))
        for (run = rest; next_word(&rest, &word) && word.length && strncmp(word.data, "--", 2) == 0; run = rest)
            if (is_listed(arguments, word.data))
                next_word(&rest, &word);
    int is_one = run && word.length && *word.data != '-';
    if (is_one)
        *command = run;
    buf_free(&word);
    return is_one;
}

int program_name(struct buf *name, const char *command)
{
    struct buf word = BUF(1u << 16), script = BUF(1u << 16);
    int is_script = 0, is_loaded = pass_loader(&command);
    if (next_word(&command, &word) && word.length) {
        const char *program = text_basename(word.data);
        const struct interpreter *interpreter = find_interpreter(program + (*program == '-')); /* -sh: of a login */
        is_script = interpreter && find_script(interpreter, command, &script);
        buf_puts(name, is_script ? text_basename(script.data) : program);
    }
    buf_free(&word);
    buf_free(&script);
    return is_script || is_loaded;
}

int program_script(struct buf *path, const char *command)
{
    struct buf word = BUF(1u << 16);
    const struct interpreter *interpreter =
        next_word(&command, &word) && word.length ? find_interpreter(text_basename(word.data)) : NULL;
    int is_script = interpreter && find_script(interpreter, command, path);
    buf_free(&word);
    return is_script;
}

void program_process(struct buf *text, const char *title, const char *command)
{
    if (title && *title)
        buf_printf(text, "[%s] ", title);
    buf_puts(text, command);
}
