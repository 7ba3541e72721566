#include "cli/options/shared.h"

#include <fmt/format.h>

#include <map>

#include "cli/options/usage_error.h"
#include "cli/options/values.h"

namespace reckon::cli {

Option AnswerFormat::format_option() {
  return {{"format", words<OutputFormat>(), "what to print (table)"}, word(format)};
}

Option ScenarioChanges::set_option() {
  return {{"set", "PATH=VALUE",
           "change a value of the scenario, such as cluster.pools.p100.nodes.max=8; may be "
           "given again"},
          texts(overrides),
          true};
}

Option ScenarioChanges::layer_option() {
  return {{"layer", "FILE", "a file whose keys are read over the scenario's; may be given again"},
          paths(layers),
          true};
}

Option CatalogChoice::catalog_option() {
  return {{"catalog", "DIR",
           "a catalog of your own over the one that comes with reckon; may be given again"},
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
           "published or own runs that forecasts take for evidence besides those of the catalog; "
           "may be given again"},
          texts(evidence),
          true};
}

Option CatalogChoice::without_evidence_option() {
  return {{"without-evidence", "ID|SOURCE",
           "run or source that is no evidence; 'all': the step model alone; may be given again"},
          texts(without_evidence),
          true};
}

Option Sampling::seed_option() {
  return {{"seed", "N", "root of all randomness (the scenario's forecast.seed)"}, whole(seed, 0)};
}

Option Sampling::replications_option() {
  return {{"replications", "N",
           "how many times the run is simulated (the scenario's forecast.replications)"},
          whole(replications, 1, 1'000'000)};
}

Option Sampling::threads_option() {
  return {{"threads", "N", "threads to use; changes no digit of a forecast (one a core)"},
          whole(threads, 1, 1024)};
}

Option NetworkChoice::engine_option() {
  return {{"engine", "ENGINE",
           "who answers for the network: fluid, closed-forms, or simgrid, a second opinion, slow "
           "(fluid, and closed-forms for a model that is cut)"},
          word(engine)};
}

Option Sweeps::sweep_option() {
  return {{"sweep", "PATH=VALUES",
           "forecast every value: 8..64 doubles, 8..64..8 steps, 8,16,32 lists; given again: all "
           "combinations"},
          texts(sweeps),
          true};
}

Option OutPath::out_option() {
  return {{"out", "PATH",
           "where to write: a file (- is standard output), or of run the directory (runs/NAME)"},
          text(out)};
}

Option KubectlChoice::context_option() {
  return {{"context", "NAME", "of the kubeconfig, on Kubernetes (kubectl's current one)"},
          text(context)};
}

Option KubectlChoice::namespace_option() {
  return {{"namespace", "NAME", "where the job runs; made by the manifests (the plan's name)"},
          text(name_space)};
}

OptionText model_text() {
  return {"model", "NAME",
          "a model of the zoo such as resnet50 or gpt2_small: what to train (init), whose layers "
          "to measure (probe)"};
}

OptionText tokens_text() {
  return {"tokens", "N", "how long, for models of sequences: tokens such as 10B"};
}

OptionText epochs_text() {
  return {"epochs", "N", "how long, for other models: passes over the dataset (90)"};
}

OptionText dataset_text() {
  return {"dataset", "NAME", "what a model that is no sequence model sees (imagenet)"};
}

OptionText accelerator_text() {
  return {"accelerator", "NAME",
          "on what: a GPU of the catalog such as H100-SXM5-80; plan: several, h100 is the family"};
}

OptionText machine_text() {
  return {"machine", "NAME", "the machine of the workers, where the file does not say it"};
}

OptionText count_text() { return {"count", "N", "on how many accelerators (1)"}; }

OptionText provider_text() {
  return {"provider", "NAME",
          "whose machines; the first that offers it at a known price (plan: gcp,aws,azure)"};
}

OptionText region_text() {
  return {"region", "NAME", "where; the first that offers it at a known price (plan: everywhere)"};
}

OptionText pricing_text() {
  return {"pricing", "on_demand|spot", "what is paid (on_demand; plan: both)"};
}

OptionText precision_text() {
  return {"precision", "NAME",
          "fp32, tf32, fp16, bf16, fp8, mxfp8 or nvfp4 (bf16, or what the accelerator has)"};
}

OptionText batch_text() {
  return {"batch", "N", "samples of one step on one accelerator (1, or the scenario's)"};
}

OptionText sequence_length_text() {
  return {"sequence-length", "N", "tokens of a sequence (the model's own)"};
}

OptionText steps_text() {
  return {"steps", "N", "steps of the sample (50), or in a trace that does not mark them"};
}

OptionText deadline_text() {
  return {"deadline", "DURATION",
          "when the job has to be done, after its first start (run: the scenario's expect on "
          "time; plan: 72h@95% is with that probability)"};
}

Option worst_option(int& rows) {
  return {{"worst", "N", "list the N runs with the largest errors"}, whole(rows, 1, 1'000'000)};
}

Option plot_option(std::string& file) {
  return {{"plot", "FILE.svg", "draw what was measured against what is predicted"},
          file_name(file)};
}

Option html_option(std::string& file) {
  return {{"html", "FILE.html", "write the answer as one page with charts, for any browser"},
          file_name(file)};
}

Option memo_option(std::string& file) {
  return {{"memo", "FILE.md", "write the answer as one page for who decides"}, file_name(file)};
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
