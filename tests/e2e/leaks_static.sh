# A C++ library that is linked into the program keeps what it keeps as one beside it: its pool for exceptions is no leak
# of the program. An exception that somebody keeps is.
cat >pool.cpp <<'END'
#include <exception>
#include <stdexcept>
#include <vector>
static std::exception_ptr *kept;
__attribute__((noinline)) static void keep()
{
    try {
        throw std::vector<char>(100, 'x');
    } catch (...) {
        kept = new std::exception_ptr(std::current_exception());
    }
}
int main(int argc, char **)
{
    std::vector<int> freed(1000);
    if (argc > 1)
        keep();
    return freed.size() == 0;
}
END
"$CXX" -g -O1 -static-libstdc++ -static-libgcc -o lines pool.cpp
strip -g -o names lines
for app in lines names; do
    record_ok ./$app
    pool=$(value "SELECT sum(end_bytes) FROM site JOIN site_line USING(site_id) JOIN line USING(line_id) JOIN function
        USING(function_id) WHERE name LIKE '%eh_alloc%' OR name LIKE '%pool%'")
    at_least "$app: the pool is there" 60000 "$pool"
    code=0
    "$MEMPROF" leaks --error-exitcode 9 >leaks.txt || code=$?
    equal "$app: no leak" 0 $code
    contains "$app: it is the library's" leaks.txt "of the C, C++, Rust and OpenMP libraries' own"
    "$MEMPROF" report --json >report.json
    lacks "$app: no finding" report.json '"leaks"'
    record_ok ./$app keep
    code=0
    "$MEMPROF" leaks --error-exitcode 9 >leaks.txt || code=$?
    equal "$app: an exception that is kept" 9 $code
    contains "$app: whose" leaks.txt keep
    # std::exception_ptr of 8, the exception of a vector's 24 with its header of 128, and the 100 bytes in it
    "$MEMPROF" leaks --json >leaks.json
    equal "$app: what is kept" 260 "$(python3 -c 'import json; print(json.load(open("leaks.json"))["end_bytes"])')"
done
