# mmap, partial and spanning munmap, mremap, PROT_NONE reserves: kind map.
record_ok "$PROGRAMS/maps"
page=4096
equal "peak of maps" $((100 * page)) "$(value "SELECT max(own_peak_bytes) FROM v_line WHERE kind = 'map' AND function LIKE 'map%'")"
equal "end of maps" $((7 * page)) "$(total end_active_bytes map)"
equal "the leak" $((7 * page)) "$(value "SELECT sum(end_bytes) FROM v_line_total WHERE kind = 'map' AND function LIKE 'keep%'")"
equal "left of work" 0 "$(value "SELECT sum(end_bytes) FROM v_line_total WHERE kind = 'map' AND function LIKE 'work%'")"
