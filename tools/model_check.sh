#!/usr/bin/env bash
# Model-check the engine: every interleaving that loom can reach, and many random ones from shuttle. The engine's sync
# module stands on loom's or shuttle's primitives under the cfg of that name; a target folder of its own keeps the
# ordinary build from being redone.
set -euo pipefail
cd "$(dirname "$0")/.."
ran=0
for tool in loom shuttle; do
    test -f "crates/engine/tests/$tool.rs" || continue
    RUSTFLAGS="--cfg $tool" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/model-$tool" \
        cargo test --release --locked -p mxnp-engine --test "$tool"
    ran=$((ran + 1))
done
test "$ran" -gt 0 || { echo "model check: crates/engine/tests/{loom,shuttle}.rs not found"; exit 1; }
