# The compiler of tests, which keeps what it made: it is taken where nothing has changed, and made anew where a source,
# a header beside it or of the tree, an argument, a library or the compiler has; what is wrong or warned of is not kept.
mkdir kept
compiler() { printf '#!/bin/sh\necho >>"%s/calls"\nexec %s "$@" # %s\n' "$PWD" "$CC" "$1" >real && chmod +x real; }
compiler first
ln -s "$ROOT/tests/compile.sh" cc
export COMPILER_CC="$PWD/real" KEPT_COMPILED="$PWD/kept" TREE_HEADERS=one TEST_DIR="$PWD"
: >calls
# makes WHAT STATUS CALLS [OPTION]...: a program that exits with STATUS; so often was the compiler called until now
makes() {
    what=$1 want=$2 calls=$3 status=0
    shift 3
    ./cc "$@" -o app app.c || fail "$what"
    ./app || status=$?
    equal "$what: it exits with" "$want" $status
    equal "$what: calls" "$calls" "$(wc -l <calls)"
}
printf '#include "app.h"\nint main(void) { return N; }\n' >app.c
echo '#define N 3' >app.h
makes first 3 1
makes again 3 1
echo '#define N 4' >app.h
makes 'another header' 4 2
echo '#define N 3' >app.h
makes 'the first header' 3 2
makes 'an option' 3 3 -O1
sed -i 's/return N/return N + 1/' app.c
makes 'another source' 4 4
TREE_HEADERS=two
makes 'the headers of the tree' 4 5
echo 'int other;' >other.c
"$CC" -shared -fPIC -o libother.so other.c
makes 'a library beside it' 4 6
compiler another
makes 'another compiler' 4 7

echo 'int main(void) { int unused; return 0; }' >app.c
for calls in 8 9; do
    ./cc -Wall -o app app.c 2>warned
    contains 'a warning' warned unused
    equal 'a warning: calls' $calls "$(wc -l <calls)"
done
echo 'int main(' >app.c
for calls in 10 11; do
    status=0
    ./cc -o app app.c 2>refused || status=$?
    equal 'refused' 1 $status
    equal 'refused: calls' $calls "$(wc -l <calls)"
done
