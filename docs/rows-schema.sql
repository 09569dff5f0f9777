-- What memprof export --format rows-csv and rows-jsonl write, for PostgreSQL and DuckDB (ClickHouse:
-- rows-clickhouse.sql). One row for each line that allocated itself, device and kind. Bytes, nanoseconds and counts; NULL: not known. The statistics are those of docs/report.md.
CREATE TABLE memprof_rows(
  recording TEXT NOT NULL, -- the file, as it was named to export
  command TEXT, -- shell-quoted
  host TEXT,
  rank BIGINT, -- of a job: of -o %q{RANK}, or what launchers set
  "commit" TEXT, -- of the program: --commit, or what the CI system says
  start TIMESTAMP, -- of the program, UTC
  device TEXT NOT NULL, -- 'host', 'cuda:0'
  kind TEXT NOT NULL, -- 'heap', 'map', ...: they add up, none is the sum
  function TEXT, -- 'forward'; 'PATH+0x1234' of code without a symbol
  file TEXT,
  line BIGINT,
  module TEXT, -- executable or library; of a function in several, one of them
  alloc_count BIGINT,
  alloc_bytes BIGINT,
  free_count BIGINT,
  free_bytes BIGINT,
  temporary_count BIGINT,
  temporary_bytes BIGINT,
  at_peak_bytes BIGINT,
  at_peak_count BIGINT,
  at_kind_peak_bytes BIGINT,
  own_peak_bytes BIGINT,
  end_bytes BIGINT,
  end_count BIGINT,
  active_peak_bytes BIGINT,
  reserved_peak_bytes BIGINT,
  largest_bytes BIGINT,
  lifetime_ns BIGINT,
  resident_bytes BIGINT,
  resident_shared_bytes BIGINT,
  resident_huge_bytes BIGINT,
  swapped_bytes BIGINT,
  untouched_bytes BIGINT,
  resident_end_bytes BIGINT,
  start_bytes BIGINT,
  start_count BIGINT,
  net_growth_bytes BIGINT,
  mean_bytes BIGINT,
  mean_lifetime_ns BIGINT
);
