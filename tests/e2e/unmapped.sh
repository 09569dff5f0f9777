# A stack that the unwinder knew is unmapped: it must not look there again.
record_ok "$PROGRAMS/unmapped"
equal "calls" "100|10000|100" "$(by_function counted | cut -d'|' -f1-3)"
