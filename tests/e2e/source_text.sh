# memprof_source: the text of code that is in no file, from several threads at once, and no more than a process may say.
"$PROGRAMS/source_text" -1 || fail "without memprof"
record_ok "$PROGRAMS/source_text" 0
sound
equal "the text" 'one|two|' "$(value "SELECT replace(source, char(10), '|') FROM file WHERE path = '<made>'")"
equal "of threads" "40 9000 9000 4" "$(value "SELECT count(*) || ' ' || min(length(source)) || ' ' ||
    max(length(source)) || ' ' || count(DISTINCT source) FROM file WHERE path GLOB '<thread*'")"
equal "the rest" 524288 "$(value "SELECT length(source) FROM file WHERE path = '<rest>'")"
equal "no more" 0 "$(value "SELECT count(*) FROM file WHERE path IN ('<large>', '<more>')")"
equal "nothing lost" 0 "$(value "SELECT coalesce(sum(value), 0) FROM counter WHERE name = 'bad_records'")"
