#include <fmt/format.h>

#include <array>

#include "cli/command.h"

namespace reckon::cli {
namespace {

constexpr std::array kCommands{
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
    Command{"status", "show the progress of a run on Kubernetes, by process",
            "reckon status NAME --on kubernetes [options]",
            "Examples:\n"
            "  reckon status mlp --on kubernetes\n"
            "  reckon status mlp --on kubernetes --context prod --namespace team\n"
            "\n"
            "Exit codes: 0 done, 2 there is no such run, 3 the environment failed\n",
            run_status_command, cluster_run_options, false},
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
    Command{
        "export", "export a plan: Kubernetes manifests, Terraform, launcher configurations",
        "reckon export TARGET FILE [options]",
        "kubernetes   everything that `kubectl apply` needs to run the plan's job\n"
        "gcloud       the commands that make the plan's cluster on GKE\n"
        "terraform    node pools of GKE, EKS or AKS in Terraform's JSON (main.tf.json)\n"
        "eksctl, karpenter, aks\n"
        "             the same for eksctl, for Karpenter on EKS, as commands of az for AKS\n"
        "ai-platform  the config.yaml of an AI Platform job, with what `reckon import` kept of it\n"
        "torchtitan, megatron, deepspeed, accelerate, maxtext\n"
        "             the layout as the configuration of that framework; what it has no "
        "counterpart for\n"
        "             is refused by name\n"
        "\n"
        "Examples:\n"
        "  reckon export gcloud scenarios/gke-p100-autoscaling.yaml\n"
        "  reckon export kubernetes spot.yaml --image gcr.io/us/train:7 --bucket my-checkpoints\n"
        "  reckon export kubernetes spot.yaml --as jobset | kubectl apply -f -\n"
        "  reckon export torchtitan scenarios/llama3-8b-zero3.yaml --out llama3.toml\n"
        "  reckon export megatron best.yaml --as slurm | sbatch\n"
        "\n"
        "Exit codes: 0 done, 2 the scenario is wrong or cannot be written so, 3 the environment "
        "failed\n",
        run_export, export_options},
    Command{
        "import", "make a scenario from existing files; compare a forecast with its bill",
        "reckon import ai-platform|gke|terraform|kubernetes|tf-config|cluster|bill [FILE] "
        "[options]",
        "ai-platform  config.yaml and gcloud's flags; what a forecast has no use for is kept for "
        "export\n"
        "gke          gcloud container node-pools list --format=json\n"
        "terraform    terraform show -json of a plan or a state: node pools of GKE, EKS and AKS\n"
        "kubernetes   manifests with a Job, JobSet, TFJob, PyTorchJob or Pod; those of reckon "
        "export\n"
        "             give the scenario back that they were made from\n"
        "tf-config    TensorFlow's TF_CONFIG, of a file or of this environment\n"
        "cluster      the nodes, quotas and pods of the cluster that kubectl talks to, as it is "
        "now\n"
        "Such files do not say what is trained: --model, --epochs or --tokens, --batch do.\n"
        "\n"
        "bill         what AWS (CUR), Google (BigQuery export), Azure (cost export), FOCUS or "
        "OpenCost\n"
        "             billed, beside the forecast of --scenario; --out DIR: a catalog of its "
        "prices\n"
        "\n"
        "Examples:\n"
        "  reckon import ai-platform config.yaml --model resnet50 --epochs 90 --out job.yaml\n"
        "  reckon import ai-platform gcloud ai-platform jobs submit training my_job \\\n"
        "      --scale-tier custom --master-machine-type n1-highcpu-16 \\\n"
        "      --master-accelerator count=4,type=nvidia-tesla-t4 -- --learning-rate 0.1\n"
        "  reckon import gke pools.json --model bert_large --servers ps-pool\n"
        "  reckon import kubernetes job.yaml --accelerator A100-SXM4-80\n"
        "  reckon import cluster --model bert_large --out now.yaml\n"
        "  reckon import bill november.csv.gz --scenario job.yaml --tag job=resnet --out billed\n"
        "\n"
        "Exit codes: 0 done, 2 the file is wrong, 3 the environment failed\n",
        run_import, import_options, false},
    Command{
        "init", "write a commented scenario from five answers", "reckon init [options]",
        "Examples:\n"
        "  reckon init\n"
        "  reckon init --model gpt2_small --tokens 10B --accelerator H100-SXM5-80 --count 16 --out "
        "gpt2.yaml\n"
        "\n"
        "Exit codes: 0 written, 2 an answer is wrong, missing without a terminal, or does not "
        "fit in memory,\n"
        "3 the environment failed\n",
        run_init, init_options, false},
    Command{"schema", "print the JSON Schema of scenario files, for editors",
            "reckon schema [options]",
            "Examples:\n"
            "  reckon schema > scenario.schema.json\n"
            "  (first line of a scenario, for the YAML language server:)\n"
            "  # yaml-language-server: $schema=scenario.schema.json\n"
            "\n"
            "Exit codes: 0 done, 3 the environment failed\n",
            run_schema, schema_options, false},
    Command{"doctor", "check this installation; check and repair a run",
            "reckon doctor [RUN] [options]",
            "Examples:\n"
            "  reckon doctor\n"
            "  reckon doctor --format json\n"
            "  reckon doctor runs/mlp --check\n"
            "  reckon doctor runs/mlp\n"
            "\n"
            "Exit codes: 0 without RUN always; with RUN: 0 sound or repaired, 1 something is lost, "
            "or damaged\n"
            "and not repaired (--check, a run in use), 2 the command line is wrong or RUN is no "
            "run,\n"
            "3 the environment failed\n",
            run_doctor, doctor_options, false},
    Command{"completion", "print the shell completion script", "reckon completion bash|zsh",
            "Examples:\n"
            "  source <(reckon completion bash)\n"
            "  reckon completion zsh > ~/.zfunc/_reckon\n"
            "\n"
            "Exit codes: 0 done, 2 no such shell\n",
            run_completion, completion_options, false},
    Command{
        "catalog", "list hardware, prices and rules of the catalog, with sources",
        "reckon catalog list [KIND [WORD...]] | show NAME | check [DIR...] | refresh --from FILE",
        "list    the kinds, or the entries of one kind in which every WORD occurs\n"
        "show    everything about an accelerator, machine, slice, data set, storage, link, scale "
        "tier,\n"
        "        service's names, operational number or source\n"
        "check   reads our catalogs with your directories over them and reports every mistake\n"
        "refresh what providers' own price lists change, and a catalog directory of their prices:\n"
        "        AWS's offer file of AmazonEC2, aws ec2 describe-spot-price-history, Google's "
        "SKUs,\n"
        "        Azure's retail prices (JSON), SkyPilot's vms.csv\n"
        "\n"
        "Examples:\n"
        "  reckon catalog list machines gcp n1-standard\n"
        "  reckon catalog show nvidia-tesla-p100\n"
        "  reckon catalog show custom-24-98304\n"
        "  reckon catalog check my-catalog\n"
        "  reckon catalog refresh --from us-east-1.json --from spot-history.json --out prices\n"
        "\n"
        "Exit codes: 0 done, 2 a catalog is wrong or a name unknown, 3 the environment failed\n",
        run_catalog, catalog_options, false},
    Command{
        "model", "show a model: parameters, FLOPs, activations, memory by strategy",
        "reckon model list [WORD...] | show NAME|CONFIG.json|GRAPH.onnx|GRAPH.json|SCENARIO.yaml "
        "[options]",
        "list    the networks that reckon knows by name, in which every WORD occurs\n"
        "show    one of them, a Hugging Face config.json (or its folder), a graph of ONNX or\n"
        "        PyTorch FX, or a scenario's\n"
        "\n"
        "Examples:\n"
        "  reckon model list qwen\n"
        "  reckon model show llama3_8b --accelerator H100-SXM5-80\n"
        "  reckon model show mixtral_8x7b --sequence-length 4096 --batch 2 --format json\n"
        "  reckon model show llama3_8b --finetune qlora:16 --optimizer adamw_8bit\n"
        "  reckon model show Llama-3.1-8B/config.json --sequence-length 8192\n"
        "\n"
        "Exit codes: 0 done, 2 no such model or a file that is wrong, 3 the environment "
        "failed\n",
        run_model, model_options, false},
};

}  // namespace

std::span<const Command> commands() { return kCommands; }

const Command* find_command(std::string_view name) {
  for (const Command& c : kCommands)
    if (c.name == name) return &c;
  return nullptr;
}

std::string help_text() {
  std::string out =
      "reckon: time, cost and cluster of machine-learning training runs\n"
      "\n"
      "Usage: reckon COMMAND [arguments]\n"
      "\n"
      "Commands:\n";
  for (const Command& c : kCommands) out += fmt::format("  {:<10} {}\n", c.name, c.summary);
  out += fmt::format("  {:<10} {}\n", "help", "show the help of a command: reckon help simulate");
  out +=
      "\n"
      "Options:\n"
      "  --help     show this help\n"
      "  --version  show the version, its commit and the catalog's date\n"
      "  --errors   error format on standard error: text|json, one object per line "
      "(text)\n"
      "\n"
      "Example:\n"
      "  reckon simulate scenarios/gke-p100-autoscaling.yaml\n";
  return out;
}

std::string questions_text() {
  return "reckon answers four questions about a training run before anyone pays for it.\n"
         "\n"
         "What to run, for a deadline and a budget?\n"
         "  reckon plan --model llama3_8b --finetune lora:16 --tokens 200M --deadline 72h@95% "
         "--budget 500USD\n"
         "How long will it take, what will it cost, and how sure is that?\n"
         "  reckon init --model resnet50 --epochs 90 --accelerator T4 --out job.yaml\n"
         "  reckon simulate job.yaml\n"
         "Where does the time go, and what would help?\n"
         "  reckon explain job.yaml\n"
         "Was the forecast right, and how is the next one better?\n"
         "  reckon run job.yaml --out runs/first\n"
         "  reckon diff runs/first/forecast.json runs/first\n"
         "  reckon calibrate runs/first --out mine.yaml\n"
         "\n"
         "All commands: reckon --help. Their options: reckon help plan.\n";
}

std::string help_text(const Command& command) {
  constexpr int kWidth = 24;
  return fmt::format("Usage: {}\n\n{}\n\nOptions:\n{}\n{}", command.usage, command.summary,
                     describe(command.options(), kWidth), command.details);
}

}  // namespace reckon::cli
