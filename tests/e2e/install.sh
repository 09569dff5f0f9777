# make install and uninstall, staged; the installed program finds its library and records.
need make
make -s -C "$ROOT" BUILD="$BUILD" DESTDIR="$PWD/stage" install >log 2>&1 || { cat log; fail "make install"; }
for f in bin/memprof lib/memprof/libmemprof.so lib/memprof/memprof_events.so lib/memprof/python/memprof/__init__.py \
    include/memprof.h share/bash-completion/completions/memprof share/zsh/site-functions/_memprof \
    share/fish/vendor_completions.d/memprof.fish; do
    [ -f stage/usr/local/$f ] || fail "$f is not installed"
done
MEMPROF=$PWD/stage/usr/local/bin/memprof
equal "the Python module" "$PWD/stage/usr/local/lib/memprof/python" "$("$MEMPROF" python-path)"
record_ok "$SAMPLES/leak"
equal "recorded" 2001 "$(total alloc_count)"
make -s -C "$ROOT" BUILD="$BUILD" DESTDIR="$PWD/stage" uninstall
equal "left over" "" "$(find stage -type f)"
