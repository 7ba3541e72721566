#include <array>

#include "cli/commands/groups.h"

namespace reckon::cli {
namespace {

constexpr std::array kForecastsCommands{
    Command{
        "simulate", "forecast the time and cost of a training run, with ranges and reasons",
        "reckon simulate FILE [options]",
        "Examples:\n"
        "  reckon simulate scenarios/gke-p100-autoscaling.yaml\n"
        "  reckon simulate spot.yaml --set cluster.pools.p100.nodes.max=8 --set "
        "forecast.replications=200\n"
        "  reckon simulate spot.yaml --format json --seed 7 > forecast.json\n"
        "  reckon simulate spot.yaml --trace run.json      (open it at https://ui.perfetto.dev)\n"
        "  reckon simulate spot.yaml --html spot.html      (a page for any browser)\n"
        "  reckon simulate spot.yaml --sweep cluster.pools.p100.nodes=1..8 --csv sweep.csv\n"
        "  reckon simulate spot.yaml --sweep cluster.pools.p100.pricing=spot,on_demand --memo "
        "memo.md\n"
        "  squeue --all --json > q/jobs.json && sinfo --json > q/nodes.json && reckon simulate "
        "job.yaml "
        "--cluster q\n"
        "\n"
        "Exit codes: 0 done, 2 the scenario is wrong or does not fit in memory, 3 the environment "
        "failed\n",
        run_simulate, simulate_options},
    Command{
        "plan", "find the cluster and strategy that meet a deadline, a budget and a quota",
        "reckon plan [FILE] [options]",
        "FILE is a scenario; its plan: block and the options say what may vary. Without a file, "
        "--model and\nthe options are the question.\n"
        "\n"
        "Examples:\n"
        "  reckon plan scenarios/plan-gpt2.yaml\n"
        "  reckon plan --model llama3_8b --tokens 10B --accelerator h100,a100-80 --deadline 3d@95% "
        "--budget 20000USD\n"
        "  reckon plan --model llama3_8b --finetune lora:16 --tokens 200M --sequence 2048 --budget "
        "500USD\n"
        "  reckon plan spot.yaml --nodes 1..16 --pricing spot,on_demand --out best.yaml && reckon "
        "simulate best.yaml\n"
        "  reckon plan spot.yaml --fewest --deadline 8h@95%\n"
        "  reckon plan spot.yaml --provider gcp --residency EU --carbon-free 80%\n"
        "  reckon plan scenarios/plan-fleet.yaml --out fleet.yaml && reckon simulate fleet-1.yaml\n"
        "  reckon plan spot.yaml --baseline best.yaml --tolerance 3% --diff comment.md\n"
        "  reckon plan spot.yaml --lock  (then: --baseline spot.lock.json)\n"
        "\n"
        "Exit codes: 0 done, 1 no plan fits or it is worse than the baseline, 2 the question is "
        "wrong, 3 the environment failed\n",
        run_plan, plan_options, false},
    Command{
        "explore", "open a local page with a control for each choice of a scenario",
        "reckon explore FILE [options]",
        "Prints a link. The page behind it has a control for each choice: machine, region, nodes,\n"
        "how they are bought, layout, batch, checkpoints, deadline. It asks this process alone.\n"
        "\n"
        "Examples:\n"
        "  reckon explore scenarios/gke-p100-autoscaling.yaml\n"
        "  reckon explore spot.yaml --port 8080 --set workload.precision=bf16\n"
        "  reckon explore spot.yaml --print\n"
        "  reckon explore spot.yaml --print --format json > choices.json\n"
        "\n"
        "Exit codes: 0 ended by Ctrl-C, 2 the scenario is wrong or cannot be varied, 3 the "
        "environment failed\n",
        run_explore, explore_options},
    Command{"explain", "break down a training step, and show what would make it faster or cheaper",
            "reckon explain FILE [options]",
            "Examples:\n"
            "  reckon explain scenarios/parameter-servers-k80.yaml\n"
            "  reckon explain spot.yaml --set workload.batch_per_accelerator=128 --format json\n"
            "\n"
            "Exit codes: 0 done, 2 the scenario is wrong or does not fit in memory, 3 the "
            "environment failed\n",
            run_explain, explain_options},
    Command{
        "compare", "compare the time and cost of several scenarios",
        "reckon compare FILE... [options]",
        "Examples:\n"
        "  reckon compare spot.yaml on-demand.yaml\n"
        "  reckon compare spot.yaml --sweep cluster.pools.p100.nodes=2,3,4\n"
        "  reckon compare spot.yaml on-demand.yaml --html compare.html      (a page for any "
        "browser)\n"
        "  reckon compare spot.yaml --spot                                  (when is spot "
        "cheaper?)\n"
        "  reckon compare spot.yaml tpu.yaml --set workload.train.epochs=10 --format json\n"
        "\n"
        "Exit codes: 0 done, 2 a scenario is wrong or does not fit in memory, 3 the environment "
        "failed\n",
        run_compare, compare_options},
    Command{"check", "check the `expect` lines of scenarios, for CI",
            "reckon check FILE|DIRECTORY... [options]",
            "Examples:\n"
            "  reckon check scenarios/\n"
            "  reckon check spot.yaml tpu.yaml --junit results.xml --annotations github\n"
            "  reckon check scenarios/ --lock  (then without it: what changed, and why)\n"
            "\n"
            "Exit codes: 0 all hold, 1 an expectation failed, 2 a scenario is wrong, 3 the "
            "environment failed;\n"
            "of several files the highest\n",
            run_check, check_options},
    Command{"accuracy", "score predictions against published measurements",
            "reckon accuracy FILE.csv [FILE.csv ...] [options]",
            "Examples:\n"
            "  reckon accuracy measurements.csv\n"
            "  reckon accuracy measurements.csv --trust A,B --worst 20 --plot accuracy.svg\n"
            "\n"
            "Exit codes: 0 scored, 2 the file cannot be read as measurements or none of its rows "
            "can be scored,\n"
            "3 the environment failed\n",
            run_accuracy, accuracy_options},
    Command{"self-check", "score predictions against the built-in measurements",
            "reckon self-check [options]",
            "Examples:\n"
            "  reckon self-check\n"
            "  reckon self-check --worst 5 --format json\n"
            "\n"
            "Exit codes: 0 scored, 2 a catalog is wrong, 3 the environment failed\n",
            run_self_check, self_check_options, false},
};

}  // namespace

std::span<const Command> commands_that_forecast() { return kForecastsCommands; }

}  // namespace reckon::cli
