#!/bin/sh
# Transfer learning on handwritten digits: layers that learnt to tell 0 to 4 apart help to learn 5 to 9 from 20 images.
#   examples/transfer/run.sh [FOLDER]
set -eu
cd "$(dirname "$0")/../.."
bin=${TUNE_BIN_DIR:-build/release/bin}
out=${1:-examples/transfer/out}
mkdir -p "$out"

# The digits 0 to 4, and 5 to 9 as classes 0 to 4.
awk -F, 'NR == 1 || $NF < 5' examples/data/digits.csv > "$out/many.csv"
awk -F, -v OFS=, 'NR == 1 { print; next } $NF >= 5 { $NF -= 5; print }' examples/data/digits.csv > "$out/all.csv"
awk 'NR <= 21' "$out/all.csv" > "$out/few.csv"
awk 'NR == 1 || NR > 21' "$out/all.csv" > "$out/rest.csv"
convert() {
    rm -rf "$2"
    "$bin/tune-data" convert "$1" "$2" --pack 'image=p0..p63:uint8:8,8' --columns label:int $3 > /dev/null
}
convert "$out/many.csv" "$out/many" "--split train=0.8,val=0.2 --seed 1"
convert "$out/few.csv" "$out/few/train" ""
convert "$out/rest.csv" "$out/few/val" ""

rm -rf "$out/source"
network="--model=cnn --width=16 --lr=3e-3 --batch-size=16 --seed=2"
"$bin/tune-trainer" train --data="$out/many" $network --epochs=15 --checkpoint-dir="$out/source" > "$out/source.log"

echo "20 images, from nothing:"
"$bin/tune-trainer" train --data="$out/few" $network --epochs=4 2> /dev/null | tail -n 1
echo "20 images, from the other digits' layers:"
"$bin/tune-trainer" train --data="$out/few" $network --epochs=4 --init-from="$out/source" --new-head=true \
    --freeze='^0' --unfreeze=2:. --lr-decay=0.9 2> /dev/null | tail -n 1
