# Executables and libraries whose segments have gaps between them (a larger page size than the machine's): the whole
# stack.
cat >gap.c <<'EOF'
#include <stdlib.h>
__attribute__((noinline)) void *inner(void)
{
    void *p = malloc(100);
    __asm__ volatile("" ::"r"(p) : "memory");
    return p;
}
__attribute__((noinline)) void *outer(void) { void *p = inner(); __asm__ volatile("" ::"r"(p) : "memory"); return p; }
int ENTRY(void) { return outer() == 0; }
EOF
echo 'int entry(void); int main(void) { return entry(); }' >user.c
gaps="-g -O1 -fno-builtin -Wl,-z,max-page-size=0x200000"
"$CC" $gaps -DENTRY=main -o pie gap.c
"$CC" $gaps -DENTRY=main -no-pie -o fixed gap.c
"$CC" $gaps -DENTRY=entry -shared -fPIC -o libgap.so gap.c
"$CC" -g -o user user.c ./libgap.so -Wl,-rpath,"$PWD"
for program in pie fixed user; do
    record_ok "./$program"
    equal "$program: stacks that end in unknown code" 0 \
        "$("$MEMPROF" sql out.db "SELECT coalesce(sum(value), 0) FROM counter WHERE name = 'stack_unknown'" --csv |
        tail -n 1)"
    "$MEMPROF" leaks out.db >leaks.txt
    for name in inner outer main; do
        grep -q "$name" leaks.txt || { cat leaks.txt; fail "$program: no $name in the stack"; }
    done
done
