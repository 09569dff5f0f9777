# C++ functions local to a file, which gcc leaves without a linkage name and inlines: -O2 -g, as most are built. Each
# has the name that it has where it is not inlined, as far as debug information tells.
need python3
cat >app.cpp <<'EOF'
#include <cstdlib>
void *volatile kept[16];
#define INLINED static inline __attribute__((always_inline))
namespace app
{
INLINED void *of_namespace(size_t n) { return malloc(n); }
namespace
{
struct Pool {
    __attribute__((always_inline)) void *take(size_t n) { return malloc(n); }
};
template <class T> INLINED void *instance(size_t n) { return malloc(n * sizeof(T)); }
} // namespace
/* inlined, and called by its address: the symbol has its whole name */
INLINED void *both(size_t n) { return malloc(n); }
void *(*volatile by_address)(size_t) = both;
__attribute__((noinline)) void work(int i)
{
    struct Local {
        INLINED void *of_function(size_t n) { return malloc(n); }
    };
    auto first = [i](size_t n) __attribute__((always_inline)) { return malloc(n + (size_t)i); };
    auto second = [i](size_t n) __attribute__((always_inline)) { return malloc(n + (size_t)i); };
    kept[0] = of_namespace(1000);
    kept[1] = Pool().take(2000);
    kept[2] = instance<int>(3000);
    kept[3] = both(4000);
    kept[4] = by_address(4500);
    kept[5] = Local::of_function(5000);
    kept[6] = first(6000);
    kept[7] = second(7000);
}
} // namespace app
INLINED void *of_file(size_t n) { return malloc(n); }
namespace net
{
INLINED void *of_file(size_t n) { return malloc(n); }
} // namespace net
int main()
{
    app::work(1);
    kept[8] = of_file(8000);
    kept[9] = net::of_file(9000);
}
EOF
rows() { "$MEMPROF" report out.db --csv --top 0 --by function | tr -d '\r' |
    python3 -c 'import csv, sys
for row in csv.DictReader(sys.stdin): print(row["function"], row["alloc_bytes"])' | sort; }
"$CXX" -O2 -g -fno-optimize-sibling-calls -o app app.cpp || fail "the compiler"
record_ok ./app
equal "g++" 'app::(anonymous namespace)::Pool::take 2000
app::(anonymous namespace)::instance<int> 12000
app::both(unsigned long) 8500
app::of_namespace 1000
app::work(int)::$_0::operator() 6001
app::work(int)::$_1::operator() 7001
app::work(int)::Local::of_function 5000
net::of_file 9000
of_file 8000' "$(rows)"
# the same program, in which nothing is inlined, with other sizes
cp out.db inlined.db
sed 's/__attribute__((always_inline))//; s/^INLINED/static/; s/of_namespace(1000)/of_namespace(1100)/
    s/take(2000)/take(2200)/; s/net::of_file(9000)/net::of_file(9900)/; s/both(4000)/both(4400)/' app.cpp >plain.cpp
mv plain.cpp app.cpp
"$CXX" -O0 -g -o app app.cpp || fail "the compiler"
record_ok ./app
"$MEMPROF" diff inlined.db out.db --csv --top 0 | tr -d '\r' |
    python3 -c 'import csv, sys
for row in csv.DictReader(sys.stdin):
    print(row["match"], row["function"], row["alloc_bytes_old"], row["alloc_bytes_new"])' >diff.txt
contains "diff" diff.txt "clone app::of_namespace(unsigned long) 1000 1100"
contains "diff" diff.txt "clone app::(anonymous namespace)::Pool::take(unsigned long) 2000 2200"
contains "diff" diff.txt "clone net::of_file(unsigned long) 9000 9900"
contains "diff" diff.txt "same app::both(unsigned long) 8500 8900"
cp inlined.db out.db
for name in app::of_namespace of_namespace Pool::take 'app::*'; do
    "$MEMPROF" lines out.db --func "$name" >lines.txt 2>&1 || true
    contains "lines --func $name" lines.txt "app.cpp:"
done
