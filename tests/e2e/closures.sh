# Closures that the compiler inlined into the C++ library's code that calls them: without -g the instance for the
# closure is all that says whose memory it is, so it has a row of its own.
need python3
cat >app.cpp <<'END'
#include <cstdlib>
#include <functional>
#include <future>
#include <string>
#include <thread>
void *volatile kept[16];
__attribute__((noinline)) void each(const std::function<void(int)> &f)
{
    for (int i = 0; i < 4; i++)
        f(i);
}
__attribute__((noinline)) void give(std::promise<std::string> &to, const std::string &text)
{
    to.set_value(text);
    kept[13] = nullptr;
}
int main(int argc, char **)
{
    std::thread([] { kept[8] = malloc(1000000); }).join();
    std::thread([] { kept[9] = malloc(2000000); }).join();
    each([](int i) { kept[i] = malloc(100000); });
    each([](int i) { kept[4 + i] = malloc(150000); });
    auto far = std::async(std::launch::async, [](int n) { return (kept[10] = malloc(300000)) ? n : 0; }, argc);
    auto late = std::async(std::launch::deferred, [](int n) { return (kept[11] = malloc(350000)) ? n : 0; }, argc);
    std::packaged_task<int(int)> task([](int n) { return (kept[12] = malloc(370000)) ? n : 0; });
    task(argc);
    std::promise<std::string> promise;
    give(promise, std::string(379999, 'x'));
    return far.get() + late.get() + (int)promise.get_future().get().size() == 0;
}
END
"$CXX" -O2 -o app app.cpp -pthread
record_ok ./app
# of BYTES COUNT: the function that has them, without what is the library's own in its name
of() {
    sql "SELECT function FROM v_function WHERE alloc_bytes = $1 AND alloc_count = $2 AND NOT inclusive
        AND kind = 'heap'"
}
# a closure is main::{lambda()#1} to gcc, main::$_0 to clang
is_closure='main::([{]lambda\([a-z]*\)#[0-9]+[}]|[$]_[0-9]+)'
for row in "1000000 1 thread::_State_impl" "2000000 1 thread::_State_impl" "400000 4 _Function_handler" \
    "600000 4 _Function_handler" "300000 1 _Function_handler" "350000 1 _Function_handler" \
    "370000 1 _Function_handler"; do
    set -- $row
    of "$1" "$2" | grep -qE "^std::$3<.*$is_closure" || fail "no closure has $1 bytes: $(of "$1" "$2")"
done
case "$(of 380000 1)" in 'give('*) ;; *) fail "what the library calls of its own: $(of 380000 1)" ;; esac
"$MEMPROF" leaks >leaks.txt
awk '/^1\.91 MiB/ { getline; print $2 }' leaks.txt >first.txt
grep -qE "^std::thread::_State_impl<$is_closure>::_M_run\$" first.txt ||
    fail "its stack begins with it: $(cat first.txt leaks.txt)"
# in no table do two of them look the same, nor does a table leave out which closure it is
"$MEMPROF" report --by line --top 0 >table.txt
equal "closures in the table" 7 "$(grep -oE "^ *[0-9].*std::[a-z:]*_[A-Za-z_]*<.*$is_closure>::_M_[a-z]*" table.txt |
    grep -oE "$is_closure" | sort -u | grep -c .)"
"$MEMPROF" report --html=page.html
grep -qE '>std::thread::_State_impl&lt;main::([{]lambda#[0-9][}]|[$]_[0-9])&gt;::_M_run</a>' page.html ||
    fail "the page's findings do not say which closure"
"$MEMPROF" lines --func _M_run >lines.txt
equal "a heading for each closure" "$(sql "SELECT count(*) FROM function WHERE plain_name = '_M_run'")" \
    "$(grep -cE "^## std::.*$is_closure.*_M_run  " lines.txt)"

# the same where the library's code has lines
"$CXX" -O2 -g -o lines app.cpp -pthread
record_ok ./lines
for bytes in 1000000 2000000 300000 350000 370000; do
    equal "the closure of $bytes" "$(grep -n "malloc($bytes)" app.cpp | cut -d: -f1)" \
        "$(sql "SELECT line FROM v_line WHERE alloc_bytes = $bytes AND kind = 'heap'")"
done

# nothing but the library's templates and its start of a thread: the stack has them all
cat >bare.cpp <<'END'
#include <thread>
#include <vector>
int main()
{
    typedef std::vector<char> bytes;
    bytes *kept = new bytes;
    std::thread(static_cast<void (bytes::*)(std::size_t)>(&bytes::resize), kept, 5000000).join();
    return kept->size() == 0;
}
END
for how in "-O2" "-O2 -g"; do
    "$CXX" $how -o bare bare.cpp -pthread
    record_ok ./bare
    "$MEMPROF" leaks >leaks.txt
    contains "the template, $how" leaks.txt "  std::vector<char, std::allocator<char> >::_M_default_append"
done

# Between two builds of a program a closure's number says nothing certain of which one it is.
cat >more.cpp <<'END'
#include <cstdlib>
#include <thread>
void *volatile kept[2];
int main(int argc, char **)
{
#ifdef MORE
    std::thread([] { kept[0] = malloc(1000000); }).join();
#endif
    std::thread([argc] { kept[1] = malloc(2000000 + argc); }).join();
}
END
# rec NAME FLAGS [ARG]...: NAME.db
rec() {
    name=$1
    "$CXX" $2 -o more more.cpp -pthread
    shift 2
    record_ok ./more "$@"
    mv out.db "$name.db"
}
rec old "-O2"
rec again "-O2" argument
rec new "-O2 -DMORE"
rec old_lines "-O2 -g"
rec new_lines "-O2 -g -DMORE"
# closures OLD NEW: how those were matched that changed, and what they allocated more
closures() {
    "$MEMPROF" diff "$1" "$2" --csv >rows.csv
    sqlite3 :memory: -cmd '.import --csv rows.csv d' "SELECT match, is_by_number, alloc_bytes_new - alloc_bytes_old
        FROM d WHERE function LIKE '%_M_run%' OR abs(alloc_bytes_new - alloc_bytes_old) > 100000 ORDER BY 1" |
        grep -v '|0|0$' | tr '\n' ' '
}
equal "one build" "same|0|1 " "$(closures old.db again.db)"
equal "a closure more" "new|0|2000001 same|1|-1000001 " "$(closures old.db new.db)"
got=$(closures old_lines.db new_lines.db)
case $got in
"new|0|1000000 ") ;; # gcc: operator(), by its line
"moved|1|-1000001 new|0|2000001 ") ;; # clang: main::$_0::operator()
*) fail "with lines: $got" ;;
esac
"$MEMPROF" diff old.db new.db >diff.txt
contains "in the table" diff.txt "  by number  "

# what Rust's threads run, of which nothing else is on the stack either
command -v rustc >/dev/null || exit 0
cat >app.rs <<'END'
use std::hint::black_box;
use std::{mem, thread};
fn main() {
    thread::spawn(|| mem::forget(black_box(vec![1u8; black_box(1000000)]))).join().unwrap();
    thread::spawn(|| mem::forget(black_box(vec![1u8; black_box(2000000)]))).join().unwrap();
}
END
rustc -O -C symbol-mangling-version=v0 -o rust app.rs
record_ok ./rust
"$MEMPROF" leaks >leaks.txt
for closure in "1.91 MiB 1" "976.56 KiB 0"; do
    equal "of ${closure% ?}" "std::sys::backtrace::__rust_begin_short_backtrace<app::main::{closure#${closure##* }}>" \
        "$(awk -v what="${closure% ?} in 1 block" 'index($0, what) == 1 { getline; print $2 }' leaks.txt)"
done
