# A signal handler that allocates interrupts the hooks themselves; nothing is lost.
export LD_PRELOAD=$PROGRAMS/lib_bump.so
record_ok "$PROGRAMS/signals"
unset LD_PRELOAD
pairs=$(cat run.out)
at_least "interruptions" 20 "$pairs"
equal "handler" "$pairs" "$(by_function handler | cut -d'|' -f1)"
equal "handler, freed" "$pairs" "$(by_function handler | cut -d'|' -f3)"
equal "work" 0 $(($(by_function work | cut -d'|' -f1) % 300000))
equal "work, freed" "$(by_function work | cut -d'|' -f1)" "$(by_function work | cut -d'|' -f3)"
