# A table without rows says in one line why, and what to ask instead.
cat >maps.c <<'EOF'
#include <sys/mman.h>
int main(void)
{
    return mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
}
EOF
"$CC" -g -o maps maps.c
record_ok ./maps
says() { # TEXT OPTION...
    text=$1
    shift
    "$MEMPROF" report "$@" out.db >table.txt
    equal "$*" "$text" "$(tail -n 1 table.txt)"
}
says "Nothing: its rows are operators of PyTorch (aten::add), which are on no stack of this recording; --by function \
has a row for each function." --by op
of="without it shows the devices and kinds that there are."
says "Nothing of --kind heap: 'memprof report' $of" --by line --kind heap
says "Nothing of --kind heap --device host: 'memprof report' $of" --by size --kind heap --device host
says "Nothing was live then: --at peak shows what was when most was." --by line --at 0s
says "Nothing was live then: --at peak shows what was when most was." --by name --at 0s
says "Nothing was live then: --at peak shows what was when most was." --by category --at 0s
says "No segments: nothing in this recording is known to hand out parts of its memory." --segments --by heap
says "No segments: nothing in this recording is known to hand out parts of its memory." --segments --by line
# all keys that there are
"$MEMPROF" report --help >help.txt
for key in line function file module thread process device stack op size name category; do
    tr -s ' \n' '  ' <help.txt | grep -qE "one table by .*\b$key\b.* --at" || fail "--help lacks --by $key"
done
