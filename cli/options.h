/*
 * options.h: the command line: which options a command takes (options.def), parsing them, and help made from them.
 * Strings belong to argv.
 */
#ifndef MEMPROF_OPTIONS_H
#define MEMPROF_OPTIONS_H

#include <stdint.h>
#include <stdio.h>

enum command_index {
#define COMMAND(id, name, arguments, help, text) COMMAND_##id,
#include "commands.def"
#undef COMMAND
    COMMAND_COUNT
};

enum command_bit {
#define COMMAND(id, name, arguments, help, text) CMD_##id = 1ull << COMMAND_##id,
#include "commands.def"
#undef COMMAND
    CMD_all = (1ull << COMMAND_COUNT) - 1
};

_Static_assert(COMMAND_COUNT < 64, "a command has a bit");

enum option_id {
#define OPTION(id, commands, letter, name, argument, help) OPTION_##id,
#include "options.def"
#undef OPTION
    OPTION_COUNT
};

struct option_info {
    uint64_t commands; /* bits: enum command_bit */
    int letter;        /* 0: none */
    const char *name;
    const char *argument; /* NULL: none, "X": required, "[X]": optional */
    const char *help;
};

struct command_info {
    const char *name;
    const char *arguments;
    const char *help;
    const char *text;
};

extern const struct option_info option_infos[OPTION_COUNT];
extern const struct command_info command_infos[COMMAND_COUNT];

#define ARGUMENTS_REPEATED_MAX 64

struct arguments {
    enum command_index command;
    unsigned char given[OPTION_COUNT];
    const char *value[OPTION_COUNT]; /* of its last use; NULL without an argument */
    struct {
        enum option_id id;
        const char *value;
        int rest_before;           /* diff and check: how many words that are not options came before it */
    } use[ARGUMENTS_REPEATED_MAX]; /* in order, for options that may be repeated */
    int use_count;
    char **rest; /* what is not an option */
    int rest_count;
    int dashes; /* diff and check: how many of rest came before "--"; -1: there was none */
};

/* argv[0] is the command's name. 0, or 2 after one line on stderr (bad usage), or -1 when --help was asked for. */
int options_parse(enum command_index command, int argc, char **argv, struct arguments *arguments);

/* The words that an option takes (values.def), of which there are count. */
const char *const *options_words(enum option_id id, int *count);
/* Which of them text is; -1: none. */
int options_word(enum option_id id, const char *text);
/* Which of them was given, for an option that takes nothing else; *chosen stays where it was not. 0 or 2 after a line
 * on stderr. */
int options_choose(const struct arguments *a, enum option_id id, int *chosen);

/* Value of a numeric option within [low, high], or fallback when it was not given. 0 or 2 after a line on stderr. */
int options_number(const struct arguments *a, enum option_id id, int64_t low, int64_t high, int64_t fallback,
                   int64_t *value);

void options_help(FILE *file, enum command_index command); /* of one command */
void options_usage(FILE *file);                            /* all commands, a line each */

#endif
