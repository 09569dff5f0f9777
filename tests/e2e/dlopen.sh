# Two plugins loaded in turns at one address: each allocation is told by the right one. Also with RTLD_DEEPBIND.
a=$PROGRAMS/lib_plugin_a.so b=$PROGRAMS/lib_plugin_b.so
record_ok "$PROGRAMS/dlloop" 200 "$a" "$b"
contains "the addresses were shared" run.err "same address"
equal "plugin a" "500|25000|500" "$(by_function alloc_in_a | cut -d'|' -f1-3)"
equal "plugin b" "500|30000|500" "$(by_function alloc_in_b | cut -d'|' -f1-3)"
equal "epochs" 200 "$(value "SELECT count(*) FROM module WHERE path LIKE '%lib_plugin_%' AND unload_ns IS NOT NULL")"
record_ok "$PROGRAMS/dlloop" 10 "$a" "$b" deep
echo "deep: $(by_function alloc_in_a) of 25 blocks are seen"
