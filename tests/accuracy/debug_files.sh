# Debug information in other files than the program: each place gives the same answers as the program with everything in
# it; a file that changed since the run is refused; no network without DEBUGINFOD_URLS.
need "$CXX" objcopy strip nm xz
LOOKUP=$PROGRAMS/lookup
cp "$ROOT/samples/templates.cpp" one.cpp
sed 's/int main(/int other_main(/' one.cpp >two.cpp
echo 'int other_main(int, char **); int main(int c, char **v) { return other_main(c, v); }' >main.cpp
sed -i 's/int other_main()/int other_main(int, char **)/' two.cpp
"$CXX" -std=c++17 -O2 -g -o whole two.cpp main.cpp
objdump -d --no-show-raw-insn whole |
    awk '/call / { want = 1; next } want && $1 ~ /:$/ { sub(":", "", $1); print $1; want = 0 }' >sites
at_least "call sites" 100 "$(wc -l <sites)"
answers() { "$LOOKUP" "$1" <sites 2>source; }
answers "$PWD/whole" >expected
grep -q 'Ring.*templates\|two.cpp' expected || fail "no lines in what is expected"
same() { # WHAT FILE
    answers "$2" >got || fail "$1: look-up failed"
    cmp -s expected got || { diff expected got | head -n 20; cat source; fail "$1: other answers"; }
    echo "  $1: same"
}

objcopy --only-keep-debug whole two.debug
strip -o stripped whole

# found by the debug link: beside the program, and in .debug
cp stripped linked && objcopy --add-gnu-debuglink=two.debug linked
same "debug link, same directory" "$PWD/linked"
mkdir -p .debug sub/.debug && cp linked sub/linked && mv two.debug sub/.debug/two.debug
same "debug link, .debug" "$PWD/sub/linked"
rm -rf sub/.debug/*
answers "$PWD/sub/linked" >got
lacks "debug link that leads nowhere" got two.cpp
# a debug file of another program must not be taken
echo 'int main() {}' >other.cpp && "$CXX" -g -o other other.cpp && objcopy --only-keep-debug other sub/two.debug
answers "$PWD/sub/linked" >got
lacks "debug file of another program" got other.cpp

# compressed sections; separate units (.dwo)
cp whole packed && objcopy --compress-debug-sections=zlib packed && same "compressed sections" "$PWD/packed"

# two units that share their types in a .dwz file
if command -v dwz >/dev/null; then
    cp whole a && cp whole b
    dwz -m shared.dwz a b 2>/dev/null && [ -f shared.dwz ] || skip "dwz made no file"
    same "dwz alternate file" "$PWD/a"
fi

# symbol tables only: names without lines
names() { awk -F'\t' '{ print $1, $3 }' got | sort -u | awk '$2 != "??"' | wc -l; }
cp whole nodebug && strip --strip-debug nodebug
answers "$PWD/nodebug" >got
contains "symbol table" source symtab
at_least "functions from .symtab" 50 "$(names)"
all=$(names)
# .gnu_debugdata: a compressed symbol table inside a stripped program
objcopy -S --remove-section .gdb_index --remove-section .comment nodebug mini 2>/dev/null
objcopy --only-keep-debug nodebug mini
xz -9 -k -f mini
cp stripped embedded && objcopy --add-section .gnu_debugdata=mini.xz embedded
answers "$PWD/embedded" >got
equal "functions from .gnu_debugdata" "$all" "$(names)"
answers "$PWD/stripped" >got
at_most "functions without any" 10 "$(names)"

# the recording: refused when the file is another one by then
"$CXX" -std=c++17 -O2 -g -o program one.cpp
cat >change.sh <<'END'
./program
cp other program.new && mv program.new program
END
record sh change.sh
contains "changed file" run.err events
equal "changed file" "none: file changed since the run" \
    "$(sql "SELECT DISTINCT symbols FROM module WHERE path LIKE '%/program'")"

# nothing is asked of the network, and nothing loaded for it, without the variable
LD_DEBUG=libs "$LOOKUP" "$PWD/stripped" <sites >/dev/null 2>loaded
if grep -q 'debuginfod\|libcurl' loaded; then fail "libdebuginfod loaded without DEBUGINFOD_URLS"; fi

# ... and with it a server is asked
command -v python3 >/dev/null || exit 0
objcopy --only-keep-debug "$PWD/whole" two.debug
id=$(readelf -n stripped | sed -n 's/.*Build ID: //p')
mkdir -p "www/buildid/$id"
cp two.debug "www/buildid/$id/debuginfo"
cat >server.py <<'END'
import functools, http.server
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory='www')
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)
print(server.server_address[1], flush=True)
server.serve_forever()
END
python3 server.py >port 2>server.log &
server=$!
trap 'kill $server' EXIT
for _ in 1 2 3 4 5 6 7 8 9 10; do [ -s port ] || sleep 0.2; done
export DEBUGINFOD_URLS="http://127.0.0.1:$(cat port)" DEBUGINFOD_CACHE_PATH="$PWD/debuginfod" \
    XDG_CACHE_HOME="$PWD/cache"
LD_DEBUG=libs "$LOOKUP" "$PWD/stripped" </dev/null >/dev/null 2>loaded
grep -q 'calling init.*debuginfod' loaded || exit 0 # not installed here
same "debuginfod" "$PWD/stripped"
