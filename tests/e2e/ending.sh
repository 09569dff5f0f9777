# However a program ends: its status, its signal, and everything that it did.
check() { # how, memprof's status, end_kind, exit_status, exit_signal
    echo "$1"
    record "$PROGRAMS/ending" "$1"
    equal "status" "$2" "$status"
    equal "process" "$3|$4|$5" "$(sql "SELECT end_kind, exit_status, exit_signal FROM process")"
    equal "the run ends with it" "$(value "SELECT end_ns FROM process")" \
        "$(value "SELECT value FROM meta WHERE key = 'duration_ns'")"
    equal "work" "10000|160000|9000|0|1000|16000" "$(by_function work)"
    balance
}
check exit 5 exit 5 ''
check _exit 6 exit 6 ''
check _Exit 7 exit 7 ''
check quick_exit 8 exit 8 ''
check thread 9 exit 9 ''
check running 10 exit 10 ''
check pthread_exit 0 exit 0 ''
check abort 134 signal '' 6
check segv 139 signal '' 11
check kill 137 signal '' 9
check term 143 signal '' 15
