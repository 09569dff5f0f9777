# A program that limits its own address space to 1 GiB once it runs: its allocations and threads still succeed, and all
# are recorded.
record_ok timeout 100 "$PROGRAMS/rlimit"
equal "calls" "680|52360|680" "$(by_function counted | cut -d'|' -f1-3)"
