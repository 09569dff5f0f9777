# As a program exits its heap is asked for what it holds, under the allocator's locks; but not where other threads go on
# with what destructors have left of the program: they wait for no lock then, nor does exit for an answer.
ends() { # HOW: whether it was asked at the end; out.db is sound, and has samples of the heap all the same
    record_ok env LD_PRELOAD="$PROGRAMS/lib_mallinfo.so" "$PROGRAMS/ends_threaded" "$1"
    at_least "$1: samples of the heap" 2 "$(value "SELECT sum(value) FROM counter WHERE name = 'heap_sample'")"
    at_least "$1: reserved" 1 "$(value "SELECT peak_reserved_bytes FROM total WHERE kind = 'heap'")"
    asked=$(grep -c '^asked at the end' run.err) || true
}
ends alone
at_least "alone: asked" 1 "$asked"
ends joined
at_least "joined: asked" 1 "$asked"
ends detached
equal "beside a thread that lives: asked" 0 "$asked"
