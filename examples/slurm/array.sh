#!/usr/bin/env bash
# Jobs that need not run together: a GPU, a file and disorder of its own for each:  sbatch examples/slurm/array.sh
#SBATCH --job-name=glass
#SBATCH --array=1-100
#SBATCH --ntasks=1
#SBATCH --gpus=1
#SBATCH --cpus-per-task=4
#SBATCH --time=4:00:00
#SBATCH --requeue
set -euo pipefail

launch=${LAUNCH:-srun}
devices=${DEVICES:---device cuda}
number=${SLURM_ARRAY_TASK_ID:-1}
out=${OUT:-glass-$number.h5}

# Samples follow from the disorder seed; the seed of the dynamics differs too, so that no two files share random numbers.
if [ -e "$out" ]; then
    $launch spinsim resume "$out" $devices
else
    $launch spinsim temper --lattice cubic --size 16 --couplings pm-j --samples 128 --disorder-seed "$number" --seed "$number" \
        --temperatures 0.8:2.0:32 --replicas 4 --thermalize 100000 --sweeps 1000000 --measure-every 100 --checkpoint-every 600 \
        $devices --out "$out" "$@"
fi
