# What the hooks need of the program's stacks: a signal stack of 4 KiB, of which the kernel's frame may take 3; and a
# thread with the smallest stack that starts programs with an environment far larger than that.
# alone: a hook in a signal handler cannot wait for a full ring: a collector that gets no time would lose events
export LD_BIND_NOW=1 # lazy binding alone saves more registers than such a stack has room for
most=560
for bytes in 4096 8192; do
    "$PROGRAMS/altstack" $bytes >plain && [ $(($(cut -d' ' -f2 plain) + most)) -le $bytes ] ||
        { echo "  the kernel's frame leaves no $most bytes in $bytes"; continue; }
    record_ok "$PROGRAMS/altstack" $bytes
    equal "$bytes: take" "6|600|6" "$(by_function take | cut -d'|' -f1-3)"
    at_most "$bytes: bytes of the stack beyond the plain program's" $most \
        $(($(cut -d' ' -f2 run.out) - $(cut -d' ' -f2 plain)))
    export LD_PRELOAD=$PROGRAMS/lib_bump.so
    record "$PROGRAMS/altstack" $bytes loop
    unset LD_PRELOAD
    equal "$bytes, interrupting allocations: status" 0 $status
    sound
    equal "$bytes: take" $(($(cut -d' ' -f1 run.out) * 3)) "$(by_function take | cut -d'|' -f1)"
done
unset LD_BIND_NOW
record_ok "$PROGRAMS/environment"
equal "images" 4 "$(value "SELECT count(*) FROM process")"
equal "children" "14|980|14" "$(by_function child_work | cut -d'|' -f1-3)"
