# Python embedded in an application by dlopen: threads with and without Python, a sub-interpreter, an interpreter that
# ends and one that begins anew. Who made a block is known by its size (tests/programs/python_embed.c).
library=
for try in /usr/lib/x86_64-linux-gnu/libpython3.1[0-4].so.1.0 /usr/lib/x86_64-linux-gnu/libpython3.9.so.1.0 \
    "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[0-4].*/lib/libpython3.1[0-4].so.1.0; do
    [ -f "$try" ] || continue
    echo "  $try"
    library=$try
    case $try in */versions/*) PYTHONHOME=${try%/lib/*}; export PYTHONHOME ;; *) unset PYTHONHOME ;; esac
    record_ok "$PROGRAMS/python_embed" "$try" >sound.txt || { cat sound.txt; fail "$try"; }
    # by size: count|functions of Python in the stack
    of_size() {
        sql "SELECT (SELECT sum(alloc_count) FROM site WHERE alloc_bytes = alloc_count * $1) || '|' ||
            (SELECT group_concat(DISTINCT v.function || ' ' || v.line)
            FROM (SELECT v.function, v.line FROM site s JOIN v_stack v USING(stack_id)
            WHERE s.alloc_count > 0 AND s.alloc_bytes = s.alloc_count * $1 AND v.language = 'python'
            ORDER BY depth) v)"
    }
    equal "main thread" "5|plain 2,<module> 3" "$(of_size 100033)"
    equal "sub-interpreter" "3|inside 2,<module> 3" "$(of_size 200033)"
    equal "main interpreter again" "4|again 2,<module> 3" "$(of_size 210033)"
    equal "visiting thread" "7|visitor 2,<module> 3" "$(of_size 300033)"
    at_least "blocks of the native thread" 1000 \
        "$(value "SELECT sum(alloc_count) FROM site WHERE alloc_bytes = alloc_count * 4321")"
    equal "Python in the native thread's stacks" "" "$(of_size 4321)"
    equal "after the end" "" "$(of_size 500000)"
    equal "anew" "2|anew 2,<module> 3" "$(of_size 510033)"
    equal "after dlclose" "" "$(of_size 520000)"
    equal "self line" "5" "$(sql "SELECT alloc_count FROM v_line
        WHERE function = 'plain' AND file = '<string>' AND line = 2 AND kind = 'heap'")"
    at_least "arenas of three interpreters and more" 3 "$(value "SELECT count(*) FROM segment WHERE kind = 'arena'")"
    equal "not understood" 0 "$(value "SELECT sum(value) FROM counter WHERE name = 'python_unknown'")"
    equal "no end of the program" 0 "$(value "SELECT count(*) FROM teardown")"
done
[ "$library" ] || skip "no shared libpython"
