#!/usr/bin/env bash
# One process drives all GPUs of a node, without MPI:  sbatch examples/slurm/one_node.sh
#SBATCH --job-name=glass
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=16
#SBATCH --time=12:00:00
#SBATCH --requeue
set -euo pipefail

launch=${LAUNCH:-srun}                            # such as LAUNCH="mpiexec -n 1" where there is no Slurm
devices=${DEVICES:---device cuda --gpus all}
out=${OUT:-glass.h5}

# A job that came to its end of time, or was put back into the queue, goes on from its last checkpoint.
if [ -e "$out" ]; then
    $launch spinsim resume "$out" $devices
else
    $launch spinsim temper --lattice cubic --size 16 --couplings pm-j --samples 512 --temperatures 0.8:2.0:32 --replicas 4 \
        --thermalize 100000 --sweeps 1000000 --measure-every 100 --checkpoint-every 600 $devices --out "$out" "$@"
fi
