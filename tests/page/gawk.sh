# The page of a real program: gawk.
. "$ROOT/tests/page/page.inc"
need gawk
record_ok gawk 'BEGIN { for (i = 0; i < 120000; i++) { a[i % 5000] = a[i % 5000] "x" i;
    if (i % 30000 == 0) delete a } print length(a) }'
check_page gawk --events
