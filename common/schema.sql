-- memprof: one SQLite file per recording. Readers: plain sqlite3 opens every table and every view but v_event (which
-- needs `memprof sql`, or `.load` of memprof_events.so, because events are stored as compressed chunks). Where there are
-- very many stacks, stack, site and site_line have those that are looked at most; the others need the same (see packed).
-- Sizes are bytes, times are nanoseconds since the run began (meta 'start_unix_ns' is that instant's wall clock).
-- application_id 0x4D505246 ("MPRF"), user_version = schema version.

CREATE TABLE meta( -- one fact a row
  key   TEXT PRIMARY KEY,
  value ANY
) STRICT, WITHOUT ROWID;
-- keys: format ('memprof'), writer_version, state ('recording' | 'recorded' | 'complete': events all there | all there and
--   symbolized), partial (why the file is not whole; absent when it is), start_unix_ns (the program's start), duration_ns
--   (to the end of its last process; until then, and where the collector was killed: what all in here is up to), host,
--   boot_id and start_monotonic_ns (the program's start on the clock that all recordings of one boot of a machine share),
--   rank (which one of a job's it is, where -o or the environment says so),
--   cwd, command (shell-quoted), options, python_malloc (PYTHONMALLOC as the program got it), page_bytes, machine_bytes
--   (memory and swap; absent where not known), address_limit_bytes (RLIMIT_AS as the program got it; absent without one),
--   clock ('tsc'|'monotonic'|'unix'|'none'), collector_cpu_ns, collector_peak_rss_bytes, symbolize_ns, event_count,
--   events_kept ('all'|'last'|'none'), forked_heap ('blocks': what forks' children free of their
--   parents' blocks is in the events, start_ns is the fork, and reserved bytes leave out what they have of their parents'
--   heaps; 'own': the last alone; older files lack it), collector_pid, own_peak_incomplete (why own peaks of several sites are not all
--   known; absent when they are), mallocs (jemalloc, tcmalloc, mimalloc: those whose libraries were loaded, with commas);
--   replaced_site_id (where the largest block came from whose free was not seen; absent where there was none);
--   type_peak_active:TYPE, type_peak_reserved:TYPE and the same with _ns (where a type has several devices, the most that
--   they held together, and when); paused_ns (how long the recording was paused: marks of the domain 'pause' say when);
--   sample_bytes (of a sampled recording: so many bytes from one sampled block of the heap to the next, in the mean), sample_seed,
--   least_bytes (smaller blocks of the heap are in left_out alone);
--   attached (1: begun while the process ran, whose blocks of before are not known; absent otherwise);
--   of an imported snapshot also imported_from, import_note (what is unknown, or does not fit together), unknown_keys,
--   of another tool's file imported_file, imported_form (what it is) and import_note,
--   of a merged file merged (how many recordings it was made of), merged_clock ('one': their times can be compared; 'several':
--   of machines whose clocks may differ; else the mark that their times were aligned by),
--   torch.SETTING (the allocator's settings); of run --torch-snapshot, torch_check (how PyTorch's own history compares)

CREATE TABLE process( -- one row an image: an exec ends one and starts the next
  process_id   INTEGER PRIMARY KEY,
  pid          INTEGER NOT NULL,
  parent_id    INTEGER REFERENCES process,  -- the image that forked or executed this one; NULL: the first
  start_kind   TEXT NOT NULL,               -- 'exec' | 'fork'
  exe          TEXT NOT NULL,
  command_line TEXT NOT NULL,               -- shell-quoted arguments, as the last exec gave them: a fork has its parent's
  start_ns     INTEGER NOT NULL,            -- of a fork: as it began, before which all is its parent's
  end_ns       INTEGER,                     -- NULL: not seen to end
  end_kind     TEXT,                        -- 'exit' | 'signal' | 'exec' | 'unknown'
  exit_status  INTEGER,
  exit_signal  INTEGER,
  peak_rss_bytes   INTEGER,                 -- of this image; NULL: not known
  peak_rss_sampled INTEGER,                 -- 0: as the kernel says at its end; 1: up to the last sample
  not_recorded     TEXT,                    -- why nothing of it is; NULL: it was recorded
  title            TEXT                     -- what it called itself at its end (setproctitle, prctl); NULL: nothing else
) STRICT;

CREATE TABLE thread(
  thread_id  INTEGER PRIMARY KEY,
  process_id INTEGER NOT NULL REFERENCES process,
  tid        INTEGER NOT NULL,
  name       TEXT NOT NULL,
  start_ns   INTEGER NOT NULL,
  end_ns     INTEGER
) STRICT;

CREATE TABLE device( -- 'host', 'cuda:0', ...
  device_id   INTEGER PRIMARY KEY, -- host is 0
  name        TEXT NOT NULL UNIQUE,
  total_bytes INTEGER,             -- capacity, where known
  uuid        TEXT,                -- 'GPU-...', as nvidia-smi writes it
  model       TEXT                 -- what its driver calls it
) STRICT;

CREATE TABLE hook( -- intercepted functions
  hook_id INTEGER PRIMARY KEY,
  name    TEXT NOT NULL,
  kind    TEXT NOT NULL -- 'heap' | 'map' | 'pinned' | ...
) STRICT;

CREATE TABLE module( -- an ELF file, or other code, mapped into a process for a while (its epoch)
  module_id     INTEGER PRIMARY KEY,
  process_id    INTEGER NOT NULL REFERENCES process,
  path          TEXT NOT NULL,
  build_id      TEXT,             -- hexadecimal
  start_address INTEGER NOT NULL, -- addresses are stored as signed 64-bit
  end_address   INTEGER NOT NULL,
  bias          INTEGER NOT NULL, -- run-time address less the file's own
  load_ns       INTEGER NOT NULL, -- first seen in a stack
  unload_ns     INTEGER,
  symbols       TEXT              -- where its symbols came from: 'dwarf', 'symtab', 'perf map', 'imported' (with another tool's file), 'none: REASON'; NULL: not looked
) STRICT;

CREATE TABLE file( -- source files
  file_id INTEGER PRIMARY KEY,
  path    TEXT NOT NULL UNIQUE, -- as the debug information names it, made absolute
  source  TEXT                  -- its text, where it was asked for and read
) STRICT;

CREATE TABLE function(
  function_id INTEGER PRIMARY KEY,
  name        TEXT NOT NULL,    -- demangled, with arguments where the symbol has them; "f(int) [a.cpp]" where several files have one
  plain_name  TEXT NOT NULL,    -- the name alone: no scope, template or call arguments
  raw_name    TEXT NOT NULL,    -- as in the symbol table
  file_id     INTEGER REFERENCES file, -- where it is declared
  line        INTEGER,
  is_allocator INTEGER NOT NULL DEFAULT 0 -- part of the allocator family, or of Python's import: never the allocating line
) STRICT;

CREATE TABLE address( -- a distinct return address in a module
  address_id INTEGER PRIMARY KEY,
  module_id  INTEGER REFERENCES module, -- NULL: in no known module
  offset     INTEGER NOT NULL           -- the file's own address (run-time address less bias); absolute without a module;
                                        -- negative: code that names itself (Python, an imported recording)
) STRICT;

CREATE TABLE frame( -- what an address means: its inline chain, depth 0 the innermost inlined function
  address_id   INTEGER NOT NULL REFERENCES address,
  inline_depth INTEGER NOT NULL,
  function_id  INTEGER REFERENCES function, -- NULL: no symbol
  file_id      INTEGER REFERENCES file,
  line         INTEGER,                     -- NULL: no line information
  column       INTEGER,
  language     TEXT NOT NULL DEFAULT 'native', -- 'native' | 'python' | 'jit'
  is_inline    INTEGER NOT NULL DEFAULT 0,  -- 1: inlined into the frame of the next inline_depth
  frame_id     INTEGER GENERATED ALWAYS AS (address_id * 64 + inline_depth) VIRTUAL, -- a chain has at most 64
  PRIMARY KEY(address_id, inline_depth)
) STRICT, WITHOUT ROWID;

CREATE TABLE stack( -- a tree: a node is a frame under its caller
  stack_id   INTEGER PRIMARY KEY,
  parent_id  INTEGER REFERENCES stack, -- the caller; NULL: the outermost frame
  address_id INTEGER NOT NULL REFERENCES address,
  depth      INTEGER NOT NULL,         -- 1: outermost
  flags      INTEGER NOT NULL DEFAULT 0 -- on the outermost node: 1 cut at the depth limit, 2 ends in unknown code
) STRICT;

CREATE TABLE site( -- one allocating stack, by device and kind: its totals. All statistics: common/stat.def
  site_id             INTEGER PRIMARY KEY,
  stack_id            INTEGER NOT NULL REFERENCES stack, -- 0: unknown
  process_id          INTEGER REFERENCES process, -- the process that first allocated here
  device_id           INTEGER NOT NULL REFERENCES device,
  kind                TEXT NOT NULL,
  alloc_count         INTEGER NOT NULL,
  alloc_bytes         INTEGER NOT NULL,
  free_count          INTEGER NOT NULL,
  free_bytes          INTEGER NOT NULL,
  temporary_count     INTEGER NOT NULL,
  temporary_bytes     INTEGER NOT NULL,
  at_peak_bytes       INTEGER NOT NULL,
  at_peak_count       INTEGER NOT NULL,
  at_kind_peak_bytes  INTEGER NOT NULL,
  own_peak_bytes      INTEGER NOT NULL,
  end_bytes           INTEGER NOT NULL,
  end_count           INTEGER NOT NULL,
  active_peak_bytes   INTEGER NOT NULL,
  reserved_peak_bytes INTEGER NOT NULL,
  largest_bytes       INTEGER NOT NULL,
  lifetime_ns         INTEGER NOT NULL
) STRICT;

CREATE TABLE site_sample( -- of a sampled recording (meta sample_bytes): the size of each block of a site. Where there is a
                          -- row, the site's numbers are estimates, that of its largest block apart (docs/sampling.md)
  site_id      INTEGER PRIMARY KEY REFERENCES site,
  size_bytes   INTEGER NOT NULL,
  count_spread REAL NOT NULL,   -- the variance of a count of them is count * count_spread
  excess_bytes INTEGER NOT NULL -- what each stands for beside itself: the variance of a sum of their bytes is bytes * excess_bytes
) STRICT;

CREATE TABLE account_spread( -- of a row of account, in a sampled recording: the variances of its estimates; those of bytes in
                             -- units of meta sample_bytes, those of counts in parts of 1/256. No row: not known
  scope              TEXT NOT NULL,
  key_id             INTEGER NOT NULL,
  inclusive          INTEGER NOT NULL,
  device_id          INTEGER NOT NULL REFERENCES device,
  kind               TEXT NOT NULL,
  alloc_count        INTEGER NOT NULL,
  alloc_bytes        INTEGER NOT NULL,
  free_count         INTEGER NOT NULL,
  free_bytes         INTEGER NOT NULL,
  at_peak_bytes      INTEGER NOT NULL,
  at_peak_count      INTEGER NOT NULL,
  at_kind_peak_bytes INTEGER NOT NULL,
  end_bytes          INTEGER NOT NULL,
  end_count          INTEGER NOT NULL,
  PRIMARY KEY(scope, inclusive, device_id, kind, key_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE left_out( -- heap blocks below meta least_bytes, which are in no other table: 2^(log2_size) <= size < 2^(log2_size + 1); size 0 is class -1
  log2_size   INTEGER PRIMARY KEY,
  alloc_count INTEGER NOT NULL,
  alloc_bytes INTEGER NOT NULL
) STRICT;

CREATE TABLE teardown( -- processes whose interpreter (Python) took itself down before they ended; what was live where that
                       -- began is what their program had left, so that counts as live at the end: end_bytes, end_count
  process_id INTEGER PRIMARY KEY,
  time_ns    INTEGER NOT NULL
) STRICT;

CREATE TABLE site_teardown( -- of a site's end_bytes and end_count: what that freed, which is in free_bytes, too
  site_id     INTEGER PRIMARY KEY REFERENCES site,
  freed_bytes INTEGER NOT NULL,
  freed_count INTEGER NOT NULL
) STRICT;

CREATE TABLE site_kept( -- of a site's end_count: what such processes still had when they ended
  site_id    INTEGER PRIMARY KEY REFERENCES site,
  kept_count INTEGER NOT NULL
) STRICT;

CREATE TABLE site_start( -- of a part of a rotated recording: what was live when it began (inherited). Not among the site's
                         -- allocations; freed in the part it is among its frees
  site_id     INTEGER PRIMARY KEY REFERENCES site,
  start_bytes INTEGER NOT NULL,
  start_count INTEGER NOT NULL,
  left_bytes  INTEGER NOT NULL, -- of these: not among the site's end_bytes and end_count
  left_count  INTEGER NOT NULL
) STRICT;

CREATE TABLE total_start( -- the same by device and kind, and of kind 'all'
  device_id   INTEGER NOT NULL REFERENCES device,
  kind        TEXT NOT NULL,
  start_bytes INTEGER NOT NULL,
  start_count INTEGER NOT NULL,
  PRIMARY KEY(device_id, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE account_start( -- the same by the keys of account, where there is any
  scope       TEXT NOT NULL,
  key_id      INTEGER NOT NULL,
  inclusive   INTEGER NOT NULL,
  device_id   INTEGER NOT NULL,
  kind        TEXT NOT NULL,
  start_bytes INTEGER NOT NULL,
  start_count INTEGER NOT NULL,
  PRIMARY KEY(scope, inclusive, device_id, kind, key_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE packed( -- where there are many stacks or sites: all rows of stack, or of site and those beside it, as compressed
  -- columns (docs/format.md). The plain tables then have those that are looked at most (docs/sql.md)
  table_name  TEXT NOT NULL,    -- 'stack' | 'site' | 'resident_site'
  part        INTEGER NOT NULL, -- 0: the rows; 1, 2, ...: newer values of some of them, while it is being written
                                -- of resident_site: the scan_id
  column_name TEXT NOT NULL,
  first_row   INTEGER NOT NULL, -- the id of the first row; of a later part, its place in it
  row_count   INTEGER NOT NULL,
  data        BLOB NOT NULL,
  PRIMARY KEY(table_name, part, column_name, first_row)
) STRICT;

CREATE TABLE total( -- by device and kind; kind 'all' sums the device and has its own exact peak
  device_id           INTEGER NOT NULL REFERENCES device,
  kind                TEXT NOT NULL,
  alloc_count         INTEGER NOT NULL,
  free_count          INTEGER NOT NULL,
  alloc_bytes         INTEGER NOT NULL,
  free_bytes          INTEGER NOT NULL,
  temporary_count     INTEGER NOT NULL,
  temporary_bytes     INTEGER NOT NULL,
  peak_active_bytes   INTEGER NOT NULL,
  peak_active_ns      INTEGER NOT NULL,
  peak_active_count   INTEGER NOT NULL, -- blocks live at that peak
  peak_reserved_bytes INTEGER,                   -- NULL: not known (what was imported does not say it)
  peak_reserved_ns    INTEGER,
  end_active_bytes    INTEGER NOT NULL, -- still live when their process ended (table teardown)
  end_count           INTEGER NOT NULL,
  realloc_count       INTEGER NOT NULL, -- reallocations among alloc_count
  lifetime_ns         INTEGER NOT NULL,
  PRIMARY KEY(device_id, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE account( -- totals by line, function, file, module and thread; written when the symbols are known
  scope               TEXT NOT NULL,    -- 'line' | 'function' | 'file' | 'module' | 'thread' | 'op'
  key_id              INTEGER NOT NULL, -- line.line_id, function_id, file_id, module_key.key_id, thread_id, op_id; of a
                                        -- function without a symbol -line_id; 0: no file, no module
  inclusive           INTEGER NOT NULL, -- 0: self; 1: with everything that it calls (recursion counted once)
  device_id           INTEGER NOT NULL REFERENCES device,
  kind                TEXT NOT NULL,    -- a kind, or 'all'
  alloc_count         INTEGER NOT NULL,
  alloc_bytes         INTEGER NOT NULL,
  free_count          INTEGER NOT NULL,
  free_bytes          INTEGER NOT NULL,
  temporary_count     INTEGER NOT NULL,
  temporary_bytes     INTEGER NOT NULL,
  at_peak_bytes       INTEGER NOT NULL,
  at_peak_count       INTEGER NOT NULL,
  at_kind_peak_bytes  INTEGER NOT NULL,
  own_peak_bytes      INTEGER,          -- exact where the events are kept, or where one site makes the row; else NULL
  end_bytes           INTEGER NOT NULL,
  end_count           INTEGER NOT NULL,
  active_peak_bytes   INTEGER NOT NULL,
  reserved_peak_bytes INTEGER NOT NULL,
  largest_bytes       INTEGER NOT NULL,
  lifetime_ns         INTEGER NOT NULL,
  PRIMARY KEY(scope, inclusive, device_id, kind, key_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE line( -- a source line of a function, or a function without source (file_id NULL, line 0)
  line_id     INTEGER PRIMARY KEY,
  function_id INTEGER REFERENCES function, -- NULL: an address without a symbol (module_key_id and offset say which)
  file_id     INTEGER REFERENCES file,
  line        INTEGER NOT NULL,
  module_key_id INTEGER,  -- module_key, for rows without a function
  offset      INTEGER
) STRICT;

CREATE TABLE op( -- PyTorch's operators, as far as they are on the stacks: one row for each phase and module that one runs in
  op_id  INTEGER PRIMARY KEY,
  name   TEXT NOT NULL, -- 'aten::addmm': the innermost that does more than make a tensor
  phase  TEXT,          -- 'forward' | 'backward' | 'optimizer'; NULL: none of them
  module TEXT           -- the modules whose forward() runs, outermost first: 'Net.Block.Linear'; NULL: none (backward)
) STRICT;

CREATE TABLE site_op( -- the operator that a site allocates in
  site_id INTEGER PRIMARY KEY REFERENCES site,
  op_id   INTEGER NOT NULL REFERENCES op
) STRICT;

CREATE TABLE module_key( -- modules of all processes by path and build-id
  key_id   INTEGER PRIMARY KEY,
  path     TEXT NOT NULL,
  build_id TEXT
) STRICT;

CREATE TABLE size_class( -- histogram of the sizes requested: 2^(log2_size) <= size < 2^(log2_size + 1); size 0 is class -1
  device_id   INTEGER NOT NULL REFERENCES device,
  kind        TEXT NOT NULL,
  log2_size   INTEGER NOT NULL,
  alloc_count INTEGER NOT NULL,
  alloc_bytes INTEGER NOT NULL,
  free_count  INTEGER NOT NULL,
  temporary_count INTEGER NOT NULL,
  lifetime_ns INTEGER NOT NULL,
  PRIMARY KEY(device_id, kind, log2_size)
) STRICT, WITHOUT ROWID;

CREATE TABLE lifetime_class( -- histogram of the lifetimes of freed blocks: 2^(log2_ns) <= lifetime < 2^(log2_ns + 1)
  device_id   INTEGER NOT NULL REFERENCES device,
  kind        TEXT NOT NULL,
  log2_ns     INTEGER NOT NULL,
  free_count  INTEGER NOT NULL,
  free_bytes  INTEGER NOT NULL,
  PRIMARY KEY(device_id, kind, log2_ns)
) STRICT, WITHOUT ROWID;

CREATE TABLE peak( -- the exact peaks, and (rank > 0) further local maxima of active bytes, largest first
  device_id   INTEGER NOT NULL REFERENCES device,
  kind        TEXT NOT NULL,    -- a kind or 'all'
  what        TEXT NOT NULL,    -- 'active' | 'reserved'
  rank        INTEGER NOT NULL, -- 0: the peak
  time_ns     INTEGER NOT NULL,
  value_bytes INTEGER NOT NULL,
  site_id     INTEGER REFERENCES site, -- active, rank 0: the site that held most
  PRIMARY KEY(device_id, kind, what, rank)
) STRICT, WITHOUT ROWID;

CREATE TABLE timeline( -- a min/max pyramid: level 0 the finest. A bucket of level L spans width_ns(level 0) * 2^L
  device_id          INTEGER NOT NULL REFERENCES device,
  level              INTEGER NOT NULL,
  time_ns            INTEGER NOT NULL, -- start of the bucket
  width_ns           INTEGER NOT NULL,
  active_min_bytes   INTEGER NOT NULL,
  active_max_bytes   INTEGER NOT NULL,
  active_max_ns      INTEGER NOT NULL, -- when the maximum was
  active_last_bytes  INTEGER NOT NULL, -- at the end of the bucket
  allocated_max_bytes INTEGER NOT NULL, -- active less what waits for a stream to free it
  allocated_last_bytes INTEGER NOT NULL,
  reserved_max_bytes INTEGER NOT NULL,
  reserved_max_ns    INTEGER NOT NULL,
  reserved_last_bytes INTEGER NOT NULL,
  rss_max_bytes      INTEGER,          -- of a GPU: bytes in use as its driver says. NULL: no sample
  rss_last_bytes     INTEGER,
  alloc_count        INTEGER NOT NULL, -- allocations in the bucket
  alloc_bytes        INTEGER NOT NULL,
  PRIMARY KEY(device_id, level, time_ns)
) STRICT, WITHOUT ROWID;

CREATE TABLE resident_scan( -- looks at which pages of a process are present (docs/format.md); those that were kept
  scan_id       INTEGER PRIMARY KEY,
  process_id    INTEGER NOT NULL REFERENCES process,
  is_peak       INTEGER NOT NULL, -- 1: of the round at the highest sum of resident bytes, one a process
  is_last       INTEGER NOT NULL, -- 1: the last one of its process, before its end
  time_ns       INTEGER NOT NULL, -- when it began; the live blocks are those of its end,
  duration_ns   INTEGER NOT NULL, -- and took so long,
  moved_count   INTEGER,          -- so many events came while the round looked. NULL: not known
  rss_bytes     INTEGER NOT NULL, -- as the kernel said it at the sample before
  present_bytes INTEGER NOT NULL, -- on present pages; the sum of resident_site and resident_rest
  shared_bytes  INTEGER NOT NULL, -- of these: of files and shared memory, or mapped by another process, too
  huge_bytes    INTEGER,          -- of these: in huge pages; NULL: this kernel does not tell
  swapped_bytes INTEGER NOT NULL, -- beside these: swapped out
  zero_bytes    INTEGER           -- beside these: read and never written, which take no memory; NULL: not told apart
) STRICT;

CREATE TABLE resident_site( -- what the live blocks of a site have on those pages
  scan_id         INTEGER NOT NULL REFERENCES resident_scan,
  site_id         INTEGER NOT NULL REFERENCES site,
  live_count      INTEGER NOT NULL,
  live_bytes      INTEGER NOT NULL,
  resident_bytes  INTEGER NOT NULL,
  shared_bytes    INTEGER NOT NULL, -- of these, as in resident_scan
  huge_bytes      INTEGER NOT NULL, -- of these; 0 where it is not known
  swapped_bytes   INTEGER NOT NULL,
  untouched_bytes INTEGER NOT NULL, -- on no page: never written, or given back; of shared memory
                                    -- what no look has seen of any process, 0 where that is not known
  PRIMARY KEY(scan_id, site_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE resident_rest( -- what is on those pages beside live blocks
  scan_id         INTEGER NOT NULL REFERENCES resident_scan,
  what            TEXT NOT NULL, -- a row of common/resident_rest.def
  resident_bytes  INTEGER NOT NULL,
  shared_bytes    INTEGER NOT NULL,
  huge_bytes      INTEGER NOT NULL,
  swapped_bytes   INTEGER NOT NULL,
  PRIMARY KEY(scan_id, what)
) STRICT, WITHOUT ROWID;

CREATE TABLE resident_fork( -- whose the present pages of a process that began as a fork are; the sum is present_bytes
  scan_id      INTEGER PRIMARY KEY REFERENCES resident_scan,
  shared_bytes INTEGER NOT NULL, -- inherited, and another process has them, too: no memory of its own
  copied_bytes INTEGER NOT NULL, -- inherited, and its alone since one of those wrote to them
  own_bytes    INTEGER NOT NULL, -- of its own blocks, and of mappings that came after the fork
  file_bytes   INTEGER NOT NULL  -- of files and shared memory
) STRICT;

CREATE TABLE resident_again( -- of looks of rounds over several processes
  scan_id     INTEGER PRIMARY KEY REFERENCES resident_scan,
  again_bytes INTEGER NOT NULL -- of present_bytes: on pages that a process has which the round looked at before this one
) STRICT;

CREATE TABLE resident_account( -- sums of resident_site, by the keys of account, where there are any
  scope                 TEXT NOT NULL,
  key_id                INTEGER NOT NULL,
  inclusive             INTEGER NOT NULL,
  device_id             INTEGER NOT NULL,
  kind                  TEXT NOT NULL,
  resident_bytes        INTEGER NOT NULL,
  resident_shared_bytes INTEGER NOT NULL,
  resident_huge_bytes   INTEGER NOT NULL,
  swapped_bytes         INTEGER NOT NULL,
  untouched_bytes       INTEGER NOT NULL,
  resident_end_bytes    INTEGER NOT NULL,
  PRIMARY KEY(scope, inclusive, device_id, kind, key_id)
) STRICT, WITHOUT ROWID;

-- the same by site: what the scans at the highest resident memory saw, and the last ones
CREATE VIEW resident_sum AS
SELECT r.site_id, CAST(total(r.resident_bytes * c.is_peak) AS INTEGER) AS resident_bytes,
       CAST(total(r.shared_bytes * c.is_peak) AS INTEGER) AS resident_shared_bytes,
       CAST(total(r.huge_bytes * c.is_peak) AS INTEGER) AS resident_huge_bytes,
       CAST(total(r.swapped_bytes * c.is_peak) AS INTEGER) AS swapped_bytes,
       CAST(total(r.untouched_bytes * c.is_peak) AS INTEGER) AS untouched_bytes,
       CAST(total(r.resident_bytes * c.is_last) AS INTEGER) AS resident_end_bytes
FROM resident_site r JOIN resident_scan c USING(scan_id) GROUP BY r.site_id;

CREATE TABLE event_chunk( -- up to 65,536 events in order, as compressed columns (docs/format.md)
  chunk_id    INTEGER PRIMARY KEY, -- 1, 2, ...
  first_ns    INTEGER NOT NULL,
  last_ns     INTEGER NOT NULL,
  event_count INTEGER NOT NULL,
  first_event INTEGER NOT NULL,    -- number of the first event since the run began, from 0
  device_mask INTEGER NOT NULL,    -- bit d: it has events of device d
  site_delta  BLOB,                -- per site touched: what this chunk did to it (docs/format.md). Small, and before data:
                                   -- to reach a column SQLite reads all pages of those before it
  data        BLOB NOT NULL
) STRICT;

CREATE TABLE chunk_sum( -- what a chunk did by thread and by size, and who allocated what it frees (docs/format.md)
  chunk_id INTEGER PRIMARY KEY,
  data     BLOB NOT NULL
) STRICT;

CREATE TABLE chunk_free( -- run --free-stacks: the stacks that a chunk's blocks are freed by (docs/format.md)
  chunk_id INTEGER PRIMARY KEY,
  data     BLOB NOT NULL
) STRICT;

CREATE TABLE keyframe( -- live bytes and blocks per site at an instant: sites with none are left out
  time_ns     INTEGER NOT NULL,
  event_count INTEGER NOT NULL,    -- events before it
  chunk_id    INTEGER,             -- the first chunk after it; NULL where no events are kept
  reason      TEXT NOT NULL,       -- 'peak' (device's peak of active bytes) | 'reserved peak' | 'end' | 'periodic' | 'oom' |
                                   -- 'teardown' | 'policy'
  device_id   INTEGER,             -- for peaks: whose
  data        BLOB NOT NULL,       -- docs/format.md
  PRIMARY KEY(time_ns, event_count, reason)
) STRICT, WITHOUT ROWID;

CREATE TABLE block( -- the largest blocks of the run (by size, then lifetime), for views of single blocks
  block_id   INTEGER PRIMARY KEY,
  device_id  INTEGER NOT NULL REFERENCES device,
  kind       TEXT NOT NULL,
  process_id INTEGER NOT NULL REFERENCES process,
  thread_id  INTEGER NOT NULL REFERENCES thread,
  address    INTEGER NOT NULL,
  size_bytes INTEGER NOT NULL,
  alloc_ns   INTEGER NOT NULL,
  free_ns    INTEGER, -- NULL: live when its process ended
  stack_id   INTEGER NOT NULL REFERENCES stack
) STRICT;

CREATE TABLE block_touch( -- of the largest blocks, those of GPUs that were copied to, copied from or filled
  block_id    INTEGER PRIMARY KEY REFERENCES block,
  touch_count INTEGER NOT NULL, -- copies and fills
  first_ns    INTEGER NOT NULL,
  first_what  TEXT NOT NULL,    -- 'write' | 'read'
  last_ns     INTEGER NOT NULL,
  last_what   TEXT NOT NULL
) STRICT;

CREATE TABLE site_touch( -- the same of all such blocks, by site. What kernels do is in no recording: idle means not copied
  site_id          INTEGER PRIMARY KEY REFERENCES site,
  block_count      INTEGER NOT NULL, -- blocks that were copied to, copied from or filled
  block_bytes      INTEGER NOT NULL,
  lifetime_ns      INTEGER NOT NULL,
  before_ns        INTEGER NOT NULL, -- of that: until the first copy,
  after_ns         INTEGER NOT NULL, -- and since the last one
  early_peak_count INTEGER NOT NULL, -- at the device's peak: nothing was copied yet, and the first copy then wrote
  early_peak_bytes INTEGER NOT NULL,
  late_peak_count  INTEGER NOT NULL, -- at the device's peak: the last copy had been, and it read
  late_peak_bytes  INTEGER NOT NULL
) STRICT;

CREATE TABLE upload_again( -- as many bytes of the host's memory, from the same address, in several blocks of one size that
  -- lived at the device's peak. Whether they were the same bytes is not known
  again_id       INTEGER PRIMARY KEY,
  site_id        INTEGER NOT NULL REFERENCES site, -- of the block that got them last
  process_id     INTEGER NOT NULL REFERENCES process,
  source_address INTEGER NOT NULL,
  upload_bytes   INTEGER NOT NULL,
  size_bytes     INTEGER NOT NULL, -- of each block
  at_peak_count  INTEGER NOT NULL  -- such blocks
) STRICT;

CREATE TABLE segment( -- memory that an allocator holds from the layer below, where it was seen
  segment_id INTEGER PRIMARY KEY,
  device_id  INTEGER NOT NULL REFERENCES device,
  kind       TEXT NOT NULL,
  process_id INTEGER NOT NULL REFERENCES process,
  address    INTEGER NOT NULL,
  size_bytes INTEGER NOT NULL,
  alloc_ns   INTEGER NOT NULL,
  free_ns    INTEGER,
  stack_id   INTEGER REFERENCES stack,
  stream     INTEGER, -- imported snapshots: what the allocator keeps it for
  pool       TEXT,    -- ... its private pool, such as '0,1'; NULL: the common one
  type       TEXT,    -- ... 'large' | 'small'
  is_expandable INTEGER -- ... 1: a mapped part of an expandable segment
) STRICT;

CREATE TABLE heap_range( -- where glibc's heaps lay, as sampled: a row where one changed, good until the next of its address
  range_id   INTEGER PRIMARY KEY,
  process_id INTEGER NOT NULL REFERENCES process,
  time_ns    INTEGER NOT NULL,
  address    INTEGER NOT NULL, -- 0: the bytes of blocks that have a mapping of their own
  size_bytes INTEGER NOT NULL, -- 0: gone
  arena      INTEGER NOT NULL  -- address of its first heap; 0: the main arena, below the break
) STRICT;

CREATE TABLE segment_block( -- imported snapshots: what the segments held when the snapshot was taken
  device_id       INTEGER NOT NULL REFERENCES device,
  segment_address INTEGER NOT NULL,
  address         INTEGER NOT NULL,
  size_bytes      INTEGER NOT NULL, -- as the allocator rounded it
  requested_bytes INTEGER,          -- NULL: inactive
  state           TEXT NOT NULL     -- 'active' | 'awaiting free' | 'inactive'
) STRICT;

CREATE TABLE snapshot_entry( -- imported snapshots: what its entries say beside what was done, from this one of a
                             -- device's history on, counted from 0. For exporting them again
  device_id       INTEGER NOT NULL REFERENCES device,
  number          INTEGER NOT NULL,
  compile_context TEXT, -- NULL: nothing
  user_metadata   TEXT,
  PRIMARY KEY(device_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE snapshot_unfiled( -- ... frames whose file name is empty; others without a file have '??' there
  address_id INTEGER PRIMARY KEY
) STRICT;

CREATE TABLE mark( -- instants and ranges with names (memprof.h, NVTX)
  mark_id    INTEGER PRIMARY KEY,
  process_id INTEGER REFERENCES process,
  thread_id  INTEGER REFERENCES thread,
  device_id  INTEGER REFERENCES device,
  name       TEXT NOT NULL,
  start_ns   INTEGER NOT NULL,
  end_ns     INTEGER, -- NULL: an instant, or a range that was never closed (is_range says which)
  is_range   INTEGER NOT NULL,
  domain     TEXT, -- NVTX: the library that made it; NULL: the program's own
  category   TEXT  -- NVTX; NULL: none
) STRICT;

CREATE TABLE policy_band( -- what shall be done about a device's memory, and when (run --policy, memprof_policy)
  band_id    INTEGER PRIMARY KEY,
  source     TEXT,             -- the file; NULL: the program said it
  process_id INTEGER REFERENCES process, -- which did; NULL: a file, or it had no process
  line       INTEGER NOT NULL, -- of the file or the text
  text       TEXT NOT NULL,    -- the line
  from_ns    INTEGER NOT NULL,
  until_ns   INTEGER           -- when another policy, or the end, took its place; NULL: a killed recording's last one
) STRICT;

CREATE TABLE policy_action( -- each time that a band had something done, by action and process
  action_id  INTEGER PRIMARY KEY,
  band_id    INTEGER NOT NULL REFERENCES policy_band,
  device_id  INTEGER NOT NULL REFERENCES device,
  process_id INTEGER REFERENCES process, -- which did it, or was meant; NULL: none
  mark_id    INTEGER REFERENCES mark,    -- one a time: from the decision to the end of all that it led to
  action     TEXT NOT NULL,
  time_ns    INTEGER NOT NULL,           -- when it was decided
  begin_ns   INTEGER,                    -- what the process said: from when to when it was at it
  end_ns     INTEGER,
  status     TEXT NOT NULL,              -- 'done' | 'not possible' | 'not taken' | 'process ended' | of a command 'running', 'status N', 'signal N'
  before_bytes INTEGER,                  -- as the process measured it around it: resident bytes, of a GPU what its pools
  after_bytes  INTEGER,                  -- reserved; NULL: not measured
  reserved_before_bytes INTEGER NOT NULL, -- the device's, of all processes, as recorded: when it was decided,
  reserved_after_bytes  INTEGER,         -- and 60 ms after it was done (of a signal a second); NULL: there was no then
  used_before_bytes INTEGER NOT NULL,    -- the same of resident bytes, of a GPU what its driver says
  used_after_bytes  INTEGER
) STRICT;

CREATE TABLE policy_off( -- actions that gave nothing back several times in a row, and were switched off
  band_id   INTEGER NOT NULL REFERENCES policy_band,
  device_id INTEGER NOT NULL REFERENCES device,
  action    TEXT NOT NULL,
  time_ns   INTEGER NOT NULL
) STRICT;

CREATE TABLE oom( -- allocations that failed
  oom_id       INTEGER PRIMARY KEY,
  time_ns      INTEGER NOT NULL,
  device_id    INTEGER NOT NULL REFERENCES device,
  kind         TEXT NOT NULL,
  process_id   INTEGER REFERENCES process,
  thread_id    INTEGER REFERENCES thread,
  size_bytes   INTEGER NOT NULL, -- asked for
  active_bytes INTEGER NOT NULL, -- the device's, at that instant
  device_free_bytes  INTEGER,
  device_total_bytes INTEGER,
  stack_id     INTEGER REFERENCES stack
) STRICT;

CREATE TABLE oom_had( -- failures on the host after which the same process had as much in one block: another try, a fallback
  oom_id  INTEGER PRIMARY KEY REFERENCES oom,
  time_ns INTEGER NOT NULL -- of the allocation that succeeded
) STRICT;

CREATE TABLE address_limit( -- RLIMIT_AS of a process at its first failure on the host, and at each one that met another limit
  process_id  INTEGER NOT NULL REFERENCES process,
  time_ns     INTEGER NOT NULL,
  limit_bytes INTEGER NOT NULL, -- 2^63 - 1: none
  own_bytes   INTEGER,          -- of its addresses, what the recorder had mapped then
  PRIMARY KEY(process_id, time_ns)
) STRICT, WITHOUT ROWID;

CREATE TABLE unhooked_module( -- modules whose calls of free or realloc go past the hooks: opened with RTLD_DEEPBIND
  process_id INTEGER NOT NULL REFERENCES process,
  path       TEXT NOT NULL,
  PRIMARY KEY(process_id, path)
) STRICT, WITHOUT ROWID;

CREATE TABLE unmatched_free( -- the first 64 frees of addresses that were no live block
  free_id         INTEGER PRIMARY KEY, -- 1, 2, ...
  event_number    INTEGER NOT NULL,    -- that of the event that came next: it has none itself
  time_ns         INTEGER NOT NULL,
  device_id       INTEGER NOT NULL REFERENCES device,
  process_id      INTEGER REFERENCES process,
  thread_id       INTEGER REFERENCES thread,
  address         INTEGER NOT NULL,
  site_id         INTEGER,             -- of the block that was freed there last, if nothing was allocated there since
  freed_ns        INTEGER,             -- ... and when, by which thread: filled with the symbols, from the events
  freed_thread_id INTEGER
) STRICT;

CREATE TABLE device_sample( -- what the driver said of a device; of all programs that use it
  device_id       INTEGER NOT NULL REFERENCES device,
  time_ns         INTEGER NOT NULL,
  total_bytes     INTEGER NOT NULL,
  used_bytes      INTEGER NOT NULL,
  active_bytes    INTEGER NOT NULL, -- ours at that instant; used less reserved is what we do not track
  allocated_bytes INTEGER NOT NULL,
  reserved_bytes  INTEGER NOT NULL,
  PRIMARY KEY(device_id, time_ns)
) STRICT, WITHOUT ROWID;

CREATE TABLE memory_name( -- what programs call their pools' segments, and what no block was at (memprof.h, NVTX); the newest one holds
  name_id    INTEGER PRIMARY KEY,
  process_id INTEGER NOT NULL REFERENCES process,
  address    INTEGER NOT NULL,
  time_ns    INTEGER NOT NULL,
  name       TEXT NOT NULL
) STRICT;
CREATE INDEX memory_name_address ON memory_name(process_id, address);

CREATE TABLE block_name( -- what programs call blocks, from birth to death, and views of parts of them (memprof.h, NVTX,
-- PyTorch). Of a name that many blocks of a process had: the first 16 of these, and the last
  name_id       INTEGER PRIMARY KEY,
  process_id    INTEGER NOT NULL REFERENCES process,
  device_id     INTEGER NOT NULL REFERENCES device,
  site_id       INTEGER NOT NULL REFERENCES site, -- of the block, as what follows is
  block_address INTEGER NOT NULL,
  block_bytes   INTEGER NOT NULL,
  alloc_ns      INTEGER NOT NULL,
  free_ns       INTEGER,          -- NULL: it outlived its process, or the recording
  time_ns       INTEGER NOT NULL, -- when it was said
  name          TEXT NOT NULL,    -- '': only a category was said
  category      TEXT,             -- of the block; NULL: none was said
  address       INTEGER NOT NULL, -- the lowest byte of the view, which is the whole block where no other was said
  span_bytes    INTEGER NOT NULL, -- from that to behind its highest byte
  view_bytes    INTEGER NOT NULL, -- of its items
  item_bytes    INTEGER,          -- NULL, as both below: no view was said
  shape         TEXT,             -- '4096,1024': items of each dimension; '': one item
  stride        TEXT              -- in items
) STRICT;

CREATE TABLE transfer( -- copies and fills, as they were asked for
  stack_id       INTEGER NOT NULL, -- 0: unknown
  device_id      INTEGER NOT NULL REFERENCES device,
  direction      TEXT NOT NULL,    -- 'HtoD' | 'DtoH' | 'DtoD' | 'HtoH' | 'peer' | 'fill' | 'unified' (of managed memory)
  transfer_count INTEGER NOT NULL,
  transfer_bytes INTEGER NOT NULL,
  PRIMARY KEY(stack_id, device_id, direction)
) STRICT, WITHOUT ROWID;

CREATE TABLE free_site( -- run --free-stacks: who freed what a site allocated, where that was told
  stack_id      INTEGER NOT NULL REFERENCES stack, -- of the call that freed it
  site_id       INTEGER NOT NULL REFERENCES site,  -- of the blocks
  free_count    INTEGER NOT NULL,
  free_bytes    INTEGER NOT NULL, -- with parts of maps that went before their block did
  thread_count  INTEGER NOT NULL, -- of these: by another thread than the one that allocated them
  thread_bytes  INTEGER NOT NULL,
  device_count  INTEGER NOT NULL, -- of a GPU's: while another device was the thread's current one
  device_bytes  INTEGER NOT NULL,
  realloc_count INTEGER NOT NULL, -- by realloc, which went on with a block
  PRIMARY KEY(stack_id, site_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE counter( -- what was lost, skipped, waited for; one row a counter and process (NULL: the collector's own)
  process_id INTEGER REFERENCES process,
  name       TEXT NOT NULL,
  value      INTEGER NOT NULL,
  text       TEXT NOT NULL -- what it counts
) STRICT;

CREATE TABLE recording( -- of a merged file (memprof merge): what it was made of; none in any other file
  recording_id  INTEGER PRIMARY KEY, -- 1, 2, ... by rank, then name
  path          TEXT NOT NULL,       -- as it was named
  rank          INTEGER,
  host          TEXT,
  command       TEXT,
  start_unix_ns INTEGER NOT NULL,
  start_ns      INTEGER NOT NULL,    -- where its own time 0 is here
  duration_ns   INTEGER NOT NULL,
  event_count   INTEGER NOT NULL,
  partial       TEXT                 -- why it is not whole; NULL: it is
) STRICT;

CREATE TABLE recording_process( -- whose each process is
  process_id   INTEGER PRIMARY KEY REFERENCES process,
  recording_id INTEGER NOT NULL REFERENCES recording
) STRICT;

CREATE TABLE recording_total( -- what the recordings said of their devices. Here the peaks of table total are sums of these
  recording_id        INTEGER NOT NULL REFERENCES recording,
  device_id           INTEGER NOT NULL REFERENCES device,
  alloc_count         INTEGER NOT NULL,
  alloc_bytes         INTEGER NOT NULL,
  peak_active_bytes   INTEGER NOT NULL,
  peak_active_ns      INTEGER NOT NULL,
  peak_reserved_bytes INTEGER,                   -- NULL: not known (what was imported does not say it)
  end_active_bytes    INTEGER NOT NULL,
  end_count           INTEGER NOT NULL,
  PRIMARY KEY(recording_id, device_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE common_peak( -- the highest sum of the recordings' active bytes at one instant, where their clocks can be compared
  device_id   INTEGER PRIMARY KEY REFERENCES device,
  least_bytes INTEGER NOT NULL, -- so much there was at time_ns; most_bytes: more there was never
  most_bytes  INTEGER NOT NULL,
  time_ns     INTEGER NOT NULL
) STRICT;

CREATE VIEW v_recording AS
SELECT r.recording_id, r.path, r.rank, r.host, d.name AS device, t.alloc_count, t.alloc_bytes, t.peak_active_bytes,
       t.peak_active_ns, t.peak_reserved_bytes, t.end_active_bytes, t.end_count, r.start_unix_ns, r.start_ns, r.duration_ns,
       r.partial
FROM recording r LEFT JOIN recording_total t USING(recording_id) LEFT JOIN device d USING(device_id);

-- Accounts of threads, from the events: who allocated.
-- (table account, scope 'thread', inclusive 0)

-- accounts and sites with all that common/stat.def has of them; of the host, and where there was a look, what that did
-- not see is 0. When the run started nothing was live, but in a part of a rotated one
CREATE VIEW account_stat AS
SELECT a.*, iif(k.is_known, coalesce(r.resident_bytes, 0), NULL) AS resident_bytes,
       iif(k.is_known, coalesce(r.resident_shared_bytes, 0), NULL) AS resident_shared_bytes,
       iif(k.is_known, coalesce(r.resident_huge_bytes, 0), NULL) AS resident_huge_bytes,
       iif(k.is_known, coalesce(r.swapped_bytes, 0), NULL) AS swapped_bytes,
       iif(k.is_known, coalesce(r.untouched_bytes, 0), NULL) AS untouched_bytes,
       iif(k.is_known, coalesce(r.resident_end_bytes, 0), NULL) AS resident_end_bytes,
       coalesce(i.start_bytes, 0) AS start_bytes, coalesce(i.start_count, 0) AS start_count
FROM account a LEFT JOIN resident_account r USING(scope, inclusive, device_id, kind, key_id)
     LEFT JOIN account_start i USING(scope, inclusive, device_id, kind, key_id)
     LEFT JOIN (SELECT count(*) > 0 AS is_known FROM resident_scan) k ON a.device_id = 0 AND a.scope <> 'thread';

CREATE VIEW site_stat AS
SELECT s.*, iif(k.is_known, coalesce(r.resident_bytes, 0), NULL) AS resident_bytes,
       iif(k.is_known, coalesce(r.resident_shared_bytes, 0), NULL) AS resident_shared_bytes,
       iif(k.is_known, coalesce(r.resident_huge_bytes, 0), NULL) AS resident_huge_bytes,
       iif(k.is_known, coalesce(r.swapped_bytes, 0), NULL) AS swapped_bytes,
       iif(k.is_known, coalesce(r.untouched_bytes, 0), NULL) AS untouched_bytes,
       iif(k.is_known, coalesce(r.resident_end_bytes, 0), NULL) AS resident_end_bytes,
       coalesce(i.start_bytes, 0) AS start_bytes, coalesce(i.start_count, 0) AS start_count
FROM site s LEFT JOIN resident_sum r USING(site_id) LEFT JOIN site_start i USING(site_id)
     LEFT JOIN (SELECT count(*) > 0 AS is_known FROM resident_scan) k ON s.device_id = 0;

-- what the present pages held at the highest resident memory that was looked at, of all processes: live blocks, the
-- rests (resident_rest.def), and what the blocks have on no page
CREATE VIEW v_resident AS
SELECT 'blocks' AS what, CAST(total(r.resident_bytes) AS INTEGER) AS resident_bytes,
       CAST(total(r.shared_bytes) AS INTEGER) AS shared_bytes, CAST(total(r.huge_bytes) AS INTEGER) AS huge_bytes,
       CAST(total(r.swapped_bytes) AS INTEGER) AS swapped_bytes,
       CAST(total(r.untouched_bytes) AS INTEGER) AS untouched_bytes
FROM resident_site r JOIN resident_scan c USING(scan_id) WHERE c.is_peak HAVING count(*) > 0
UNION ALL
SELECT r.what, CAST(total(r.resident_bytes) AS INTEGER), CAST(total(r.shared_bytes) AS INTEGER),
       CAST(total(r.huge_bytes) AS INTEGER), CAST(total(r.swapped_bytes) AS INTEGER), 0
FROM resident_rest r JOIN resident_scan c USING(scan_id) WHERE c.is_peak GROUP BY r.what;

-- processes that began as a fork, each at the look of those kept that saw most of its own and copied pages
CREATE VIEW v_fork AS
SELECT process_id, pid, parent_id, time_ns, resident_bytes, shared_bytes, copied_bytes, own_bytes, file_bytes, command
FROM (SELECT c.process_id, p.pid, p.parent_id, c.time_ns, c.present_bytes AS resident_bytes, f.shared_bytes,
             f.copied_bytes, f.own_bytes, f.file_bytes, p.command_line AS command,
             row_number() OVER (PARTITION BY c.process_id ORDER BY f.copied_bytes + f.own_bytes DESC,
                                c.present_bytes DESC, c.scan_id DESC) AS place
      FROM resident_fork f JOIN resident_scan c USING(scan_id) JOIN process p USING(process_id))
WHERE place = 1;

-- what each process had on present pages in that round; rows add up to v_resident's. shared_memory_bytes: of maps that it
-- did not make itself, such as its parent's before the fork
CREATE VIEW v_resident_process AS
SELECT c.process_id, p.pid, c.time_ns, c.present_bytes AS resident_bytes,
       (SELECT CAST(total(resident_bytes) AS INTEGER) FROM resident_site s WHERE s.scan_id = c.scan_id) AS block_bytes,
       CAST(total(r.resident_bytes) FILTER (WHERE r.what = 'shared') AS INTEGER) AS shared_memory_bytes,
       CAST(total(r.resident_bytes) FILTER (WHERE r.what = 'inherited') AS INTEGER) AS inherited_bytes,
       CAST(total(r.resident_bytes) FILTER (WHERE r.what = 'file') AS INTEGER) AS file_bytes,
       CAST(total(r.resident_bytes) FILTER (WHERE r.what NOT IN ('shared', 'inherited', 'file')) AS INTEGER)
           AS other_bytes, p.command_line AS command
FROM resident_scan c JOIN process p USING(process_id) LEFT JOIN resident_rest r USING(scan_id)
WHERE c.is_peak GROUP BY c.scan_id;

CREATE VIEW v_total AS
SELECT d.name AS device, t.kind, t.alloc_count, t.free_count, t.alloc_bytes, t.free_bytes, t.temporary_count,
       t.peak_active_bytes, t.peak_active_ns, t.peak_reserved_bytes, t.end_active_bytes, t.end_count,
       t.temporary_bytes, t.peak_active_count, t.peak_reserved_ns, t.realloc_count, t.lifetime_ns
FROM total t JOIN device d USING(device_id);

-- self: the innermost frame that has a source position outside the allocator family (docs/report.md has the whole rule)
CREATE VIEW v_line AS
SELECT d.name AS device, a.kind, coalesce(fn.name, m.path || printf('+0x%x', l.offset), '??') AS function, f.path AS file,
       l.line, a.alloc_count, a.alloc_bytes, a.free_count, a.temporary_count, a.at_peak_bytes, a.at_peak_count,
       a.own_peak_bytes, a.end_bytes, a.end_count, a.free_bytes, a.temporary_bytes, a.at_kind_peak_bytes,
       a.active_peak_bytes, a.reserved_peak_bytes, a.largest_bytes, a.lifetime_ns, a.key_id AS line_id, l.function_id, l.file_id
FROM account a JOIN device d USING(device_id) JOIN line l ON l.line_id = a.key_id
     LEFT JOIN function fn USING(function_id) LEFT JOIN file f ON f.file_id = l.file_id
     LEFT JOIN module_key m ON m.key_id = l.module_key_id
WHERE a.scope = 'line' AND a.inclusive = 0;

-- the same for a line and everything that it calls; recursion counted once
CREATE VIEW v_line_total AS
SELECT d.name AS device, a.kind, coalesce(fn.name, m.path || printf('+0x%x', l.offset), '??') AS function, f.path AS file,
       l.line, a.alloc_count, a.alloc_bytes, a.free_count, a.temporary_count, a.at_peak_bytes, a.at_peak_count,
       a.own_peak_bytes, a.end_bytes, a.end_count, a.free_bytes, a.temporary_bytes, a.at_kind_peak_bytes,
       a.active_peak_bytes, a.reserved_peak_bytes, a.largest_bytes, a.lifetime_ns, a.key_id AS line_id, l.function_id, l.file_id
FROM account a JOIN device d USING(device_id) JOIN line l ON l.line_id = a.key_id
     LEFT JOIN function fn USING(function_id) LEFT JOIN file f ON f.file_id = l.file_id
     LEFT JOIN module_key m ON m.key_id = l.module_key_id
WHERE a.scope = 'line' AND a.inclusive = 1;

CREATE VIEW v_function AS -- inclusive 0: self, 1: with callees
SELECT d.name AS device, a.kind, a.inclusive, coalesce(fn.name, m.path || printf('+0x%x', l.offset), '??') AS function,
       f.path AS file, coalesce(fn.line, nullif(l.line, 0)) AS line, a.alloc_count, a.alloc_bytes,
       a.free_count, a.temporary_count, a.at_peak_bytes, a.at_peak_count, a.own_peak_bytes, a.end_bytes, a.end_count,
       a.free_bytes, a.temporary_bytes, a.at_kind_peak_bytes, a.active_peak_bytes, a.reserved_peak_bytes, a.largest_bytes,
       a.lifetime_ns, a.key_id AS function_id
FROM account a JOIN device d USING(device_id) LEFT JOIN function fn ON fn.function_id = a.key_id
     LEFT JOIN line l ON l.line_id = -a.key_id LEFT JOIN module_key m ON m.key_id = l.module_key_id
     LEFT JOIN file f ON f.file_id = coalesce(fn.file_id, l.file_id)
WHERE a.scope = 'function';

CREATE VIEW v_file AS -- inclusive 0: self, 1: with callees; file NULL: code without a source position (self only)
SELECT d.name AS device, a.kind, a.inclusive, f.path AS file, a.alloc_count, a.alloc_bytes,
       a.free_count, a.temporary_count, a.at_peak_bytes, a.at_peak_count, a.own_peak_bytes, a.end_bytes, a.end_count,
       a.free_bytes, a.temporary_bytes, a.at_kind_peak_bytes, a.active_peak_bytes, a.reserved_peak_bytes, a.largest_bytes,
       a.lifetime_ns, a.key_id AS file_id
FROM account a JOIN device d USING(device_id) LEFT JOIN file f ON f.file_id = a.key_id
WHERE a.scope = 'file';

CREATE VIEW v_module AS -- inclusive 0: the module of the self frame, 1: with callees; module NULL: code in no module
SELECT d.name AS device, a.kind, a.inclusive, m.path AS module, m.build_id, a.alloc_count, a.alloc_bytes,
       a.free_count, a.temporary_count, a.at_peak_bytes, a.at_peak_count, a.own_peak_bytes, a.end_bytes, a.end_count,
       a.free_bytes, a.temporary_bytes, a.at_kind_peak_bytes, a.active_peak_bytes, a.reserved_peak_bytes, a.largest_bytes,
       a.lifetime_ns, a.key_id AS module_key_id
FROM account a JOIN device d USING(device_id) LEFT JOIN module_key m ON m.key_id = a.key_id
WHERE a.scope = 'module';

CREATE VIEW v_thread AS -- by the thread that allocated
SELECT d.name AS device, a.kind, t.thread_id, p.process_id, p.pid, t.tid, t.name AS thread, t.start_ns, t.end_ns,
       a.alloc_count, a.alloc_bytes, a.free_count, a.temporary_count, a.at_peak_bytes, a.at_peak_count, a.own_peak_bytes,
       a.end_bytes, a.end_count, a.free_bytes, a.temporary_bytes, a.largest_bytes, a.lifetime_ns
FROM account a JOIN device d USING(device_id) JOIN thread t ON t.thread_id = a.key_id JOIN process p USING(process_id)
WHERE a.scope = 'thread';

CREATE VIEW v_op AS -- PyTorch's operators; own_peak_bytes is known where one site makes the row
SELECT d.name AS device, a.kind, o.name AS op, o.phase, o.module, a.alloc_count, a.alloc_bytes, a.free_count, a.temporary_count,
       a.at_peak_bytes, a.at_peak_count, a.own_peak_bytes, a.end_bytes, a.end_count, a.free_bytes, a.temporary_bytes,
       a.at_kind_peak_bytes, a.active_peak_bytes, a.reserved_peak_bytes, a.largest_bytes, a.lifetime_ns, a.key_id AS op_id
FROM account a JOIN device d USING(device_id) JOIN op o ON o.op_id = a.key_id
WHERE a.scope = 'op';

-- every frame of every stack, inlined functions as frames of their own; depth 0 is the innermost. Fast for one stack_id and
-- for joins on it: the walk over the callers is made for each stack that is asked for, not for all
CREATE VIEW v_stack AS
SELECT s.stack_id, j.key AS depth, coalesce(fn.name, printf('0x%x', a.offset)) AS function, f.path AS file, fr.line,
       m.path AS module, coalesce(fr.language, 'native') AS language, coalesce(fr.is_inline, 0) AS is_inline, a.address_id,
       coalesce(fn.is_allocator, 0) AS is_allocator
FROM stack s JOIN json_each((
       WITH RECURSIVE walk(node, level) AS (
         SELECT s.stack_id, 0
         UNION ALL
         SELECT p.parent_id, w.level + 1 FROM walk w JOIN stack p ON p.stack_id = w.node
         WHERE p.parent_id IS NOT NULL AND w.level < 4096
       )
       SELECT json_group_array(frame) FROM (
         SELECT coalesce(i.address_id * 64 + i.inline_depth, -n.address_id) AS frame
         FROM walk w JOIN stack n ON n.stack_id = w.node LEFT JOIN frame i ON i.address_id = n.address_id
         ORDER BY w.level, i.inline_depth)
     )) j
     LEFT JOIN frame fr ON fr.address_id = j.value / 64 AND fr.inline_depth = j.value % 64 JOIN address a ON a.address_id = coalesce(fr.address_id, -j.value)
     LEFT JOIN function fn USING(function_id) LEFT JOIN file f ON f.file_id = fr.file_id
     LEFT JOIN module m ON m.module_id = a.module_id;

-- what was still live when its process ended, by allocating stack; function, file and line: its self frame. Of a Python
-- program: when its interpreter began to take itself down (teardown); torn_down: what that freed of it
CREATE VIEW v_leak AS
SELECT d.name AS device, s.end_bytes, s.end_count, coalesce(fn.name, m.path || printf('+0x%x', l.offset), '??') AS function,
       f.path AS file, l.line, s.stack_id, s.kind, s.site_id, s.process_id, coalesce(x.freed_bytes, 0) AS torn_down_bytes,
       coalesce(x.freed_count, 0) AS torn_down_count
FROM site s JOIN device d USING(device_id) LEFT JOIN site_teardown x USING(site_id) LEFT JOIN site_line sl USING(site_id) LEFT JOIN line l USING(line_id)
     LEFT JOIN function fn USING(function_id) LEFT JOIN file f ON f.file_id = l.file_id
     LEFT JOIN module_key m ON m.key_id = l.module_key_id
WHERE s.end_count > 0;

-- function, file and line: the innermost frame that has a source position outside the allocator family
CREATE VIEW v_transfer AS
WITH RECURSIVE walk(stack_id, node, level) AS (
  SELECT DISTINCT stack_id, stack_id, 0 FROM transfer
  UNION ALL
  SELECT w.stack_id, s.parent_id, w.level + 1 FROM walk w JOIN stack s ON s.stack_id = w.node WHERE s.parent_id IS NOT NULL
), self AS (
  SELECT w.stack_id, coalesce(fn.name, printf('0x%x', a.offset)) AS function, f.path AS file, fr.line,
         row_number() OVER (PARTITION BY w.stack_id ORDER BY coalesce(fn.is_allocator, 0), fr.line IS NULL, w.level,
                            fr.inline_depth) AS rank
  FROM walk w JOIN stack s ON s.stack_id = w.node JOIN address a USING(address_id)
       LEFT JOIN frame fr USING(address_id) LEFT JOIN function fn USING(function_id) LEFT JOIN file f ON f.file_id = fr.file_id
)
SELECT d.name AS device, t.direction, coalesce(self.function, '??') AS function, self.file, self.line, t.transfer_count,
       t.transfer_bytes, t.stack_id
FROM transfer t JOIN device d USING(device_id) LEFT JOIN self ON self.stack_id = t.stack_id AND self.rank = 1;

-- allocations that failed; function, file and line: the self frame. is_impossible: on the host, more than the machine's
-- memory and swap, the limit of address space, or all addresses that a process has. own_address_bytes: what of that limit
-- the recorder itself took; files of older versions do not say. is_handled: on the host, the process had as much later
-- or it was impossible, and it did not fail within a second: a probe or a wrong argument, no lack of memory
CREATE VIEW v_oom AS
SELECT d.name AS device, o.kind, o.time_ns, o.size_bytes, o.active_bytes, o.device_free_bytes, o.device_total_bytes,
       coalesce(fn.name, mk.path || printf('+0x%x', l.offset), '??') AS function, f.path AS file, l.line, o.stack_id,
       o.process_id, o.thread_id, o.oom_id, h.time_ns AS had_ns, o.address_limit_bytes, o.own_address_bytes, o.is_impossible AND h.time_ns IS NULL AS
       is_impossible, (h.time_ns IS NOT NULL OR o.is_impossible) AND o.device_id = 0 AND NOT (
       coalesce(p.end_ns, o.time_ns) - o.time_ns < 1000000000 AND
       (p.end_kind IS NULL OR p.end_kind NOT IN ('exit', 'exec') OR coalesce(p.exit_status, 0) <> 0)) AS is_handled
FROM (SELECT *, device_id = 0 AND size_bytes > min(address_limit_bytes, machine_bytes) AS is_impossible FROM (
        SELECT oom.*, coalesce((SELECT limit_bytes FROM address_limit a WHERE a.process_id = oom.process_id AND
                                a.time_ns <= oom.time_ns ORDER BY a.time_ns DESC LIMIT 1),
                               (SELECT value FROM meta WHERE key = 'address_limit_bytes'), 1 << 47) AS address_limit_bytes,
               (SELECT (SELECT own_bytes FROM address_limit a WHERE a.process_id = oom.process_id AND
                        a.time_ns <= oom.time_ns ORDER BY a.time_ns DESC LIMIT 1) FROM (SELECT NULL AS own_bytes)) AS own_address_bytes,
               coalesce((SELECT value FROM meta WHERE key = 'machine_bytes'), 1 << 47) AS machine_bytes FROM oom)) o
     JOIN device d USING(device_id) LEFT JOIN oom_had h USING(oom_id)
     LEFT JOIN process p ON p.process_id = o.process_id
     LEFT JOIN site s ON s.stack_id = o.stack_id AND s.device_id = o.device_id AND s.kind = o.kind
     LEFT JOIN site_line sl USING(site_id) LEFT JOIN line l USING(line_id)
     LEFT JOIN function fn USING(function_id) LEFT JOIN file f ON f.file_id = l.file_id
     LEFT JOIN module_key mk ON mk.key_id = l.module_key_id;

-- the layers of a device's memory where its driver's figure was highest, and where it was sampled last; what is not tracked
-- is the driver's own memory and that of programs that were not recorded. Of the host: at the ends of the timeline's
-- buckets; used is the RSS of all processes. What of it is not tracked only a look at the pages tells, as what is reserved
-- need not be there: 'looked at', used being what was on pages, and what was not tracked files, stacks and the like
CREATE VIEW v_layer AS
SELECT d.name AS device, 'most used' AS instant, s.time_ns, s.allocated_bytes, s.active_bytes, s.reserved_bytes, s.used_bytes,
       max(s.used_bytes - s.reserved_bytes, 0) AS untracked_bytes, s.total_bytes - s.used_bytes AS free_bytes, s.total_bytes
FROM device d JOIN device_sample s ON s.device_id = d.device_id AND s.time_ns =
     (SELECT x.time_ns FROM device_sample x WHERE x.device_id = d.device_id ORDER BY x.used_bytes DESC, x.time_ns LIMIT 1)
UNION ALL
SELECT d.name, 'last', s.time_ns, s.allocated_bytes, s.active_bytes, s.reserved_bytes, s.used_bytes,
       max(s.used_bytes - s.reserved_bytes, 0), s.total_bytes - s.used_bytes, s.total_bytes
FROM device d JOIN device_sample s ON s.device_id = d.device_id AND s.time_ns =
     (SELECT max(x.time_ns) FROM device_sample x WHERE x.device_id = d.device_id)
UNION ALL
SELECT d.name, i.instant, t.time_ns + t.width_ns, t.allocated_last_bytes, t.active_last_bytes, t.reserved_last_bytes,
       t.rss_last_bytes, NULL, d.total_bytes - t.rss_last_bytes, d.total_bytes
FROM (SELECT 'most used' AS instant, (SELECT time_ns FROM timeline WHERE device_id = 0 AND level = 0 AND
              rss_last_bytes IS NOT NULL ORDER BY rss_last_bytes DESC, time_ns LIMIT 1) AS time_ns
      UNION ALL
      SELECT 'last', (SELECT max(time_ns) FROM timeline WHERE device_id = 0 AND level = 0 AND rss_last_bytes > 0)) i
     JOIN timeline t ON t.device_id = 0 AND t.level = 0 AND t.time_ns = i.time_ns JOIN device d USING(device_id)
UNION ALL
SELECT d.name, 'looked at', c.time_ns, c.live_bytes, c.live_bytes, NULL, c.present_bytes,
       (SELECT CAST(total(r.resident_bytes) AS INTEGER) FROM resident_rest r JOIN resident_scan USING(scan_id)
        WHERE is_peak AND (r.what IN ('file', 'anonymous', 'stack', 'memprof') OR (r.what = 'shared' AND
              (SELECT count(DISTINCT process_id) FROM resident_scan) = 1))), d.total_bytes - c.present_bytes, d.total_bytes
FROM device d JOIN (SELECT min(time_ns) AS time_ns, CAST(total(present_bytes) AS INTEGER) AS present_bytes,
                           (SELECT CAST(total(s.live_bytes) AS INTEGER) FROM resident_site s JOIN resident_scan
                            USING(scan_id) WHERE is_peak) AS live_bytes
                    FROM resident_scan WHERE is_peak HAVING count(*) > 0) c ON d.device_id = 0;

CREATE TABLE site_line( -- the self line of a site
  site_id INTEGER PRIMARY KEY REFERENCES site,
  line_id INTEGER NOT NULL REFERENCES line
) STRICT;

-- one point a bucket of the finest level, at its end; the device's exact peaks as points of their own
CREATE VIEW v_timeline AS
SELECT d.name AS device, t.time_ns + t.width_ns AS time_ns, t.active_last_bytes AS active_bytes,
       t.allocated_last_bytes AS allocated_bytes, t.reserved_last_bytes AS reserved_bytes, t.rss_last_bytes AS rss_bytes,
       t.active_max_bytes, t.active_max_ns, t.reserved_max_bytes
FROM timeline t JOIN device d USING(device_id) WHERE t.level = 0
UNION ALL
SELECT d.name, t.active_max_ns, t.active_max_bytes, t.allocated_max_bytes, t.reserved_last_bytes, t.rss_last_bytes,
       t.active_max_bytes, t.active_max_ns, t.reserved_max_bytes
FROM timeline t JOIN device d USING(device_id) WHERE t.level = 0 AND t.active_max_bytes > t.active_last_bytes;

-- the images of each process, by the first of them: a pid that comes round is another process
CREATE VIEW v_image AS
WITH RECURSIVE next(process_id, before_id) AS (
  SELECT p.process_id, q.process_id FROM process p JOIN process q ON q.process_id = p.parent_id
  WHERE p.start_kind = 'exec' AND q.pid = p.pid AND q.process_id < p.process_id AND coalesce(q.end_kind, 'exec') = 'exec'
), image(process_id, first_id) AS (
  SELECT process_id, process_id FROM process WHERE process_id NOT IN (SELECT process_id FROM next)
  UNION ALL
  SELECT n.process_id, i.first_id FROM image i JOIN next n ON n.before_id = i.process_id
)
SELECT process_id, first_id FROM image;

CREATE VIEW v_process AS
SELECT p.*, q.pid AS parent_pid FROM process p LEFT JOIN process q ON q.process_id = p.parent_id;

-- names of blocks and of views of them. own_bytes: the block's, of the first name of a block, 0 of the others, so that a
-- sum counts a block once; shared_with: that first name, of the others. end_ns: NULL, it outlived the recording
CREATE VIEW v_name AS
SELECT n.name_id, d.name AS device, n.name, n.category, n.shape, n.stride, n.item_bytes, n.view_bytes, n.span_bytes,
       n.address - n.block_address AS offset_bytes, n.block_bytes,
       CASE WHEN n.name_id = n.first_id THEN n.block_bytes ELSE 0 END AS own_bytes,
       CASE WHEN n.name_id <> n.first_id THEN (SELECT name FROM block_name WHERE name_id = n.first_id) END AS shared_with,
       coalesce(fn.name, m.path || printf('+0x%x', l.offset), '??') AS function, f.path AS file, l.line,
       n.alloc_ns, coalesce(n.free_ns, p.end_ns) AS end_ns, n.time_ns, n.process_id, n.site_id, n.block_address
FROM (SELECT *, min(name_id) OVER (PARTITION BY process_id, block_address, alloc_ns) AS first_id FROM block_name) n
     JOIN device d USING(device_id) LEFT JOIN process p ON p.process_id = n.process_id
     LEFT JOIN site_line sl ON sl.site_id = n.site_id LEFT JOIN line l USING(line_id)
     LEFT JOIN function fn USING(function_id) LEFT JOIN file f ON f.file_id = l.file_id
     LEFT JOIN module_key m ON m.key_id = l.module_key_id;

CREATE VIEW v_block AS
SELECT d.name AS device, b.* FROM block b JOIN device d USING(device_id);
