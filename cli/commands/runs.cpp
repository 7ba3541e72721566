#include <array>

#include "cli/commands/groups.h"

namespace reckon::cli {
namespace {

constexpr std::array kRunsCommands{
    Command{
        "run", "run a plan on this machine or on Kubernetes, with a live forecast",
        "reckon run FILE [options]",
        "Examples:\n"
        "  reckon run scenarios/small-mlp-cpu.yaml\n"
        "  reckon run mlp.yaml --out runs/second --deadline 2h --format json > run.json\n"
        "  reckon run mlp.yaml --out runs/second --resume\n"
        "  reckon run mlp.yaml --on kubernetes --image registry.example/reckon-worker:1 --dry-run\n"
        "  reckon run mlp.yaml --on kubernetes --image registry.example/reckon-worker:1\n"
        "  reckon run --on kubernetes --attach mlp\n"
        "\n"
        "Exit codes: 0 finished, 1 the run failed, 2 the scenario is wrong or cannot run here,\n"
        "3 the environment failed, 4 stopped by --budget and 75 on request, behind a checkpoint:\n"
        "--resume goes on\n",
        run_run, run_options_text},
    Command{
        "status", "show a run on Kubernetes by process, or what runs have left there",
        "reckon status [NAME] --on kubernetes [options]",
        "Without NAME: Jobs, volume claims and nodes that nobody owns any more, with their cost\n"
        "an hour.\n"
        "\n"
        "Examples:\n"
        "  reckon status --on kubernetes\n"
        "  reckon status mlp --on kubernetes\n"
        "  reckon status mlp --on kubernetes --context prod --namespace team\n"
        "\n"
        "Exit codes: 0 done, 2 there is no such run, 3 the environment failed\n",
        run_status_command, status_options, false},
    Command{
        "stop", "stop a run on Kubernetes after a checkpoint",
        "reckon stop NAME --on kubernetes [options]",
        "Examples:\n"
        "  reckon stop mlp --on kubernetes && reckon run --on kubernetes --attach mlp --resume\n"
        "\n"
        "Exit codes: 0 stopped, 2 there is no such run, 3 the environment failed\n",
        run_stop, cluster_run_options, false},
    Command{"delete", "delete a finished run from Kubernetes",
            "reckon delete NAME --on kubernetes [options]",
            "Examples:\n"
            "  reckon delete mlp --on kubernetes\n"
            "  reckon delete mlp --on kubernetes --checkpoints\n"
            "\n"
            "Exit codes: 0 deleted, 1 it still runs, 2 there is no such run, 3 the environment "
            "failed\n",
            run_delete, delete_options, false},
    Command{
        "trial",
        "run a few steps of a job here, forecast the whole job, and say whether an accelerator "
        "pays",
        "reckon trial FILE [options]",
        "Examples:\n"
        "  reckon trial scenarios/small-mlp-cpu.yaml --steps 50\n"
        "  reckon trial train.yaml --container-command 'python train.py' --price '0.40 USD/h'\n"
        "  reckon trial train.yaml --container-command ./train --progress 'it "
        "(?<step>[0-9]+)'\n"
        "  reckon trial train.yaml --sweep cluster.pools.node.machine=n1-standard-8,n1-standard-16"
        "\n"
        "  reckon trial scenarios/small-gpt-zero3-cpu.yaml --layouts 4 --steps 30\n"
        "\n"
        "Exit codes: 0 measured, 1 the program failed, printed no progress or took too long, 2 "
        "the input is\nwrong, 3 the environment failed\n",
        run_trial_command, trial_options},
    Command{"probe", "measure this machine: arithmetic, memory, storage, collectives",
            "reckon probe [--on kubernetes FILE] [options]",
            "Examples:\n"
            "  reckon probe\n"
            "  reckon probe --model resnet18 --batch 8 --processes 4 --out probe.jsonl\n"
            "  reckon probe --checkpoint-dir /mnt/checkpoints --format json | jq .kind\n"
            "  reckon probe --on kubernetes plan.yaml --image registry.example.com/worker:1\n"
            "\n"
            "Exit codes: 0 measured, 2 an option is wrong, 3 the environment failed (a directory "
            "that cannot\nbe written, a process that is lost)\n",
            run_probe, probe_options, false},
    Command{"diff", "compare a run with its forecast, cause by cause",
            "reckon diff FORECAST RUN [options]",
            "Examples:\n"
            "  reckon simulate mlp.yaml --format json > forecast.json\n"
            "  reckon diff forecast.json runs/mlp\n"
            "  reckon diff forecast.json runs/mlp --bill november.csv.gz --tag job=mlp\n"
            "\n"
            "Exit codes: 0 the run lies within the forecast's interval, 1 it does not, 2 a file is "
            "wrong or the\nrun is not finished, 3 the environment failed\n",
            run_diff, diff_options},
    Command{
        "calibrate", "calibrate the catalog from measured runs",
        "reckon calibrate MEASUREMENTS... [options]",
        "Examples:\n"
        "  reckon calibrate runs/mlp --out calibration.yaml\n"
        "  reckon simulate mlp.yaml --calibration calibration.yaml\n"
        "  reckon calibrate runs/small runs/large --out machine.yaml\n"
        "  reckon calibrate steps.csv --scenario resnet.yaml\n"
        "  reckon calibrate train.log --scenario resnet.yaml --pattern 'took (?<seconds>[0-9.]+)'\n"
        "\n"
        "Exit codes: 0 done, 1 forecasts of measurements that were held out become worse: "
        "nothing is written\nwithout --force, 2 a file is wrong, 3 the environment failed\n",
        run_calibrate, calibrate_options},
    Command{"history", "score past forecasts against what was measured", "reckon history [options]",
            "Examples:\n"
            "  reckon history\n"
            "  reckon history --format json > history.json\n"
            "  RECKON_HISTORY=off reckon simulate mlp.yaml\n"
            "\n"
            "Exit codes: 0 done, 3 the history cannot be read\n",
            run_history, history_options, false},
};

}  // namespace

std::span<const Command> commands_of_runs() { return kRunsCommands; }

}  // namespace reckon::cli
