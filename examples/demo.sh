#!/bin/sh
# What `make demo` shows: the main job, on artifacts that lie in the repository, without JAX or PyTorch.
set -eu
cd "$(dirname "$0")/.."

show() {
    printf '\n$ %s\n' "$*"
    "$@"
}

# A command that is meant to answer no: it is shown with its exit code, and any other code stops the demo.
refuses() {
    expected=$1
    shift
    printf '\n$ %s\n' "$*"
    code=0
    "$@" || code=$?
    echo "exit code $code"
    test "$code" -eq "$expected"
}

echo "1. What is in an artifact? Softmax, captured from JAX:"
show tlir show tests/golden/jax/softmax.json

echo
echo "2. Does it hold together, what does it compute, and is that what the frontend returned?"
show tlir check tests/golden/jax/softmax.json
show tlir run tests/golden/jax/softmax.json
show tlir compare tests/golden/jax/softmax.json

echo
echo "3. Which operations round? float64 to float32 and back loses the last bit of 16777217:"
show tlir run tests/golden/jax/float64_through_float32.json --flags

echo
echo "4. A multiplication whose declared dtype somebody edited is refused, with the cast to insert:"
refuses 1 tlir check examples/artifacts/edited_dtype.json

echo
echo "5. A frontend output that is wrong in one element is found, with its place:"
refuses 1 tlir compare examples/artifacts/wrong_output.json

echo
echo "6. A transformer block from each frontend, and everything else that is recorded here:"
show tlir compare tests/golden/jax/transformer_block.json tests/golden/torch/transformer_block.json
show tlir compare --quiet tests/golden
