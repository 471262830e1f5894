#!/bin/sh
# Converts a PyTorch model, runs both versions and compares them; then does the same with a mistake planted in the
# converted file. `make demo` runs this.
set -eu
cd "$(dirname "$0")/.."
export JAX_PLATFORMS="${JAX_PLATFORMS:-cpu}"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
source=examples/residual_net.py
converted=$out/residual_net_jax.py
wrong=$out/residual_net_wrong.py

step() {
    printf '\n==> %s\n\n' "$1"
}

step "before: $source"
cat "$source"

step "after: t2j convert $source"
t2j convert "$source" -o "$converted"
cat "$converted"

step "t2j check $source residual_net_jax.py"
t2j check "$source" "$converted" --device cpu

step "the same with a planted mistake: JAX's GELU approximates by default, PyTorch's does not"
sed 's/, approximate=False//' "$converted" > "$wrong"
diff "$converted" "$wrong" && { echo "demo: no mistake was planted" >&2; exit 1; }
echo
status=0
t2j check "$source" "$wrong" --device cpu || status=$?
[ "$status" -eq 1 ] || { echo "demo: the check did not see the planted mistake" >&2; exit 1; }
