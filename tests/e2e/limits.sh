# Programs with little memory, few descriptors, another root and user.
code=0
(ulimit -v 300000 && "$MEMPROF" run -q -o out.db -- "$SAMPLES/leak" 2>err) || code=$?
equal "address space of 300 MB: the program's own status" 0 $code
(ulimit -n 16 && "$MEMPROF" run -q -o out.db -- "$SAMPLES/leak" 2>err) || code=$?
equal "16 descriptors" 0 $code
(ulimit -f 4000 && "$MEMPROF" run -q -o out.db -- "$SAMPLES/leak" 2>err) || code=$?
equal "files of at most 2 MB" 0 $code
[ "$(id -u)" = 0 ] || skip "chroot needs root"
record "$PROGRAMS/drop" "$PWD"
[ $status != 77 ] || skip "chroot is not permitted here"
equal "status" 0 $status
sound
equal "chroot, nobody" "300|9300|300" "$(by_function work | cut -d'|' -f1-3)"
