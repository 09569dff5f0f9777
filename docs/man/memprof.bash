# bash completion for memprof, made by tools/man.c
_memprof() {
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local options= words= head= kind= joined=
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W 'run attach detach report lines leaks advise diff check info top log sql import merge export python-path kernel mark pause rotate resume yield restore state help --version --help' -- "$word")
        return
    fi
    # --by=li is three words
    [ "$word" != = ] || joined=1 word=
    [ "$previous" != = ] || joined=1 previous=${COMP_WORDS[COMP_CWORD - 2]}
    case ${COMP_WORDS[1]} in
    run)
        options='--output --no-follow --aggregate --max-events --depth --torch-snapshot --torch-names --python-module --range --source --python-allocators --cuda-delivery --deepbind --no-symbols --paused --policy --free-stacks --rotate --keep --sample --sample-seed --min-size --quiet --no-heap-sample --help'
        case $previous in
        --output | -o) kind=file ;;
        --cuda-delivery) words='preload audit' ;;
        --policy) kind=file ;;
        --max-events | --depth | --range | --rotate | --keep | --sample | --sample-seed | --min-size) kind=none ;;
        esac
        ;;
    attach)
        options='--output --aggregate --max-events --depth --source --no-symbols --quiet --help'
        case $previous in
        --output | -o) kind=file ;;
        --max-events | --depth) kind=none ;;
        esac
        ;;
    detach)
        options='--help'
        case $previous in
        esac
        [ -n "$kind" ] || kind=recording
        ;;
    report)
        options='--by --at --from --to --during --every --device --kind --top --sort --transfers --segments --frees --names --plan --policy --inclusive --frames --skip --callers --process --native --python-only --warmup --json --csv --also-json --html --output --open --no-source --color --help'
        case $previous in
        --by) words='line function file module thread device stack process op size name category' ;;
        --at) words='peak end now' ;;
        --from) words='peak' ;;
        --to) words='peak' ;;
        --kind | -k) words='heap map pinned managed device array pool vmm sub arena' ;;
        --sort) words='alloc.count alloc.bytes free.count free.bytes temporary.count temporary.bytes active.at_peak count.at_peak active.at_kind_peak own.peak end.bytes end.count active.peak reserved.peak alloc.largest lifetime.total resident.at_peak resident.shared resident.huge swapped.at_peak untouched.at_peak resident.end start.bytes start.count net.growth mean.bytes mean.lifetime help' ;;
        --also-json) kind=file ;;
        --html) [ -z "$joined" ] || kind=file ;;
        --output | -o) kind=file ;;
        --color) words='auto always never' ;;
        --during | --every | --device | -d | --top | -n | --frames | --skip | --callers | --process | -p | --warmup) kind=none ;;
        esac
        [ -n "$kind" ] || kind=recording
        ;;
    lines)
        options='--from --to --during --every --func --file --columns --device --kind --top --skip --process --native --python-only --json --csv --also-json --color --help'
        case $previous in
        --from) words='peak' ;;
        --to) words='peak' ;;
        --file) kind=file ;;
        --columns) words='alloc.count alloc.bytes free.count free.bytes temporary.count temporary.bytes active.at_peak count.at_peak active.at_kind_peak own.peak end.bytes end.count active.peak reserved.peak alloc.largest lifetime.total resident.at_peak resident.shared resident.huge swapped.at_peak untouched.at_peak resident.end start.bytes start.count net.growth mean.bytes mean.lifetime reserved.growth help' head=${word%"${word##*,}"} ;;
        --kind | -k) words='heap map pinned managed device array pool vmm sub arena' ;;
        --also-json) kind=file ;;
        --color) words='auto always never' ;;
        --during | --every | --func | -f | --device | -d | --top | -n | --skip | --process | -p) kind=none ;;
        esac
        [ -n "$kind" ] || kind=recording
        ;;
    leaks)
        options='--by --at --from --to --during --device --kind --top --frames --skip --process --native --python-only --suppressions --all --error-exitcode --json --csv --color --help'
        case $previous in
        --by) words='stack line' ;;
        --at) words='peak end now' ;;
        --from) words='peak' ;;
        --to) words='peak' ;;
        --kind | -k) words='heap map pinned managed device array pool vmm sub arena' ;;
        --suppressions) kind=file ;;
        --color) words='auto always never' ;;
        --during | --device | -d | --top | -n | --frames | --skip | --process | -p | --error-exitcode) kind=none ;;
        esac
        [ -n "$kind" ] || kind=recording
        ;;
    advise)
        options='--device --top --skip --native --python-only --json --color --help'
        case $previous in
        --color) words='auto always never' ;;
        --device | -d | --top | -n | --skip) kind=none ;;
        esac
        [ -n "$kind" ] || kind=recording
        ;;
    diff)
        options='--by --new --device --top --sort --stat --frames --skip --json --csv --html --output --open --color --help'
        case $previous in
        --by) words='line function file module device stack op' ;;
        --sort) words='alloc.count alloc.bytes free.count free.bytes temporary.count temporary.bytes active.at_peak count.at_peak active.at_kind_peak own.peak end.bytes end.count active.peak reserved.peak alloc.largest lifetime.total resident.at_peak resident.shared resident.huge swapped.at_peak untouched.at_peak resident.end start.bytes start.count net.growth mean.bytes mean.lifetime help' ;;
        --stat) words='alloc.count alloc.bytes free.count free.bytes temporary.count temporary.bytes active.at_peak count.at_peak active.at_kind_peak own.peak end.bytes end.count active.peak reserved.peak alloc.largest lifetime.total resident.at_peak resident.shared resident.huge swapped.at_peak untouched.at_peak resident.end start.bytes start.count net.growth mean.bytes mean.lifetime help' ;;
        --html) [ -z "$joined" ] || kind=file ;;
        --output | -o) kind=file ;;
        --color) words='auto always never' ;;
        --device | -d | --top | -n | --frames | --skip) kind=none ;;
        esac
        [ -n "$kind" ] || kind=recording
        ;;
    check)
        options='--output --no-follow --aggregate --depth --torch-names --python-module --range --source --python-allocators --cuda-delivery --deepbind --free-stacks --quiet --no-heap-sample --device --kind --skip --process --native --python-only --suppressions --max-peak --max-reserved --max-leak --max-leak-blocks --max-live-at-end --max-allocs --max-allocated --max-temporary --max-largest --max-line --max-line-total --max-growth-per --warmup --repeat --rules --baseline --max-growth --growth-floor --write-baseline --top --frames --all --junit --github --json --csv --color --help'
        case $previous in
        --output | -o) kind=file ;;
        --cuda-delivery) words='preload audit' ;;
        --kind | -k) words='heap map pinned managed device array pool vmm sub arena' ;;
        --suppressions) kind=file ;;
        --rules) kind=file ;;
        --baseline) kind=file ;;
        --write-baseline) kind=file ;;
        --junit) kind=file ;;
        --color) words='auto always never' ;;
        --depth | --range | --device | -d | --skip | --process | -p | --max-peak | --max-reserved | --max-leak | --max-leak-blocks | --max-live-at-end | --max-allocs | --max-allocated | --max-temporary | --max-largest | --max-line | --max-line-total | --max-growth-per | --warmup | --repeat | --max-growth | --growth-floor | --top | -n | --frames) kind=none ;;
        esac
        [ -n "$kind" ] || kind=recording
        ;;
    info)
        options='--json --color --help'
        case $previous in
        --color) words='auto always never' ;;
        esac
        [ -n "$kind" ] || kind=recording
        ;;
    top)
        options='--device --skip --interval --once --by --sort --top --json --color --help'
        case $previous in
        --by) words='line function op' ;;
        --sort) words='active growth count' ;;
        --color) words='auto always never' ;;
        --device | -d | --skip | --interval | -n | --top) kind=none ;;
        esac
        [ -n "$kind" ] || kind=recording
        ;;
    log)
        options='--device --kind --skip --process --func --follow --min-size --json --help'
        case $previous in
        --kind | -k) words='heap map pinned managed device array pool vmm sub arena' ;;
        --device | -d | --skip | --process | -p | --func | --min-size) kind=none ;;
        esac
        [ -n "$kind" ] || kind=recording
        ;;
    sql)
        options='--json --csv --color --help'
        case $previous in
        --color) words='auto always never' ;;
        esac
        [ -n "$kind" ] || kind=recording
        ;;
    import)
        options='--output --source --quiet --help'
        case $previous in
        --output | -o) kind=file ;;
        esac
        ;;
    merge)
        options='--quiet --output --align --help'
        case $previous in
        --output | -o) kind=file ;;
        --align) kind=none ;;
        esac
        [ -n "$kind" ] || kind=recording
        ;;
    export)
        options='--at --from --to --during --device --kind --stat --skip --process --native --python-only --format --max-events --min-size --all-frames --commit --output --help'
        case $previous in
        --at) words='peak end now' ;;
        --from) words='peak' ;;
        --to) words='peak' ;;
        --kind | -k) words='heap map pinned managed device array pool vmm sub arena' ;;
        --stat) words='alloc.count alloc.bytes free.count free.bytes temporary.count temporary.bytes active.at_peak count.at_peak active.at_kind_peak own.peak end.bytes end.count active.peak reserved.peak alloc.largest lifetime.total resident.at_peak resident.shared resident.huge swapped.at_peak untouched.at_peak resident.end start.bytes start.count net.growth mean.bytes mean.lifetime help' ;;
        --format) words='chrome-trace folded heaptrack massif pprof rows-csv rows-jsonl speedscope torch-snapshot help' ;;
        --output | -o) kind=file ;;
        --during | --device | -d | --skip | --process | -p | --max-events | --min-size | --commit) kind=none ;;
        esac
        [ -n "$kind" ] || kind=recording
        ;;
    python-path)
        options='--help'
        case $previous in
        esac
        ;;
    kernel)
        options='--user --prefix --python --help'
        case $previous in
        --prefix) kind=file ;;
        --python) kind=file ;;
        esac
        [ -n "$kind$words" ] || words='install uninstall'
        ;;
    mark)
        options='--help'
        case $previous in
        esac
        [ -n "$kind" ] || kind=recording
        ;;
    pause)
        options='--help'
        case $previous in
        esac
        [ -n "$kind" ] || kind=recording
        ;;
    rotate)
        options='--help'
        case $previous in
        esac
        [ -n "$kind" ] || kind=recording
        ;;
    resume)
        options='--help'
        case $previous in
        esac
        [ -n "$kind" ] || kind=recording
        ;;
    yield)
        options='--timeout --wait --force --help'
        case $previous in
        --timeout) kind=none ;;
        esac
        ;;
    restore)
        options='--timeout --wait --force --help'
        case $previous in
        --timeout) kind=none ;;
        esac
        ;;
    state)
        options='--timeout --force --help'
        case $previous in
        --timeout) kind=none ;;
        esac
        ;;
    esac
    if [[ $word == -* && $kind != none ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
    elif [ -n "$words" ]; then
        mapfile -t COMPREPLY < <(compgen -P "$head" -W "$words" -- "${word#"$head"}")
    elif [ "$kind" = recording ]; then
        mapfile -t COMPREPLY < <(compgen -f -X '!*.db' -- "$word"; compgen -d -- "$word")
        [ ${#COMPREPLY[@]} -gt 0 ] || mapfile -t COMPREPLY < <(compgen -f -- "$word")
    elif [ "$kind" != none ]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    fi
}
complete -o filenames -F _memprof memprof
