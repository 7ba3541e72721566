#include "cli/worker/export.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "cli/exit_code.h"
#include "cli/load/load.h"
#include "cli/options/usage_error.h"
#include "cli/options/values.h"
#include "cli/output.h"
#include "cli/worker/help.h"
#include "executor/serve/served_model.h"
#include "executor/train/checkpoint/durable_file.h"
#include "executor/train/records/run_directory.h"
#include "sim/scenario/resolve/one_job.h"
#include "sim/scenario/training_text.h"
#include "sim/scenario/yaml/document.h"

namespace reckon::cli {
namespace {

namespace fs = std::filesystem;

struct ModelExportOptions : Files, ScenarioChanges, CatalogChoice {
  std::string plan;

  std::vector<Option> declared() {
    return {
        {{"plan", "FILE", "what was trained, where no `reckon run` kept it in RUN"}, text(plan)},
        {{"set", "PATH=VALUE", "changed in it then; may be repeated"}, texts(overrides), true},
        {{"layer", "FILE", "layer over that scenario (repeatable)"}, paths(layers), true},
        {{"catalog", "DIR", "overlay of the catalogs (repeatable)"}, paths(catalogs), true}};
  }
};

std::string export_help() {
  ModelExportOptions options;
  return "Makes what a run has trained the next version of a model directory.\n\n"
         "Usage: reckon-worker export RUN MODEL [options]\n\n" +
         described(options.declared());
}

/// What was trained: its network, and the scenario that goes with the weights.
struct Trained {
  ModelGraph network;
  std::string text, file;  // where it stood
};

Expected<std::string> training_alone(const ScenarioText& of, const ScenarioChanges& changes) {
  constexpr std::array<std::string_view, 2> kLeftOut{"planned", "expect"};
  return training_text(of.text, of.file, changes.overrides, changes.layers, kLeftOut);
}

ModelGraph network_of(const Plan& plan, const Places& places) {
  if (auto several = why_not_one_job(plan, places, "an exported model"))
    throw WrongInput({std::move(*several)});
  return plan.only_job().model;
}

/// As the run's artifact has it: no catalog is read.
Trained trained_in(const ReadArtifact& run, const std::string& name) {
  ScenarioText of = checked(scenario_text(name));
  of.file = fs::absolute(of.file).string();
  return {.network = network_of(run.artifact.plan, {}),
          .text = checked(training_alone(of, {})),
          .file = of.file};
}

/// As the command line says.
Trained trained_by(const ModelExportOptions& options) {
  const LoadedCatalog catalog = checked(load_catalogs(options));
  ScenarioText of = checked(scenario_text(options.plan));
  of.file = fs::absolute(of.file).string();
  ScenarioChanges changes{.overrides = options.overrides, .layers = {}};
  for (const fs::path& layer : options.layers) changes.layers.push_back(fs::absolute(layer));
  const std::string text = checked(training_alone(of, changes));
  const auto scenario = checked(load_scenario_text(text, of.file, {}));
  return {.network = network_of(checked(make_plan(scenario, catalog)), scenario.places),
          .text = text,
          .file = of.file};
}

Trained trained(const ModelExportOptions& options, const RunDirectory& run) {
  if (!options.plan.empty()) return trained_by(options);
  const auto artifact = load_artifact(run.plan().string());
  if (!artifact)
    throw ModelVersionError(
        fmt::format("{} does not say what was trained, as `reckon run` does: give the plan with "
                    "--plan FILE",
                    run.root.string()));
  return trained_in(checked(*artifact), run.plan().string());
}

YamlNode* entry_of(YamlNode* map, std::string_view key) {
  if (map == nullptr) return nullptr;
  for (YamlNode::Entry& entry : map->entries)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

struct VersionText {
  std::string plan;
  std::vector<VersionFile> beside;
};

/// A version goes to other machines: a config that the plan names, by a path from `directory`, goes
/// with it.
VersionText to_go(const std::string& plan, const fs::path& directory) {
  YamlNode root = checked(parse_yaml(plan, "plan.yaml"));
  YamlNode* config = entry_of(entry_of(entry_of(&root, "workload"), "model"), "huggingface");
  if (config == nullptr) return {plan, {}};
  fs::path file = directory / config->text;
  if (fs::is_directory(file)) file /= "config.json";
  config->text = "config.json";
  return {write_yaml(root), {{config->text, read_file_text(file)}}};
}

}  // namespace

int run_model_export(std::span<const std::string> words) {
  ModelExportOptions options;
  if (!read_words(options.declared(), options.files, words)) {
    print(export_help());
    return kDone;
  }
  if (options.plan.empty() &&
      !(options.overrides.empty() && options.layers.empty() && options.catalogs.empty()))
    throw UsageError("--set, --layer and --catalog go with --plan: the plan of a run is complete");
  if (options.files.size() != 2)
    throw UsageError(
        "export takes a run's directory and a model's: reckon-worker export RUN MODEL");
  const fs::path run = options.files[0], model = options.files[1];
  const Trained of = trained(options, RunDirectory{run});
  if (const auto reason = why_not_served(of.network)) throw ModelVersionError(*reason);
  const VersionText going = to_go(of.text, fs::path(of.file).parent_path());
  const ExportedVersion version = export_version(run, of.network, going.plan, model, going.beside);
  for (const std::string& why : version.refused)
    print_error(fmt::format("reckon-worker: warning: {}\n", why));
  if (!version.refused.empty())
    print_error(fmt::format("reckon-worker: exported in its place: {}\n", version.source));
  print(fmt::format("{} is version {} of {}\n", version.directory.string(), version.number,
                    of.network.name()));
  return kDone;
}

}  // namespace reckon::cli
