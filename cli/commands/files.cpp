#include <array>

#include "cli/commands/groups.h"

namespace reckon::cli {
namespace {

constexpr std::array kFilesCommands{
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
};

}  // namespace

std::span<const Command> commands_of_files() { return kFilesCommands; }

}  // namespace reckon::cli
