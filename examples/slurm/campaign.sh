#!/usr/bin/env bash
# All runs of a campaign, shared by any number of tasks with a GPU each:  sbatch examples/slurm/campaign.sh glass.toml
#SBATCH --job-name=campaign
#SBATCH --array=1-20
#SBATCH --ntasks=1
#SBATCH --gpus=1
#SBATCH --cpus-per-task=4
#SBATCH --time=4:00:00
#SBATCH --signal=B:USR1@300
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail

# Every task gives the same command: it takes runs that no other task has, until none is left.
stopped=
trap 'stopped=yes; kill -TERM "$run" || true' USR1 # five minutes before the time limit: the present run saves itself
spinsim campaign "$@" --quiet --checkpoint-every 600 &
run=$! status=0
wait "$run" || status=$?
while kill -0 "$run" 2> /dev/null; do              # the signal has ended the wait, not the run
    status=0; wait "$run" || status=$?
done
if [ "$status" -ge 128 ] && [ -n "$stopped" ] && [ -n "${SLURM_JOB_ID:-}" ]; then
    scontrol requeue "$SLURM_JOB_ID"               # the job begins again in the queue, and its runs at their checkpoints
fi
exit "$status"
