# A symbol of 1,024 bytes and more, which the demangler refuses unless it is told otherwise, is read as a shorter one.
need nm c++filt
cat >app.cpp <<'END'
#include <cstdlib>
#include <utility>
template <class T> __attribute__((noinline)) void *hold(const T &)
{
    void *volatile block = malloc(1000);
    return block;
}
int main()
{
    free(hold(std::make_index_sequence<20>()));
    return hold(std::make_index_sequence<400>()) == nullptr;
}
END
"$CXX" -g -O0 -o app app.cpp
symbol=$(nm app | sed -n 's/^.* \(_Z4hold.*\)$/\1/p' | awk 'length > length(most) { most = $0 } END { print most }')
at_least "bytes of the symbol" 1024 "$(printf %s "$symbol" | wc -c)"
name=$(c++filt --no-recurse-limit "$symbol")
[ "$name" != "$symbol" ] || skip "this c++filt has another limit"
record_ok ./app
equal "its name" "$name" \
    "$(sql "SELECT name FROM function WHERE plain_name = 'hold' ORDER BY length(name) DESC LIMIT 1")"
"$MEMPROF" report out.db >report.txt
contains "as people read it" report.txt "hold<"
lacks "as people read it" report.txt _Z4hold
