# The manual pages and the completions in docs/man are what tools/man.c makes of today's options.
"$CC" -D_GNU_SOURCE -Wall -Wextra -o make_man "$ROOT/tools/man.c"
mkdir pages
./make_man pages
diff -ru "$ROOT/docs/man" pages || fail "docs/man is out of date: make man"
for page in pages/*.1; do
    if command -v groff >/dev/null; then
        groff -man -Tutf8 -ww "$page" >/dev/null 2>warnings || fail "groff on $page"
        [ ! -s warnings ] || { cat warnings; fail "groff warns about $page"; }
    fi
done
if command -v bash >/dev/null; then bash -n pages/memprof.bash || fail 'memprof.bash'; fi
if command -v zsh >/dev/null; then zsh -n pages/_memprof || fail '_memprof'; fi
if command -v fish >/dev/null; then
    fish -n pages/memprof.fish || fail 'memprof.fish'
    said=$(HOME=$PWD fish -c 'source pages/memprof.fish; complete -C "memprof leaks --err"' | cut -f 1)
    equal "what fish completes" --error-exitcode "$said"
fi
# every option of every command is in each of the three
commands=$("$MEMPROF" help | sed -n 's/^  memprof \([a-z-]*\)  *.*/\1/p')
at_least "commands" 8 "$(echo "$commands" | wc -l)"
for command in $commands; do "$MEMPROF" "$command" --help; done | grep -o -e '--[a-z][a-z-]*' | sort -u >options
at_least "options" 40 "$(wc -l <options)"
while read -r option; do
    for file in memprof.bash _memprof memprof.fish; do
        grep -q -e "$option\b" -e " -l ${option#--}\b" "pages/$file" || fail "$file has no $option"
    done
done <options
