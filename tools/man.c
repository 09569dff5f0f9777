/*
 * man DIRECTORY: writes the manual pages memprof.1 and memprof-COMMAND.1, and the completions memprof.bash, _memprof
 * (zsh) and memprof.fish, from the descriptions of commands and options in the .def files of cli/. To make the ones in
 * docs/man anew: cc -D_GNU_SOURCE -o /tmp/man tools/man.c && /tmp/man docs/man
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
#define COMMAND(id, name, arguments, help, text) COMMAND_##id,
#include "../cli/commands.def"
#undef COMMAND
    COMMAND_COUNT
};
enum {
#define COMMAND(id, name, arguments, help, text) CMD_##id = 1ull << COMMAND_##id,
#include "../cli/commands.def"
#undef COMMAND
    CMD_all = (1ull << COMMAND_COUNT) - 1
};

static const struct {
    const char *name, *arguments, *help, *text;
} commands[] = {
#define COMMAND(id, name, arguments, help, text) {name, arguments, help, text},
#include "../cli/commands.def"
#undef COMMAND
};

static const struct {
    uint64_t commands;
    int letter;
    const char *name, *argument, *help;
} options[] = {
#define OPTION(id, commands, letter, name, argument, help) {commands, letter, name, argument, help},
#include "../cli/options.def"
#undef OPTION
};

enum {
#define OPTION(id, commands, letter, name, argument, help) OPTION_##id,
#include "../cli/options.def"
#undef OPTION
    OPTION_TOTAL
};

static const struct {
    int option;
    const char *word;
} values[] = {
#define VALUE(id, word) {OPTION_##id, word},
#include "../cli/values.def"
#undef VALUE
};

enum { VALUE_TOTAL = sizeof values / sizeof *values };

static const char examples[] = ".SH EXAMPLES\n"
                               ".nf\n"
                               "memprof run ./app --its-own-options   # records into out.db\n"
                               "memprof report                        # totals, the peak and the lines that held it\n"
                               "memprof lines --func forward          # one function, line by line\n"
                               "memprof leaks                         # what was still live at the end\n"
                               "memprof report --html --open          # timelines in the browser\n"
                               "memprof sql out.db 'SELECT * FROM v_total'\n"
                               ".fi\n";

static const char ends[] =
    ".SH EXIT STATUS\n"
    "0: success. 1: failure. 2: mistake on the command line. "
    "\\fBmemprof run\\fR exits with the status of the program, or 128 + the number of the signal that killed it.\n"
    ".SH ENVIRONMENT\n"
    ".TP\n.B DEBUGINFOD_URLS\nServers to ask for debug information that is not installed. Without it, none is "
    "asked.\n"
    ".TP\n.B XDG_CACHE_HOME\nNames that were looked up are kept in its directory memprof, by build-id; without it in "
    "~/.cache/memprof.\n"
    ".TP\n.B NO_COLOR\nNo colours when set and not empty.\n"
    ".TP\n.B COLUMNS\nWidth of the terminal, instead of what the terminal says.\n"
    ".SH FILES\n"
    ".TP\n.I out.db\nThe recording. While it is written there are out.db\\-wal and out.db\\-shm beside it, which "
    "belong "
    "to it.\n"
    ".TP\n.I out.db\\-symbols\nNames that reports on a running program looked up and the cache has no place for. May "
    "be "
    "removed at any time; goes with the end of the recording.\n";

/* Text with what roff takes for its own escaped. */
static void put(FILE *f, const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", f);
    for (; *text; text++) {
        if (*text == '\\')
            fputs("\\e", f);
        else if (*text == '-')
            fputs("\\-", f);
        else
            fputc(*text, f);
    }
}

static void put_option(FILE *f, int i)
{
    fputs(".TP\n", f);
    if (options[i].letter)
        fprintf(f, "\\fB\\-%c\\fR, ", options[i].letter);
    fputs("\\fB\\-\\-", f);
    put(f, options[i].name);
    fputs("\\fR", f);
    const char *argument = options[i].argument;
    if (argument && *argument == '[')
        fprintf(f, "[=\\fI%.*s\\fR]", (int)strlen(argument) - 2, argument + 1);
    else if (argument)
        fprintf(f, " \\fI%s\\fR", argument);
    fputc('\n', f);
    put(f, options[i].help);
    fputs(".\n", f);
}

static FILE *create(const char *directory, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *f = fopen(path, "w");
    if (!f) {
        fprintf(stderr, "man: %s: %s\n", path, strerror(errno));
        exit(1);
    }
    return f;
}

static void see_also(FILE *f, int self)
{
    fputs(".SH SEE ALSO\n", f);
    if (self >= 0)
        fputs(".BR memprof (1)", f);
    for (int i = 0, first = self < 0; i < COMMAND_COUNT; i++) {
        if (i == self)
            continue;
        fprintf(f, "%s.BR memprof\\-%s (1)", first ? "" : ",\n", commands[i].name);
        first = 0;
    }
    fputc('\n', f);
}

static void write_command(const char *directory, int c)
{
    char name[128];
    snprintf(name, sizeof name, "memprof-%s.1", commands[c].name);
    FILE *f = create(directory, name);
    fprintf(f, ".\\\" made by tools/man.c\n.TH MEMPROF\\-%s 1\n.SH NAME\nmemprof\\-%s \\- ", commands[c].name,
            commands[c].name);
    put(f, commands[c].help);
    fprintf(f, "\n.SH SYNOPSIS\n.B memprof %s\n[\\fIOPTIONS\\fR] ", commands[c].name);
    put(f, commands[c].arguments);
    fputs("\n.SH DESCRIPTION\n", f);
    put(f, commands[c].text);
    fputs("\n.SH OPTIONS\n", f);
    for (int i = 0; i < OPTION_TOTAL; i++)
        if (options[i].commands & 1ull << c)
            put_option(f, i);
    fputs(ends, f);
    see_also(f, c);
    fclose(f);
}

static void write_main(const char *directory)
{
    FILE *f = create(directory, "memprof.1");
    fputs(".\\\" made by tools/man.c\n.TH MEMPROF 1\n.SH NAME\nmemprof \\- show which source line holds memory, when, "
          "and "
          "on which device\n"
          ".SH SYNOPSIS\n.B memprof\n\\fICOMMAND\\fR [\\fIOPTIONS\\fR] [\\fIARGUMENTS\\fR]\n.br\n"
          ".B memprof \\-\\-version\n.br\n.B memprof help\n[\\fICOMMAND\\fR]\n"
          ".SH DESCRIPTION\n"
          "\\fBmemprof run\\fR starts a program and records each of its allocations with its call stack in one SQLite "
          "database. "
          "The other commands read that database.\n"
          ".SH COMMANDS\n",
          f);
    for (int i = 0; i < COMMAND_COUNT; i++) {
        fprintf(f, ".TP\n.BR memprof\\-%s (1)\n", commands[i].name);
        put(f, commands[i].help);
        fputc('\n', f);
    }
    fputs(examples, f);
    fputs(ends, f);
    see_also(f, -1);
    fclose(f);
}

/* The words that an option takes, with a space between; how many they are. f NULL: these are only counted. */
static int put_words(FILE *f, int option)
{
    int count = 0;
    for (int i = 0; i < VALUE_TOTAL; i++)
        if (values[i].option == option) {
            if (f)
                fprintf(f, "%s%s", count ? " " : "", values[i].word);
            count++;
        }
    return count;
}

/* Several of them, with commas between. */
static int is_list(int option)
{
    return options[option].argument && strcmp(options[option].argument, "LIST") == 0;
}

/* An option's argument without the brackets of one that may be left out. */
static int argument_length(const char *argument, const char **name)
{
    int is_optional = *argument == '[';
    *name = argument + is_optional;
    return (int)strlen(argument) - 2 * is_optional;
}

static int is_file(int option)
{
    static const char *const files[] = {"FILE", "PAGE", "DIR", "GLOB"};
    const char *argument = options[option].argument, *name = NULL;
    int length = argument ? argument_length(argument, &name) : 0;
    for (size_t i = 0; argument && i < sizeof files / sizeof *files; i++)
        if (strlen(files[i]) == (size_t)length && memcmp(files[i], name, (size_t)length) == 0)
            return 1;
    return 0;
}

/* Whether what is not an option is a recording. */
static int takes_recordings(int command)
{
    const char *arguments = commands[command].arguments;
    return command != COMMAND_import && (strstr(arguments, "FILE") || strcmp(arguments, "OLD NEW") == 0);
}

/* What is not an option where it is one of two words: "install | uninstall". 0: it is something else. f NULL: only
 * asked. */
static int put_choice(FILE *f, int command)
{
    const char *arguments = commands[command].arguments, *bar = strstr(arguments, " | ");
    if (!bar || takes_recordings(command))
        return 0;
    if (f)
        fprintf(f, "%.*s %s", (int)(bar - arguments), arguments, bar + 3);
    return 1;
}

static void put_bash_name(FILE *f, int option)
{
    fprintf(f, "--%s", options[option].name);
    if (options[option].letter)
        fprintf(f, " | -%c", options[option].letter);
}

/* What follows an option of a command; of those that take what nobody can offer: nothing. */
static void put_bash_values(FILE *f, int command)
{
    int count = 0;
    fputs("        case $previous in\n", f);
    for (int i = 0; i < OPTION_TOTAL; i++) {
        if (!(options[i].commands & 1ull << command) || !(put_words(NULL, i) || is_file(i)))
            continue;
        fputs("        ", f);
        put_bash_name(f, i);
        fputs(put_words(NULL, i)            ? ") words='"
              : *options[i].argument == '[' ? ") [ -z \"$joined\" ] || kind=file"
                                            : ") kind=file",
              f);
        put_words(f, i);
        fprintf(f, "%s%s ;;\n", put_words(NULL, i) ? "'" : "", is_list(i) ? " head=${word%\"${word##*,}\"}" : "");
    }
    for (int i = 0; i < OPTION_TOTAL; i++) {
        if (!(options[i].commands & 1ull << command) || !options[i].argument || *options[i].argument == '[' ||
            put_words(NULL, i) || is_file(i))
            continue;
        fputs(count++ ? " | " : "        ", f);
        put_bash_name(f, i);
    }
    fputs(count ? ") kind=none ;;\n        esac\n" : "        esac\n", f);
}

static void put_bash_command(FILE *f, int command)
{
    fprintf(f, "    %s)\n        options='", commands[command].name);
    for (int i = 0, first = 1; i < OPTION_TOTAL; i++)
        if (options[i].commands & 1ull << command) {
            fprintf(f, "%s--%s", first ? "" : " ", options[i].name);
            first = 0;
        }
    fputs("'\n", f);
    put_bash_values(f, command);
    if (takes_recordings(command))
        fputs("        [ -n \"$kind\" ] || kind=recording\n", f);
    if (put_choice(NULL, command)) {
        fputs("        [ -n \"$kind$words\" ] || words='", f);
        put_choice(f, command);
        fputs("'\n", f);
    }
    fputs("        ;;\n", f);
}

static void write_bash(const char *directory)
{
    FILE *f = create(directory, "memprof.bash");
    fputs("# bash completion for memprof, made by tools/man.c\n_memprof() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    local options= words= head= kind= joined=\n    COMPREPLY=()\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        mapfile -t COMPREPLY < <(compgen -W '",
          f);
    for (int i = 0; i < COMMAND_COUNT; i++)
        fprintf(f, "%s ", commands[i].name);
    fputs("help --version --help' -- \"$word\")\n        return\n    fi\n"
          "    # --by=li is three words\n"
          "    [ \"$word\" != = ] || joined=1 word=\n"
          "    [ \"$previous\" != = ] || joined=1 previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
          "    case ${COMP_WORDS[1]} in\n",
          f);
    for (int c = 0; c < COMMAND_COUNT; c++)
        put_bash_command(f, c);
    fputs("    esac\n"
          "    if [[ $word == -* && $kind != none ]]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
          "    elif [ -n \"$words\" ]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -P \"$head\" -W \"$words\" -- \"${word#\"$head\"}\")\n"
          "    elif [ \"$kind\" = recording ]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -f -X '!*.db' -- \"$word\"; compgen -d -- \"$word\")\n"
          "        [ ${#COMPREPLY[@]} -gt 0 ] || mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
          "    elif [ \"$kind\" != none ]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
          "    fi\n}\ncomplete -o filenames -F _memprof memprof\n",
          f);
    fclose(f);
}

/* Text within single quotes of a shell or of zsh's _arguments, where brackets and colons mean something. */
static void put_quoted(FILE *f, const char *text, const char *special, const char *quote)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs(quote, f);
        else
            fprintf(f, strchr(special, *text) ? "\\%c" : "%c", *text);
    }
}

/* One line of _arguments: '(-o --output)'{-o+,--output=}'[help]:FILE:_files' */
static void put_zsh_option(FILE *f, int i)
{
    const char *argument = options[i].argument, *name = NULL;
    int length = argument ? argument_length(argument, &name) : 0;
    int repeats = strstr(options[i].help, "may be repeated") != NULL;
    const char *joins = !argument ? "" : *argument == '[' ? "=-" : "=";
    fputs("            ", f);
    if (repeats)
        fprintf(f, "'*--%s%s[", options[i].name, joins);
    else if (options[i].letter)
        fprintf(f, "'(-%c --%s)'{-%c%s,--%s%s}'[", options[i].letter, options[i].name, options[i].letter,
                argument ? "+" : "", options[i].name, joins);
    else
        fprintf(f, "'--%s%s[", options[i].name, joins);
    put_quoted(f, options[i].help, "[]\\", "'\\''");
    fputs("]", f);
    if (argument)
        fprintf(f, "%s%.*s:", *argument == '[' ? "::" : ":", length, name);
    if (put_words(NULL, i)) {
        fputs(is_list(i) ? "_values -s , word " : "(", f);
        put_words(f, i);
        fputs(is_list(i) ? "" : ")", f);
    } else if (argument) {
        fputs(is_file(i) ? "_files" : " ", f);
    }
    fputs("' \\\n", f);
}

static void write_zsh(const char *directory)
{
    FILE *f = create(directory, "_memprof");
    fputs("#compdef memprof\n# zsh completion for memprof, made by tools/man.c\n"
          "_memprof() {\n    local state line context\n    typeset -A opt_args\n"
          "    _arguments -C '(- *)--version[show the version]' '(- *)--help[show help]' '1:command:->command' "
          "'*::argument:->argument'\n"
          "    case $state in\n    command)\n        local -a commands=(\n",
          f);
    for (int i = 0; i < COMMAND_COUNT; i++) {
        fprintf(f, "            '%s:", commands[i].name);
        put_quoted(f, commands[i].help, "", "'\\''");
        fputs("'\n", f);
    }
    fputs("            'help:show help on a command'\n        )\n        _describe command commands\n        ;;\n"
          "    argument)\n        case $line[1] in\n",
          f);
    for (int c = 0; c < COMMAND_COUNT; c++) {
        fprintf(f, "        %s) _arguments -s -S \\\n", commands[c].name);
        for (int i = 0; i < OPTION_TOTAL; i++)
            if (options[i].commands & 1ull << c)
                put_zsh_option(f, i);
        /* after the program of run come its own arguments */
        fputs("            ", f);
        if (c == COMMAND_run) {
            fputs("'(-)1:program:_command_names -e' '*::argument:_normal' ;;\n", f);
        } else if (put_choice(NULL, c)) {
            fputs("'1:what:(", f);
            put_choice(f, c);
            fputs(")' ;;\n", f);
        } else {
            fputs(takes_recordings(c) ? "'*:recording:_files -g \"*.db\"' ;;\n" : "'*:file:_files' ;;\n", f);
        }
    }
    fputs("        esac\n        ;;\n    esac\n}\n_memprof \"$@\"\n", f);
    fclose(f);
}

/* What is not an option: recordings first, or one of two words. */
static void put_fish_arguments(FILE *f, int command)
{
    const int is_choice = put_choice(NULL, command);
    if (!is_choice && !takes_recordings(command))
        return;
    fprintf(f, "complete -c memprof -n '__fish_seen_subcommand_from %s' %s", commands[command].name,
            is_choice ? "-f -a '" : "-k -a '(__fish_complete_suffix .db)'\n");
    if (is_choice) {
        put_choice(f, command);
        fputs("'\n", f);
    }
}

static void write_fish(const char *directory)
{
    FILE *f = create(directory, "memprof.fish");
    fputs("# fish completion for memprof, made by tools/man.c\n"
          "complete -c memprof -n __fish_use_subcommand -f -l version -d 'show the version'\n"
          "complete -c memprof -n __fish_use_subcommand -f -l help -d 'show help'\n"
          "complete -c memprof -n __fish_use_subcommand -f -a help -d 'show help on a command'\n",
          f);
    for (int c = 0; c < COMMAND_COUNT; c++) {
        fprintf(f, "complete -c memprof -n __fish_use_subcommand -f -a %s -d '", commands[c].name);
        put_quoted(f, commands[c].help, "\\", "\\'");
        fputs("'\n", f);
        for (int i = 0; i < OPTION_TOTAL; i++) {
            if (!(options[i].commands & 1ull << c))
                continue;
            const char *argument = options[i].argument;
            fprintf(f, "complete -c memprof -n '__fish_seen_subcommand_from %s' -l %s", commands[c].name,
                    options[i].name);
            if (options[i].letter)
                fprintf(f, " -s %c", options[i].letter);
            if (argument && *argument != '[')
                fputs(is_file(i) ? " -r -F" : " -x", f);
            if (put_words(NULL, i)) {
                fputs(is_list(i) ? " -a '(__fish_append , " : " -a '", f);
                put_words(f, i);
                fputs(is_list(i) ? ")'" : "'", f);
            }
            fputs(" -d '", f);
            put_quoted(f, options[i].help, "\\", "\\'");
            fputs("'\n", f);
        }
        put_fish_arguments(f, c);
    }
    fputs(
        "complete -c memprof -n '__fish_seen_subcommand_from run' -x -a '(__fish_complete_subcommand --fcs-skip=2)'\n",
        f);
    fclose(f);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: man DIRECTORY\n");
        return 2;
    }
    write_main(argv[1]);
    for (int i = 0; i < COMMAND_COUNT; i++)
        write_command(argv[1], i);
    write_bash(argv[1]);
    write_zsh(argv[1]);
    write_fish(argv[1]);
    return 0;
}
