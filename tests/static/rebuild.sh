# What is built of a .def file is built again when that changes, however BUILD spells the folder, and when the folder
# has moved.
need make
mkdir tree elsewhere
cp -r "$ROOT/Makefile" "$ROOT/cli" "$ROOT/common" "$ROOT/formats" "$ROOT/profiler" "$ROOT/report" "$ROOT/tools" tree
mkdir tree/tests
cp -r "$ROOT/tests/cuda" "$ROOT/tests/torch" tree/tests
ln -s tree/out link
# built SPELLING OBJECT: how often that object is built by make
built() {
    make -s -C tree V= CC="$CC" OPT=-O0 NVCC= CUDA_TOP= BUILD="$1" "$2" >log 2>&1 || {
        cat log
        fail "make BUILD=$1 $2"
    }
    grep -c "build $2\$" log || true
}
# A file system's clock goes by ticks: what was built in this one would seem as new as a change made in it.
change_options() {
    sleep 0.05
    touch tree/cli/options.def
}
changed() { # FOLDER SPELLING...
    folder=$1 object=$1/obj/cli/options.o
    shift
    equal "built first in $folder" 1 "$(built "$1" "$object")"
    for spelling; do
        equal "built as $spelling, unchanged" 0 "$(built "$spelling" "$object")"
        change_options
        equal "built as $spelling, options.def changed" 1 "$(built "$spelling" "$object")"
    done
}
changed out out "$PWD/tree/out" ./out/ "$PWD/link" out
changed "$PWD/elsewhere" ../elsewhere "$PWD/elsewhere"
mv tree/out tree/moved
equal "built in a folder that has moved" 1 "$(built moved moved/obj/cli/options.o)"
change_options
equal "... and options.def changed" 1 "$(built moved moved/obj/cli/options.o)"

# A unit test is linked again for what it has of the library, and for nothing else of it.
linked=$BUILD/linked/test_units.d
[ -f "$linked" ] || fail "$linked: the linker did not say what test_units has"
grep -q 'unit/test_units: .*/obj/common/units\.o$' "$linked" || fail 'what it has'
lacks 'what it has not' "$linked" collect/drain.o
