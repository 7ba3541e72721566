#!/bin/bash
#SBATCH --job-name=llama3-8b-zero3
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@92
set -euo pipefail
CHECKPOINTS=${CHECKPOINTS:-checkpoints}  # a directory that all nodes have
mkdir -p "$CHECKPOINTS"
CONFIG=$CHECKPOINTS/megatron.sh
cat > "$CONFIG" << 'END_OF_CONFIG'
# llama3-8b-zero3: 2 x 8 H100-SXM5-80, for Megatron-LM core_v0.15.0
# Names of arguments: NVIDIA/Megatron-LM core_v0.15.0, megatron/training/arguments.py
# bash: CHECKPOINTS=DIRECTORY; source megatron.sh; torchrun ... pretrain_gpt.py "${MEGATRON_ARGS[@]}"
MEGATRON_ARGS=(
    --tensor-model-parallel-size 1
    --pipeline-model-parallel-size 1
    --context-parallel-size 1
    --micro-batch-size 1
    --global-batch-size 64
    --use-megatron-fsdp
    --use-distributed-optimizer
    --data-parallel-sharding-strategy optim_grads_params
    --overlap-grad-reduce
    --overlap-param-gather
    --ckpt-format fsdp_dtensor
    --recompute-granularity full
    --recompute-method uniform
    --recompute-num-layers 1
    --num-layers 32
    --hidden-size 4096
    --ffn-hidden-size 14336
    --num-attention-heads 32
    --group-query-attention
    --num-query-groups 8
    --kv-channels 128
    --vocab-size 128256
    --seq-length 8192
    --max-position-embeddings 8192
    --position-embedding-type rope
    --rotary-base 500000
    --normalization RMSNorm
    --swiglu
    --disable-bias-linear
    --untie-embeddings-and-output-weights
    --attention-dropout 0
    --hidden-dropout 0
    --bf16
    --grad-reduce-in-bf16
    --optimizer adam
    --lr 0.0006
    --adam-beta1 0.9
    --adam-beta2 0.95
    --adam-eps 1e-08
    --weight-decay 0.1
    --clip-grad 1
    --lr-decay-style cosine
    --min-lr 6e-05
    --lr-warmup-iters 190
    --train-iters 1908
    --seed 1
    --log-interval 10
    --eval-iters 0
    --save "$CHECKPOINTS"
    --load "$CHECKPOINTS"
    --save-interval 120
    --exit-signal-handler
)
END_OF_CONFIG
HEAD_NODE=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export HEAD_NODE CONFIG CHECKPOINTS
NODE=$CHECKPOINTS/start-node.sh
cat > "$NODE" << 'END_OF_NODE'
NODE_RANK=$SLURM_NODEID
source "$CONFIG"
# A notice (SIGTERM) is for the training processes: they save and end.
tell() {
  told=yes
  local file stat found=no
  for file in /proc/[0-9]*/stat; do
    { read -r stat < "$file"; } 2> /dev/null || continue
    [[ ${stat##*) } == ?" $launcher "* ]] || continue
    kill -TERM "${stat%% *}" && found=yes
  done
  [ "$found" = yes ] || kill -TERM "$launcher" || true
}
(trap '' USR1; exec torchrun --nnodes=2 --node-rank="$NODE_RANK" --rdzv-id="$SLURM_JOB_ID" --rdzv-backend=c10d --rdzv-endpoint="$HEAD_NODE:29500" --nproc-per-node=8 pretrain_gpt.py "${MEGATRON_ARGS[@]}") &
launcher=$!
trap tell TERM INT USR1
told=yes
while [ "$told" = yes ]; do  # a notice interrupts the wait
  told=no
  code=0
  wait "$launcher" || code=$?
done
exit "$code"
END_OF_NODE

# The node's end, or that of the job's time, is announced: the processes save and end, and
# Slurm starts the job again from their checkpoint.
start_again() {
  trap '' USR1 TERM
  scancel --signal=USR1 "$SLURM_JOB_ID.0" || kill "$step"
  wait "$step" || true
  scontrol requeue "$SLURM_JOB_ID"
  exit 0
}
trap start_again USR1 TERM
srun --kill-on-bad-exit=1 bash "$NODE" &
step=$!
wait "$step"
