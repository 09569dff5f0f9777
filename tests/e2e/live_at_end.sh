# What processes that end one after another leave sums up above the peak, and the reports say why.
"$MEMPROF" run -q -o out.db -- sh -c "$(printf "'$SAMPLES/leak';%.0s" 1 2 3 4 5 6 7 8 9 10) true" 2>/dev/null
at_least "live at the end beyond the peak" "$(($(total peak_active_bytes) + 1))" "$(total end_active_bytes)"
"$MEMPROF" report out.db >got
contains "the report" got '(live at end is above the peak: processes ended at different times'
"$MEMPROF" report out.db --html=page.html
contains "the page" page.html ', of processes that ended at different times'
"$MEMPROF" run -q -o out.db -- "$SAMPLES/leak" 2>/dev/null
"$MEMPROF" report out.db >got
lacks "one process" got 'is above the peak'
lacks "a program without Python" got '(live at end: '

# What the C++ library keeps for its exceptions, and the C library for a stream, is left out of the table of lines as
# leaks leave it out; what the program keeps is in both.
cat >app.cpp <<'END'
#include <cstdio>
#include <cstdlib>
int main()
{
    puts("a line");
    static void *volatile kept = malloc(5000);
    return kept == nullptr;
}
END
"$CXX" -g -O0 -o app app.cpp
record_ok ./app
"$MEMPROF" leaks >leaks.txt
own=$(sed -n "s/^\(Not shown: .* libraries' own\).*/\1/p" leaks.txt)
case $own in 'Not shown: '*' KiB in '*) ;; *) cat leaks.txt; fail "leaks without what the libraries keep" ;; esac
"$MEMPROF" report >got
equal "the lines" "4.88 KiB 1 main app.cpp:6" \
    "$(awk '/^Live at the end/ { on = 1; getline; next } /^Not shown|^$/ { on = 0 }
        on { print $1, $2, $3, $4, $5 }' got)"
contains "the same line below them" got "$own"
contains "how to see it" got "; 'memprof leaks --all' shows them."

# where they keep all that is live
printf '#include <vector>\nint main() { std::vector<int> v(1000); return v[7]; }\n' >clean.cpp
"$CXX" -g -O0 -o clean clean.cpp
record_ok ./clean
"$MEMPROF" report >got
equal "nothing but theirs" 1 "$(grep -c "^Live at the end, not shown: .* libraries' own" got)"
equal "a line of its own" "" "$(grep -B1 '^Live at the end, not shown' got | head -n 1)"
