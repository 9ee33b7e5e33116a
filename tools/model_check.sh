#!/usr/bin/env bash
# Model-check the engine: every interleaving of its protocols with loom, many random ones of the whole with shuttle.
# The features of that name put the checker's primitives into the engine's sync module. A target folder of its own
# keeps the ordinary build from being redone.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/model"
for tool in loom shuttle; do
    log=$(mktemp)
    cargo test --release --locked -p mxnp-engine --features "$tool" --lib "${tool}_tests" 2>&1 | tee "$log"
    # A renamed module would leave nothing to run, and cargo would call that a success.
    grep -qE 'test result: ok\. [1-9]' "$log" || { echo "model check: no $tool test ran"; exit 1; }
    rm "$log"
done
