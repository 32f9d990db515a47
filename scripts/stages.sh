# Stages: commands whose output is kept, whose results are counted, and which make a row of a table; sourced, not run.
# Takes `logs` (a folder), `verbose` (shows all output where not empty) and `stage_limit_s`, and where skips are to be
# known, `not_applicable`: the file that lists them. Also part of the bundle that scripts/device-check makes.
# shellcheck shell=bash disable=SC2154

rows=()
failures=()
# Lines `USING ..` and `NOTE ..` of tests: which driver and layer there was, and what is other than a table says.
remarks=()
# The lines of `not_applicable` that some stage has met.
declare -A met=()
total_passed=0
total_failed=0
total_skipped=0
child=
trap '[[ -z $child ]] || kill "$child"; exit 130' INT TERM

# add_row SUITE DRIVER LAYER PASSED FAILED SKIPPED SECONDS
add_row() {
    rows+=("$1|$2|$3|$4|$5|$6|$7")
    ((total_passed += $4, total_failed += $5, total_skipped += $6)) || true
}

# Prints `PASSED FAILED SKIPPED` for a log of `cargo test`.
#
# Of each test program only the last result line counts, since a test may show the output of a cargo that it ran; for
# documentation tests all count, since they run in batches. A program that ends without a result has crashed. A test
# that finds itself unable to run says `SKIP name: reason` and passes, so that it is taken out of the passed ones.
count_tests() {
    awk -v status="$2" '
        function close_program() {
            if (!open) return
            if (seen) { passed += p; failed += f; skipped += i } else failed++
            open = seen = p = f = i = 0
        }
        /^ +Running [^`]/ { close_program(); open = 1; documentation = 0 }
        /^ +Doc-tests /   { close_program(); open = 1; documentation = 1 }
        /^test result: /  {
            if (!documentation) p = f = i = 0
            p += $4; f += $6; i += $8; seen = 1
        }
        /^SKIP /          { unable++ }
        END {
            close_program()
            if (status != 0 && failed == 0) failed = 1
            print passed - unable, failed + 0, skipped + unable
        }' "$1"
}

# Prints what a log says was skipped, as `TEST: REASON`.
skips() { sed -n 's/^\(SKIP\|PART\) //p' "$1" | sort -u; }

# hold_skips DRIVER LOG: puts into `unlisted` what was skipped and is not listed as not applicable there. A line of the
# list is `DRIVER,DRIVER | TEST: REASON`.
hold_skips() {
    local driver=$1 skip drivers known found
    while IFS= read -r skip; do
        found=
        while IFS='|' read -r drivers known; do
            drivers=${drivers// /}
            # shellcheck disable=SC2053 # a pattern
            [[ ",${drivers//\?/}," == *",$driver,"* && $skip == ${known# } ]] || continue
            found=yes
            met["$driver | ${known# }"]=yes
        done < <(grep -v '^#' "$not_applicable")
        [[ -n $found ]] || unlisted+=("      skipped, but not listed as not applicable on $driver: $skip")
    done < <(skips "$2")
}

# Prints the lines of the list that no stage has met; DRIVER... are those that all stages have run on.
unmet() {
    local drivers known driver
    while IFS='|' read -r drivers known; do
        for driver in ${drivers//,/ }; do
            [[ " $* " != *" $driver "* || -n ${met["$driver | ${known# }"]:-} ]] ||
                printf 'listed as not applicable on %s, but not skipped: %s\n' "$driver" "${known# }"
        done
    done < <(grep -v '^#' "$not_applicable")
}

# run_into LOG COMMAND...: runs the command for as long as a stage may take, its output going to the log, and to the
# terminal where all is asked for. In the background, since `timeout` takes its command out of reach of Ctrl-C.
run_into() {
    local log=$1 status=0
    shift
    : >"$log"
    timeout -k 10 "$stage_limit_s" "$@" >"$log" 2>&1 &
    child=$!
    [[ -z $verbose ]] || tail -n +1 -f --pid="$child" "$log" &
    wait "$child" || status=$?
    child=
    wait
    return "$status"
}

# stage check|test SUITE DRIVER LAYER COMMAND...: runs the command, keeps its output, and adds a row. A check is one
# thing that passes or fails; of a test the results are counted. False when anything failed. Leaves `counts`.
stage() {
    local kind=$1 suite=$2 driver=$3 layer=$4 status=0 started=$SECONDS title log
    shift 4
    title=$suite
    case $driver in
    -) ;;
    none) title="$title, without a driver" ;;
    *) title="$title, on $driver" ;;
    esac
    [[ $layer == - ]] || title="$title, under the $layer layer"
    log=$logs/$(tr -cs 'a-z0-9\n' - <<<"$title").log
    printf '== %s\n' "$title"
    run_into "$log" "$@" || status=$?
    if [[ $kind == test ]]; then
        read -r -a counts <<<"$(count_tests "$log" "$status")"
    else
        counts=($((status == 0)) $((status != 0)) 0)
    fi
    while IFS= read -r line; do remarks+=("$line"); done < <(grep -E '^(USING|NOTE) ' "$log" | sort -u)
    unlisted=()
    [[ $kind != test || -z ${not_applicable:-} ]] || hold_skips "$driver" "$log"
    ((counts[1] += ${#unlisted[@]})) || true
    add_row "$suite" "$driver" "$layer" "${counts[@]}" $((SECONDS - started))
    ((status == 0 && counts[1] == 0)) && return 0
    failures+=("  $title" ${unlisted[@]+"${unlisted[@]}"})
    while read -r name; do failures+=("      $name"); done < <(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$log")
    [[ -n $verbose ]] || cat "$log"
    ((status != 124 && status != 137)) || printf '== stopped after %s seconds\n' "$stage_limit_s"
    printf '== FAILED: %s (the command was: %s)\n' "$title" "$*"
    return 1
}

# Prints the tests and the test programs that took longest, with the logs that they are in.
slowest() {
    {
        grep -H '^TOOK ' "$logs"/*.log | sed 's|^.*/\(.*\)\.log:TOOK \([^ ]*\) \(.*\)$|\2 \3 (\1)|' | sort -rn | sed -n 1,6p
        awk '
            /^ +Running [^`]/ { program = $2 == "unittests" ? $3 : $2 }
            / finished in / { n = split(FILENAME, path, "/"); print $NF + 0, program " (" path[n] ")" }
        ' "$logs"/*.log | sed 's/\.log)$/)/' | sort -rn | sed -n 1,6p
    } | sed 's/^/slow: /; s/^slow: \([^ ]*\)/slow: \1 s/'
}

# Prints what failed, the table, what floats and the counts. False when anything failed.
summary() {
    printf '\n'
    ((!${#failures[@]})) || {
        printf 'failed:\n'
        printf '%s\n' "${failures[@]}" ''
    }
    {
        printf 'suite|driver|layer|passed|failed|skipped|seconds\n'
        printf '%s\n' "${rows[@]}"
    } | awk -F '|' '{
        printf "%-28s %-12s %-13s %7s %7s %8s %8s\n", $1, $2, $3, $4, $5, $6, $7
    }'
    printf '\n'
    ((!${#remarks[@]})) || printf '%s\n' "${remarks[@]}" | sort -u
    slowest
    printf '\n%d passed, %d failed, %d skipped\n' "$total_passed" "$total_failed" "$total_skipped"
    ((total_failed == 0))
}
