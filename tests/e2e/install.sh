# make install and uninstall, staged; the installed program finds its library and records.
need make
# what is there was built by the compiler itself: with another one make would build all of it again, below other tests
export CC="${COMPILER_CC:-$CC}" CXX="${COMPILER_CXX:-$CXX}"
make -s -C "$ROOT" BUILD="$BUILD" DESTDIR="$PWD/stage" install >log 2>&1 || { cat log; fail "make install"; }
for f in bin/memprof lib/memprof/libmemprof.so lib/memprof/memprof_events.so lib/memprof/python/memprof/__init__.py \
    include/memprof.h share/bash-completion/completions/memprof share/zsh/site-functions/_memprof \
    share/fish/vendor_completions.d/memprof.fish; do
    [ -f stage/usr/local/$f ] || fail "$f is not installed"
done
# into the dist-packages that Debian's Python has below PREFIX, which then imports it without memprof
modules=
if [ -x /usr/bin/python3 ]; then
    modules=$(/usr/bin/python3 -I -c 'import site
print(next((each for each in site.getsitepackages() if each.startswith("/usr/local/lib")), ""))')
fi
if [ -n "$modules" ]; then
    said=$(PYTHONPATH="$PWD/stage$modules" PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -c '
import memprof
print(memprof.is_recording(), memprof.__file__)')
    equal "in dist-packages" "False $PWD/stage$modules/memprof/__init__.py" "$said"
fi
MEMPROF=$PWD/stage/usr/local/bin/memprof
if command -v pkg-config >/dev/null; then
    PKG_CONFIG_PATH=$PWD/stage/usr/local/share/pkgconfig
    export PKG_CONFIG_PATH
    equal "pkg-config --cflags" "-I/usr/local/include" "$(pkg-config --cflags memprof | sed 's/ *$//')"
    version=$(sed -n 's/^VERSION := //p' "$ROOT/Makefile")
    equal "pkg-config --modversion" "$version" "$(pkg-config --modversion memprof)"
fi
equal "the Python module" "$PWD/stage/usr/local/lib/memprof/python" "$("$MEMPROF" python-path)"
record_ok "$SAMPLES/leak"
equal "recorded" 2001 "$(total alloc_count)"
make -s -C "$ROOT" BUILD="$BUILD" DESTDIR="$PWD/stage" uninstall
equal "left over" "" "$(find stage -type f)"
if [ -n "$modules" ]; then # of that name there is a package on PyPI
    mkdir "stage$modules/memprof"
    echo 1 >"stage$modules/memprof/__init__.py"
    make -s -C "$ROOT" BUILD="$BUILD" DESTDIR="$PWD/stage" install >log 2>&1
    make -s -C "$ROOT" BUILD="$BUILD" DESTDIR="$PWD/stage" uninstall >>log 2>&1
    contains "another's" log "left alone"
    equal "another's" 1 "$(cat "stage$modules/memprof/__init__.py")"
    rm -r "stage$modules/memprof"
fi
make -s -C "$ROOT" BUILD="$BUILD" DESTDIR="$PWD/stage" PYTHONDIR= install >log 2>&1
equal "none wanted" "" "$(find stage -path '*-packages*' -type f)"
# not run: another PREFIX would be built into the program that other tests use
make -n -C "$ROOT" BUILD="$BUILD" PREFIX=/opt/memprof install >log 2>&1
contains "no Python's place" log "where='';"
