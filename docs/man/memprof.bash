# bash completion for memprof, made by tools/man.c
_memprof() {
    local word=${COMP_WORDS[COMP_CWORD]} options=
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W 'run attach detach report lines leaks advise diff check info top log sql import merge export python-path kernel mark pause rotate resume yield restore state help --version --help' -- "$word")
        return
    fi
    case ${COMP_WORDS[1]} in
    run) options='--output --no-follow --aggregate --max-events --depth --torch-snapshot --torch-names --python-module --range --source --python-allocators --cuda-delivery --deepbind --no-symbols --paused --policy --free-stacks --rotate --keep --sample --sample-seed --min-size --quiet --no-heap-sample --help' ;;
    attach) options='--output --aggregate --max-events --depth --source --no-symbols --quiet --help' ;;
    detach) options='--help' ;;
    report) options='--by --at --from --to --during --every --device --kind --top --sort --transfers --segments --frees --names --plan --policy --inclusive --frames --skip --callers --process --native --python-only --warmup --json --csv --also-json --html --output --open --no-source --color --help' ;;
    lines) options='--from --to --during --every --func --file --columns --device --kind --top --skip --process --native --python-only --json --csv --also-json --color --help' ;;
    leaks) options='--by --at --from --to --during --device --kind --top --frames --skip --process --native --python-only --suppressions --all --error-exitcode --json --csv --color --help' ;;
    advise) options='--device --top --skip --native --python-only --json --color --help' ;;
    diff) options='--by --new --device --top --sort --stat --frames --skip --json --csv --html --output --open --color --help' ;;
    check) options='--output --no-follow --aggregate --depth --torch-names --python-module --range --source --python-allocators --cuda-delivery --deepbind --free-stacks --quiet --no-heap-sample --device --kind --skip --process --native --python-only --suppressions --max-peak --max-reserved --max-leak --max-leak-blocks --max-live-at-end --max-allocs --max-allocated --max-temporary --max-largest --max-line --max-line-total --max-growth-per --warmup --repeat --rules --baseline --max-growth --growth-floor --write-baseline --top --frames --all --junit --github --json --csv --color --help' ;;
    info) options='--json --color --help' ;;
    top) options='--device --skip --interval --once --by --sort --top --json --color --help' ;;
    log) options='--device --kind --skip --process --func --follow --min-size --json --help' ;;
    sql) options='--json --csv --color --help' ;;
    import) options='--output --source --quiet --help' ;;
    merge) options='--quiet --output --align --help' ;;
    export) options='--at --from --to --during --device --kind --stat --skip --process --native --python-only --format --max-events --min-size --all-frames --commit --output --help' ;;
    python-path) options='--help' ;;
    kernel) options='--user --prefix --python --help' ;;
    mark) options='--help' ;;
    pause) options='--help' ;;
    rotate) options='--help' ;;
    resume) options='--help' ;;
    yield) options='--timeout --wait --force --help' ;;
    restore) options='--timeout --wait --force --help' ;;
    state) options='--timeout --force --help' ;;
    esac
    if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    fi
}
complete -o filenames -F _memprof memprof
