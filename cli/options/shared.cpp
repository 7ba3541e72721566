#include "cli/options/shared.h"

#include <fmt/format.h>

#include <map>

#include "cli/options/usage_error.h"
#include "cli/options/values.h"

namespace reckon::cli {

Option AnswerFormat::format_option() {
  return {{"format", words<OutputFormat>(), "output format (table)"}, word(format)};
}

Option ScenarioChanges::set_option() {
  return {{"set", "PATH=VALUE",
           "scenario value to change, such as cluster.pools.p100.nodes.max=8 (repeatable)"},
          texts(overrides),
          true};
}

Option ScenarioChanges::layer_option() {
  return {{"layer", "FILE", "YAML file whose keys override the scenario's (repeatable)"},
          paths(layers),
          true};
}

Option CatalogChoice::catalog_option() {
  return {{"catalog", "DIR", "catalog directory that overrides the built-in catalog (repeatable)"},
          paths(catalogs),
          true};
}

Option CatalogChoice::calibration_option() {
  return {{"calibration", "FILE", "calibration file from 'reckon calibrate' (repeatable)"},
          paths(calibrations),
          true};
}

Option CatalogChoice::evidence_option() {
  return {{"evidence", "FILE.csv",
           "CSV of measured runs to add to the catalog's evidence (repeatable)"},
          texts(evidence),
          true};
}

Option CatalogChoice::without_evidence_option() {
  return {{"without-evidence", "ID|SOURCE",
           "run or source to exclude from the evidence; 'all' leaves the step model alone "
           "(repeatable)"},
          texts(without_evidence),
          true};
}

Option Sampling::seed_option() {
  return {{"seed", "N", "random seed (the scenario's forecast.seed)"}, whole(seed, 0)};
}

Option Sampling::replications_option() {
  return {{"replications", "N", "number of simulated runs (the scenario's forecast.replications)"},
          whole(replications, 1, 1'000'000)};
}

Option Sampling::threads_option() {
  return {{"threads", "N", "number of threads; does not change the result (one per core)"},
          whole(threads, 1, 1024)};
}

Option NetworkChoice::engine_option() {
  return {{"engine", "ENGINE",
           "network model: fluid, closed-forms or simgrid (slow; for cross-checks) (closed-forms "
           "for collectives, fluid for parameter servers)"},
          word(engine)};
}

Option Sweeps::sweep_option() {
  return {{"sweep", "PATH=VALUES",
           "values to forecast: 8..64 doubles, 8..64..8 steps, 8,16,32 lists (repeatable: all "
           "combinations)"},
          texts(sweeps),
          true};
}

Option OutPath::out_option() {
  return {{"out", "PATH", "output file (- is standard output); run: output directory (runs/NAME)"},
          text(out)};
}

Option KubectlChoice::context_option() {
  return {{"context", "NAME", "kubeconfig context (kubectl's current context)"}, text(context)};
}

Option KubectlChoice::namespace_option() {
  return {{"namespace", "NAME", "Kubernetes namespace, created if missing (the plan's name)"},
          text(name_space)};
}

OptionText model_text() {
  return {"model", "NAME",
          "model to train, or whose layers to measure (probe), such as resnet50 or gpt2_small "
          "(reckon model list)"};
}

OptionText tokens_text() {
  return {"tokens", "N", "training length of a sequence model in tokens, such as 10B"};
}

OptionText epochs_text() {
  return {"epochs", "N", "training length of other models in epochs (90)"};
}

OptionText dataset_text() {
  return {"dataset", "NAME", "dataset of a model that is not a sequence model (imagenet)"};
}

OptionText accelerator_text() {
  return {"accelerator", "NAME",
          "accelerator of the catalog such as H100-SXM5-80; plan: a list, h100 is the family"};
}

OptionText machine_text() {
  return {"machine", "NAME", "machine type of the workers, if the file does not name one"};
}

OptionText count_text() { return {"count", "N", "number of accelerators (1)"}; }

OptionText provider_text() {
  return {"provider", "NAME",
          "cloud provider (the first that sells it at a known price; plan: gcp,aws,azure)"};
}

OptionText region_text() {
  return {"region", "NAME", "region (the first that sells it at a known price; plan: all)"};
}

OptionText pricing_text() {
  return {"pricing", "on_demand|spot", "capacity type (on_demand; plan: both)"};
}

OptionText precision_text() {
  return {"precision", "NAME",
          "precision: fp32, tf32, fp16, bf16, fp8, mxfp8 or nvfp4 (bf16, or what the accelerator "
          "supports)"};
}

OptionText batch_text() {
  return {"batch", "N", "samples per accelerator and step (1, or the scenario's)"};
}

OptionText sequence_length_text() {
  return {"sequence-length", "N", "sequence length in tokens (the model's own)"};
}

OptionText steps_text() {
  return {"steps", "N",
          "number of sampled steps (50), or steps in a trace that does not mark them"};
}

OptionText deadline_text() {
  return {"deadline", "DURATION",
          "time limit from the first start; plan: 72h@95% asks for that probability (run: the "
          "scenario's expect on time)"};
}

Option worst_option(int& rows) {
  return {{"worst", "N", "number of runs with the largest errors to list"},
          whole(rows, 1, 1'000'000)};
}

Option plot_option(std::string& file) {
  return {{"plot", "FILE.svg", "plot predicted against measured"}, file_name(file)};
}

Option html_option(std::string& file) {
  return {{"html", "FILE.html", "HTML page with charts"}, file_name(file)};
}

Option memo_option(std::string& file) {
  return {{"memo", "FILE.md", "one-page Markdown summary for the decision"}, file_name(file)};
}

void refuse_same_file(std::initializer_list<std::pair<const char*, const std::string*>> files) {
  std::map<std::string, std::string> taken;
  for (const auto& [name, file] : files) {
    if (file->empty() || *file == "-") continue;
    const auto [other, fresh] = taken.emplace(*file, name);
    if (!fresh)
      throw UsageError(fmt::format("--{} and --{} both write {}", other->second, name, *file));
  }
}

}  // namespace reckon::cli
