#!/usr/bin/env bash
# A process for each GPU of several nodes, by MPI, and one file:  sbatch examples/slurm/many_nodes.sh
#SBATCH --job-name=glass
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=4
#SBATCH --time=12:00:00
#SBATCH --signal=B:USR1@300
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail

launch=${LAUNCH-srun}                             # where srun does not know your MPI: srun --mpi=pmix, or mpiexec
devices=${DEVICES:---device cuda}                 # ranks of a node share out its GPUs
name=${SLURM_JOB_NAME:-glass}

# The file is named by the job and the flags, such as glass-size-12.h5, so that two sizes have different files. OUT is
# another name, in which %x is the name of the job.
flags=$(printf '%s' "$*" | tr -cs '[:alnum:].' -)
out=${OUT:-%x${flags:+-${flags#-}}.h5}
out=${out//%x/$name}

# `spinsim devices` says what each rank found; the run says how samples are shared out.
$launch spinsim devices

# The same command continues its file from the last checkpoint, and refuses the file of another run.
command=(spinsim temper --lattice cubic --size 16 --couplings pm-j --samples 2048
    --temperatures 0.8:2.0:32 --replicas 4 --thermalize 100000 --sweeps 1000000 --measure-every 100
    --checkpoint-every 600 --out "$out" "$@")

# Five minutes before the time limit Slurm sends USR1 to this script, which passes it on: the run saves itself.
stopped=
trap 'stopped=yes; kill -USR1 "$run" || true' USR1
$launch "${command[@]}" $devices &
run=$! status=0
wait "$run" || status=$?
while kill -0 "$run" 2> /dev/null; do             # the signal has ended the wait, not the run
    status=0; wait "$run" || status=$?
done
if [ "$status" -ge 128 ] && [ -n "$stopped" ] && [ -n "${SLURM_JOB_ID:-}" ]; then
    scontrol requeue "$SLURM_JOB_ID"              # the job begins again in the queue, and the run at its checkpoint
elif [ "$status" -ge 128 ]; then                  # cancelled, or killed (137), as for memory: the same would come again
    echo "The run was stopped with status $status: the same command continues it from its last checkpoint." >&2
fi
exit "$status"
