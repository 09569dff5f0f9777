# One file that is compiled by several names is one file: of paths that are absolute, and of those that a build made
# relative (-ffile-prefix-map). A link's ".." is not what its name says.
mkdir -p a sub far/away
ln -s far/away link
cat >foo.c <<'EOF'
#include <stdlib.h>
void *volatile NAME;
void take_NAME(void) { NAME = malloc(1000); }
EOF
sed 's/1000/77/' foo.c >far/foo.c
cat >head.h <<'EOF'
#include <stdlib.h>
static __attribute__((noinline)) void *in_header(void) { return malloc(100); }
EOF
echo '#include "a/../head.h"
void *volatile one; void take_one(void) { one = in_header(); }' >one.c
echo '#include "../head.h"
void *volatile two; void take_two(void) { two = in_header(); }' >sub/two.c
echo 'void take_v(void); void take_w(void); void take_x(void); void take_y(void);
void take_one(void); void take_two(void);
int main(void) { take_v(); take_w(); take_x(); take_y(); take_one(); take_two(); return 0; }' >main.c

build() { # FLAG: foo.c by three names, and far/foo.c as link/../foo.c
    flags="-g -O1 -fno-builtin $1"
    "$CC" $flags -DNAME=v -Dtake_NAME=take_v -c ./foo.c -o v.o
    (cd sub && "$CC" $flags -DNAME=w -Dtake_NAME=take_w -c ../foo.c -o ../w.o)
    (cd a && "$CC" $flags -DNAME=x -Dtake_NAME=take_x -c ../sub/../foo.c -o ../x.o)
    "$CC" $flags -DNAME=y -Dtake_NAME=take_y -c "$2" -o y.o
    "$CC" $flags -c one.c -o one.o
    (cd sub && "$CC" $flags -c two.c -o ../two.o)
    "$CC" $flags -o paths main.c one.o two.o v.o w.o x.o y.o
    record_ok ./paths
}
blocks_of() { # FILE: blocks at each of its lines
    value "SELECT group_concat(n) FROM (SELECT sum(alloc_count) AS n FROM v_line WHERE file LIKE '%$1'
        AND kind = 'heap' GROUP BY file, line ORDER BY n)"
}
build "" link/../foo.c
equal "foo.c, and the other one" "1,3" "$(blocks_of /foo.c)"
equal "head.h" 2 "$(blocks_of /head.h)"
build "-ffile-prefix-map=$PWD=." far/foo.c
equal "relative: foo.c, and the other one" "1,3" "$(blocks_of foo.c)"
equal "relative: head.h" 2 "$(blocks_of head.h)"
equal "all of them" 6 "$(value "SELECT sum(alloc_count) FROM v_line WHERE kind = 'heap' AND (file LIKE '%foo.c' OR file
    LIKE '%head.h')")"
