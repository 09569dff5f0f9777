# What the shells offer for an option's value: the words that the option takes, and recordings for what is none.
. "$ROOT/tests/report/setup.inc"
need bash
mkdir -p files/more
: >files/run.db
: >files/run.txt
pages=$ROOT/docs/man

# complete WORD...: what bash offers for the last of the words of a command line
complete() {
    bash -c '. "$0/memprof.bash"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _memprof; echo "${COMPREPLY[*]}"' \
        "$pages" memprof "$@"
}
equal "a key" line "$(complete report --by li)"
equal "behind =" line "$(complete report --by = li)"
equal "all keys of top" "line function op" "$(complete top --by '')"
equal "what diff can compare" "" "$(complete diff --by pro)"
equal "by its letter" "map managed" "$(complete leaks -k ma)"
equal "one of a list" alloc.count,alloc.bytes "$(complete lines --columns alloc.count,alloc.by)"
equal "a format" speedscope "$(complete export --format spe)"
equal "a number" "" "$(complete report --top '')"
equal "options behind a value" --columns "$(complete lines --top 3 --colu)"
equal "a command's own word" uninstall "$(complete kernel un)"
cd files
equal "recordings, and where some may be" "run.db more" "$(complete report '')"
equal "for import any file" "run.db run.txt" "$(complete import run)"
equal "the page of --html" "run.db run.txt" "$(complete report --html = run)"
equal "what follows --html" run.db "$(complete report --html run)"
rm run.db
equal "where no name ends so" run.txt "$(complete report run)"
cd ..

# every word is taken
for option in 'report --by' 'leaks --by' 'report --sort' 'report --at' 'lines --columns' 'report --color' \
    'report --kind' 'export --format'; do
    words=$(complete $option '')
    at_least "words of $option" 1 "$(echo "$words" | wc -w)"
    for word in $words; do
        what="net.db -o copy.out"
        [ "${option%% *}" = export ] || what=net.db
        status=0
        "$MEMPROF" ${option%% *} $what ${option#* } "$word" >/dev/null 2>err || status=$?
        grep -q "no kind '$word' in this recording\|the recording has ended" err || at_most "$option $word" 1 "$status"
    done
done
for word in $(complete diff --by ''); do
    "$MEMPROF" diff net.db net.db --by "$word" >/dev/null || fail "diff --by $word"
done

if command -v fish >/dev/null; then
    in_fish() { HOME=$PWD fish -c "source '$pages/memprof.fish'; complete -C '$1'" | cut -f 1 | paste -sd' ' -; }
    equal "fish: a key" line "$(in_fish 'memprof report --by li')"
    equal "fish: one of a list" alloc.count,alloc.bytes "$(in_fish 'memprof lines --columns alloc.count,alloc.by')"
    equal "fish: a command's own words" "install uninstall" "$(in_fish 'memprof kernel ')"
    : >files/run.db
    equal "fish: recordings first" run.db "$(cd files && in_fish 'memprof report ' | cut -d' ' -f 1)"
fi
# of zsh, whose completion wants a terminal, what it is told
sed -n '/^        report)/,/ ;;$/p' "$pages/_memprof" >zsh.txt
contains "zsh: keys" zsh.txt ":KEY:(line function file module thread device stack process op size name category)'"
contains "zsh: recordings" zsh.txt "'*:recording:_files -g \"*.db\"'"
contains "zsh: one of a list" "$pages/_memprof" ":LIST:_values -s , word alloc.count alloc.bytes "
contains "zsh: a command's own words" "$pages/_memprof" "'1:what:(install uninstall)'"
