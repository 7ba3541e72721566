#include <array>

#include "cli/commands/groups.h"

namespace reckon::cli {
namespace {

constexpr std::array kInstallationCommands{
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

std::span<const Command> commands_of_installation() { return kInstallationCommands; }

}  // namespace reckon::cli
