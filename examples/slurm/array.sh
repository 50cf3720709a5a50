#!/usr/bin/env bash
# Jobs that need not run together: a GPU, a file and disorder of its own for each:  sbatch examples/slurm/array.sh
#SBATCH --job-name=glass
#SBATCH --array=1-100
#SBATCH --ntasks=1
#SBATCH --gpus=1
#SBATCH --cpus-per-task=4
#SBATCH --time=4:00:00
#SBATCH --signal=B:USR1@300
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail

launch=${LAUNCH:-srun}
devices=${DEVICES:---device cuda}
number=${SLURM_ARRAY_TASK_ID:-1}
out=${OUT:-glass-$number.h5}

# Samples follow from the disorder seed; the seed of the dynamics differs too, so that no two files share random numbers.
if [ -e "$out" ]; then
    command=(spinsim resume "$out")
else
    command=(spinsim temper --lattice cubic --size 16 --couplings pm-j --samples 128 --disorder-seed "$number" --seed "$number"
        --temperatures 0.8:2.0:32 --replicas 4 --thermalize 100000 --sweeps 1000000 --measure-every 100
        --checkpoint-every 600 --out "$out" "$@")
fi

# Five minutes before the time limit Slurm sends USR1 to this script, which passes it on: the run saves itself.
stopped=
trap 'stopped=yes; kill -USR1 "$run" || true' USR1
$launch "${command[@]}" $devices &
run=$! status=0
wait "$run" || status=$?
while kill -0 "$run" 2> /dev/null; do             # the signal has ended the wait, not the run
    status=0; wait "$run" || status=$?
done
if [ -n "$stopped" ] && [ "$status" -ge 128 ]; then
    scontrol requeue "$SLURM_JOB_ID"              # the job begins again in the queue, and the run at its checkpoint
fi
exit "$status"
