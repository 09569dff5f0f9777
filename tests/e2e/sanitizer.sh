# A program built with a sanitizer is run plainly, and told so in one line.
printf 'int main(void) { return 6; }\n' >clean.c
for kind in address thread; do
    "$CC" -fsanitize=$kind -o clean clean.c 2>/dev/null || skip "$CC has no -fsanitize=$kind"
    status=0
    "$MEMPROF" run -o out.db -- ./clean >run.out 2>run.err || status=$?
    equal "$kind: status" 6 $status
    contains "$kind: message" run.err "running it without recording"
    contains "$kind: message" run.err "Sanitizer"
done
