# What the scripts share; sourced, not run.
# shellcheck shell=bash

script=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1

# Prints the comment at the top of the script that was started.
usage() { sed -n '2,/^[^#]/{s/^# \{0,1\}//p;}' "$script"; }

die() {
    printf '%s: %s\n' "$(basename "$script")" "$*" >&2
    exit 1
}

# Runs the set-up for PURPOSE (demo or test), takes its variables in, and makes sure that a build uses them. Leaves in
# `target` the folder that cargo builds in.
prepare() {
    local purpose=$1
    shift
    command -v cargo >/dev/null || die "cargo isn't on the PATH; Rust is needed (its edition and version are in Cargo.toml)"
    "$root/scripts/setup" --for "$purpose" "$@" || exit 1
    eval "$("$root/scripts/env")"
    target=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
    forget_other_shaderc
}

# The crate shaderc-sys isn't built again when SHADERC_LIB_DIR changes. A build that took the library of another
# folder (perhaps one that doesn't link, or is gone) is dropped; one that it compiled itself stays.
forget_other_shaderc() {
    local output folder
    for output in "$target"/*/build/shaderc-sys-*/output; do
        [[ -f $output ]] || continue
        folder=$(sed -n 's/^cargo:rustc-link-search=native=//p' "$output" | head -n 1)
        [[ $folder == "$target"/* || $folder == "$(realpath "$SHADERC_LIB_DIR")" ]] && continue
        cargo clean --quiet -p shaderc-sys
        return
    done
}

# Sorts the integration tests by whether they want a device: those that do use the tests' support module, or are tests
# of the command line. Leaves options of cargo in `device_tests` and `pure_tests`; of the former also those whose kernels
# take buffers by address where that is asked for, in `choosing_tests`; those that want two devices, in `pair_tests`; and
# those that know which features there are, with the one that does everything at once, in `featured_tests`. What shows that
# layers are awake is in none.
find_tests() {
    local file name
    device_tests=()
    choosing_tests=()
    pair_tests=()
    featured_tests=(--test stress)
    pure_tests=()
    for file in tests/*.rs tests/*/main.rs cli/tests/*.rs cli/tests/*/main.rs tools/*/tests/*.rs; do
        [[ -f $file && $file != tests/canary.rs && $file != tests/broken/* ]] || continue
        name=${file%/main.rs}
        name=$(basename "$name" .rs)
        # Of the command line's tests those that ask for a device, of the library's those with its support.
        if [[ $file == cli/* ]] && grep -q 'has_device\|device_test' "$file" ||
            [[ $file != cli/* ]] && grep -q '^mod support;' "$file"; then
            device_tests+=(--test "$name")
            ! grep -q '^use support::kernels::.*\bchosen\b' "$file" || choosing_tests+=(--test "$name")
            ! grep -q 'there are not two devices\|both drivers are needed' "$file" || pair_tests+=(--test "$name")
            [[ $file == cli/* ]] || ! grep -q 'feature = "' "$file" || featured_tests+=(--test "$name")
        else
            pure_tests+=(--test "$name")
        fi
    done
}
