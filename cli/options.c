#include "options.h"

#include "../common/near.h"
#include "cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

const struct option_info option_infos[OPTION_COUNT] = {
#define OPTION(id, commands, letter, name, argument, help) [OPTION_##id] = {commands, letter, name, argument, help},
#include "options.def"
#undef OPTION
};

const struct command_info command_infos[COMMAND_COUNT] = {
#define COMMAND(id, name, arguments, help, text) [COMMAND_##id] = {name, arguments, help, text},
#include "commands.def"
#undef COMMAND
};

/* The words of an option one after the other. */
static const enum option_id word_ids[] = {
#define VALUE(id, word) OPTION_##id,
#include "values.def"
#undef VALUE
};
static const char *const word_texts[] = {
#define VALUE(id, word) word,
#include "values.def"
#undef VALUE
};
enum { WORD_COUNT = sizeof word_ids / sizeof *word_ids };

#define LONG_BASE 1000 /* values of long options: above every letter */

/* Tables for getopt_long: the options of one command. */
struct getopt_tables {
    char letters[2 * OPTION_COUNT + 3];
    struct option longs[OPTION_COUNT + 1];
};

static void make_tables(enum command_index command, struct getopt_tables *t)
{
    char *letter = t->letters;
    int count = 0;
    /* '+': the first word that is not an option begins the program to run; '-': words come in their order, as 1 */
    if (command == COMMAND_run || command == COMMAND_diff || command == COMMAND_check)
        *letter++ = command == COMMAND_run ? '+' : '-';
    *letter++ = ':';
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option_info *o = &option_infos[i];
        if (!(o->commands & 1ull << command))
            continue;
        int has = !o->argument ? no_argument : *o->argument == '[' ? optional_argument : required_argument;
        if (o->letter) {
            *letter++ = (char)o->letter;
            if (has == required_argument)
                *letter++ = ':';
        }
        t->longs[count++] = (struct option){o->name, has, NULL, LONG_BASE + i};
    }
    *letter = 0;
    t->longs[count] = (struct option){NULL, 0, NULL, 0};
}

static int option_of(enum command_index command, int value)
{
    if (value >= LONG_BASE)
        return value - LONG_BASE;
    for (int i = 0; i < OPTION_COUNT; i++)
        if (option_infos[i].letter == value && (option_infos[i].commands & 1ull << command))
            return i;
    return -1;
}

static int unknown_option(enum command_index command, const char *word)
{
    const char *command_name = command_infos[command].name;
    char bare[128];
    const char *names[OPTION_COUNT];
    int count = 0;
    if (strncmp(word, "--", 2) != 0)
        return cli_usage("%s: unknown option '-%c'; 'memprof %s --help' lists them", command_name, optopt,
                         command_name);
    snprintf(bare, sizeof bare, "%s", word + 2);
    bare[strcspn(bare, "=")] = 0;
    int matches = 0;
    for (int i = 0; i < OPTION_COUNT; i++) {
        if (!(option_infos[i].commands & 1ull << command))
            continue;
        names[count++] = option_infos[i].name;
        matches += strncmp(option_infos[i].name, bare, strlen(bare)) == 0;
    }
    if (matches > 1)
        return cli_usage("%s: option '--%s' is ambiguous; 'memprof %s --help' lists them", command_name, bare,
                         command_name);
    const char *near = near_name(bare, names, count);
    if (near)
        return cli_usage("%s: unknown option '--%s'; did you mean '--%s'?", command_name, bare, near);
    return cli_usage("%s: unknown option '--%s'; 'memprof %s --help' lists them", command_name, bare, command_name);
}

static int bad_option(enum command_index command, int code, const char *word)
{
    int id = option_of(command, optopt);
    if (code == ':' && id >= 0)
        return cli_usage("%s: option '--%s' needs %s: %s", command_infos[command].name, option_infos[id].name,
                         option_infos[id].argument, option_infos[id].help);
    if (optopt >= LONG_BASE && id >= 0)
        return cli_usage("%s: option '--%s' takes no argument", command_infos[command].name, option_infos[id].name);
    return unknown_option(command, word);
}

int options_parse(enum command_index command, int argc, char **argv, struct arguments *a)
{
    struct getopt_tables tables;
    make_tables(command, &tables);
    memset(a, 0, sizeof *a);
    a->command = command;
    opterr = 0;
    optind = 0; /* glibc: start anew */
    for (;;) {
        int word = optind ? optind : 1;
        int code = getopt_long(argc, argv, tables.letters, tables.longs, NULL);
        if (code == -1)
            break;
        if (code == '?' || code == ':')
            return bad_option(command, code, argv[optind > word ? optind - 1 : word]);
        if (code == 1) {
            argv[1 + a->rest_count++] = optarg;
            continue;
        }
        int id = option_of(command, code);
        if (id == OPTION_help)
            return -1;
        a->given[id] = 1;
        a->value[id] = optarg;
        if (a->use_count == ARGUMENTS_REPEATED_MAX)
            return cli_usage("%s: more than %d options", command_infos[command].name, ARGUMENTS_REPEATED_MAX);
        a->use[a->use_count].id = (enum option_id)id;
        a->use[a->use_count].rest_before = a->rest_count;
        a->use[a->use_count++].value = optarg;
    }
    a->dashes = optind > 1 && strcmp(argv[optind - 1], "--") == 0 ? a->rest_count : -1;
    a->rest = argv + optind - a->rest_count; /* words that came in their order stand before the others now */
    memmove(a->rest, argv + 1, (size_t)a->rest_count * sizeof *argv);
    a->rest_count += argc - optind;
    return 0;
}

const char *const *options_words(enum option_id id, int *count)
{
    int first = 0, end;
    while (first < WORD_COUNT && word_ids[first] != id)
        first++;
    for (end = first; end < WORD_COUNT && word_ids[end] == id;)
        end++;
    *count = end - first;
    return *count ? word_texts + first : word_texts; /* none is within, too */
}

int options_word(enum option_id id, const char *text)
{
    int count;
    const char *const *words = options_words(id, &count);
    for (int i = 0; i < count; i++)
        if (strcmp(words[i], text) == 0)
            return i;
    return -1;
}

int options_choose(const struct arguments *a, enum option_id id, int *chosen)
{
    const char *command = command_infos[a->command].name, *option = option_infos[id].name, *text = a->value[id];
    const int word = a->given[id] ? options_word(id, text) : *chosen;
    if (!a->given[id] || word >= 0) {
        *chosen = word;
        return 0;
    }
    int count;
    const char *const *words = options_words(id, &count), *near = near_name(text, words, count);
    if (near)
        return cli_usage("%s: --%s '%s': did you mean '%s'?", command, option, text, near);
    struct buf list = BUF(1 << 10);
    for (int i = 0; i < count; i++)
        buf_printf(&list, "%s%s", i == 0 ? "" : i < count - 1 ? ", " : " or ", words[i]);
    int status = cli_usage("%s: --%s '%s': expected %s", command, option, text, buf_text(&list));
    buf_free(&list);
    return status;
}

int options_number(const struct arguments *a, enum option_id id, int64_t low, int64_t high, int64_t fallback,
                   int64_t *value)
{
    *value = fallback;
    if (!a->given[id])
        return 0;
    char *end;
    errno = 0;
    long long n = strtoll(a->value[id], &end, 10);
    if (errno || end == a->value[id] || *end || n < low || n > high)
        return cli_usage("%s: --%s '%s': expected a whole number from %lld to %lld", command_infos[a->command].name,
                         option_infos[id].name, a->value[id], (long long)low, (long long)high);
    *value = n;
    return 0;
}

/* Writes text in lines of at most 100 columns, each after indent spaces; the first line has begun at column already. */
static void write_wrapped(FILE *file, const char *text, int indent, int column)
{
    while (*text) {
        int length = (int)strcspn(text, " ");
        if (column > indent && column + 1 + length > 100) {
            fprintf(file, "\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', file);
            column++;
        }
        fprintf(file, "%.*s", length, text);
        column += length;
        text += length;
        text += strspn(text, " ");
    }
    fputc('\n', file);
}

static void write_option(FILE *file, const struct option_info *o)
{
    enum { HELP_COLUMN = 28 };
    char argument[64] = "", head[128];
    if (o->argument && *o->argument == '[')
        snprintf(argument, sizeof argument, "[=%s", o->argument + 1);
    else if (o->argument)
        snprintf(argument, sizeof argument, " %s", o->argument);
    if (o->letter)
        snprintf(head, sizeof head, "  -%c, --%s%s", o->letter, o->name, argument);
    else
        snprintf(head, sizeof head, "      --%s%s", o->name, argument);
    int length = fprintf(file, "%s", head);
    if (length > HELP_COLUMN - 2)
        fprintf(file, "\n%*s", HELP_COLUMN, "");
    else
        fprintf(file, "%*s", HELP_COLUMN - length, "");
    write_wrapped(file, o->help, HELP_COLUMN, HELP_COLUMN);
}

void options_help(FILE *file, enum command_index command)
{
    const struct command_info *c = &command_infos[command];
    fprintf(file, "Usage: memprof %s [OPTIONS] %s\n\n", c->name, c->arguments);
    write_wrapped(file, c->text, 0, 0);
    fprintf(file, "\nOptions:\n");
    for (int i = 0; i < OPTION_COUNT; i++)
        if (option_infos[i].commands & 1ull << command)
            write_option(file, &option_infos[i]);
}

void options_usage(FILE *file)
{
    fprintf(file, "Usage: memprof COMMAND [OPTIONS]\n\n");
    for (int i = 0; i < COMMAND_COUNT; i++)
        fprintf(file, "  memprof %-8s %-24s %s\n", command_infos[i].name, command_infos[i].arguments,
                command_infos[i].help);
    fprintf(file, "\n'memprof COMMAND --help' shows the options of a command. To begin:\n\n"
                  "  memprof run ./app        records into out.db\n"
                  "  memprof report           shows it\n");
}
