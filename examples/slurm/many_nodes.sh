#!/usr/bin/env bash
# A process for each GPU of several nodes, by MPI, and one file:  sbatch examples/slurm/many_nodes.sh
#SBATCH --job-name=glass
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=4
#SBATCH --time=12:00:00
#SBATCH --requeue
set -euo pipefail

launch=${LAUNCH:-srun}                            # where srun does not know your MPI: srun --mpi=pmix, or mpiexec
devices=${DEVICES:---device cuda}                 # ranks of a node share out its GPUs
out=${OUT:-glass.h5}

# `spinsim devices` says what each rank found; the run says how samples are shared out.
$launch spinsim devices
if [ -e "$out" ]; then
    $launch spinsim resume "$out" $devices
else
    $launch spinsim temper --lattice cubic --size 16 --couplings pm-j --samples 2048 --temperatures 0.8:2.0:32 --replicas 4 \
        --thermalize 100000 --sweeps 1000000 --measure-every 100 --checkpoint-every 600 $devices --out "$out" "$@"
fi
