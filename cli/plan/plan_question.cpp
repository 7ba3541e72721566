#include "cli/plan/plan_question.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "cli/init/init_scenario.h"
#include "cli/output.h"
#include "exchange/model_files.h"
#include "sim/base/shell_word.h"
#include "sim/model/zoo/zoo.h"

namespace reckon::cli {
namespace {

struct OptionOfPlan {
  const char* option;
  const char* path;
  bool list;
};
/// Options that stand for keys of the `plan:` block.
constexpr std::array kOfPlan{
    OptionOfPlan{"accelerator", "plan.vary.accelerator", true},
    OptionOfPlan{"machine", "plan.vary.machine", true},
    OptionOfPlan{"provider", "plan.vary.provider", true},
    OptionOfPlan{"region", "plan.vary.region", true},
    OptionOfPlan{"zone", "plan.vary.zone", true},
    OptionOfPlan{"nodes", "plan.vary.nodes", true},
    OptionOfPlan{"autoscaling", "plan.vary.autoscaling", true},
    OptionOfPlan{"pricing", "plan.vary.pricing", true},
    OptionOfPlan{"base", "plan.vary.base", true},
    OptionOfPlan{"fallback", "plan.vary.fallback", true},
    OptionOfPlan{"strategy", "plan.vary.strategy", true},
    OptionOfPlan{"parameter-servers", "plan.vary.parameter_servers", true},
    OptionOfPlan{"parameter-server-machine", "plan.vary.parameter_server_machine", true},
    OptionOfPlan{"recompute", "plan.vary.recompute", true},
    OptionOfPlan{"checkpoint-interval", "plan.vary.checkpoint_interval", true},
    OptionOfPlan{"checkpoint-storage", "plan.vary.checkpoint_storage", true},
    OptionOfPlan{"deadline", "plan.deadline", false},
    OptionOfPlan{"budget", "plan.budget", false},
    OptionOfPlan{"memory", "plan.memory", false},
    OptionOfPlan{"max-nodes", "plan.max_nodes", false},
    OptionOfPlan{"residency", "plan.residency", true},
    OptionOfPlan{"carbon-free", "plan.carbon_free", false},
    OptionOfPlan{"objective", "plan.objective", false}};

/// "gcp/us-central1/T4=8,aws/us-east-1/V100-SXM2-16=16" as the block that it stands for.
std::string quota_block(const std::string& text) {
  std::string block;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string one = text.substr(begin, end - begin);
    const std::size_t equal = one.find('=');
    if (equal == std::string::npos || equal == 0 || equal + 1 == one.size())
      throw UsageError(fmt::format(
          "--quota takes places with numbers such as gcp/us-central1/T4=8, not '{}'", one));
    block += fmt::format("{}{}: {}", block.empty() ? "" : ", ", one.substr(0, equal),
                         one.substr(equal + 1));
    begin = end + 1;
  }
  return fmt::format("plan.quota={{{}}}", block);
}

/// "1..8192": free, up to so many; else the number that is kept.
bool is_range(const std::string& batch) { return batch.find("..") != std::string::npos; }

std::vector<std::string> overrides_of(const Options& options) {
  std::vector<std::string> out = options.overrides;
  for (const OptionOfPlan& o : kOfPlan)
    if (const std::string value = options.answer(o.option); !value.empty())
      out.push_back(o.list ? fmt::format("{}=[{}]", o.path, value)
                           : fmt::format("{}={}", o.path, value));
  if (!options.answer("layouts").empty()) out.emplace_back("plan.vary.layout=any");
  if (const std::string batch = options.answer("global-batch"); is_range(batch))
    out.push_back("plan.vary.global_batch=" + batch);
  else if (!batch.empty() && !options.files.empty())
    out.push_back("workload.global_batch=" + batch);
  if (const std::string quota = options.answer("quota"); !quota.empty())
    out.push_back(quota_block(quota));
  if (const std::string precision = options.answer("precision"); precision == "any")
    out.emplace_back("plan.vary.precision=any");
  else if (!precision.empty())
    out.push_back("workload.precision=" + precision);
  return out;
}

planner::CommandWords words_of(const Options& options, const std::vector<std::string>& overrides) {
  planner::CommandWords out;
  for (const auto& layer : options.layers)
    out.file_options += fmt::format(" --layer {}", shell_file(layer.string()));
  for (const std::string& change : overrides)
    if (!change.starts_with("plan.") && !change.starts_with("plan="))
      out.file_options += " --set " + shell_word(change);
  for (const auto& directory : options.catalogs)
    out.catalog_options += fmt::format(" --catalog {}", shell_file(directory.string()));
  for (const auto& file : options.calibrations)
    out.catalog_options += fmt::format(" --calibration {}", shell_file(file.string()));
  out.plan_file = options.answer("out");
  return out;
}

Expected<std::string> text_of_flags(const Options& options, const Catalog& catalog) {
  const std::string model = options.answer("model");
  Diagnostics problems;
  for (const char* option : {"model", "dataset", "tokens", "epochs"})
    if (const std::string value = options.answer(option); !value.empty())
      if (auto problem = judge_answer(option, value, catalog)) problems.push_back(*problem);
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  const bool tokens = zoo_takes_sequence_length(model);
  const std::string amount = options.answer(tokens ? "tokens" : "epochs");
  if (amount.empty())
    throw UsageError(fmt::format("how long is {} trained? give --{}", model,
                                 tokens ? "tokens, such as 10B" : "epochs, such as 90"));
  std::string dataset = options.answer("dataset");
  if (dataset.empty()) dataset = default_dataset(model, catalog);
  if (dataset.empty())
    throw UsageError(fmt::format("no dataset of the catalog is read by {}: give --dataset", model));
  // Without a batch it is free up to what `reckon init` takes as the largest.
  const std::string said = options.answer("global-batch");
  const std::string given = is_range(said) ? "" : said;
  const std::string batch = given.empty() ? "batch_per_accelerator: 1" : "global_batch: " + given;
  const char* free_batch = given.empty() ? "    global_batch: 1..1024\n" : "";
  return fmt::format(
      "name: {0}-plan\n"
      "workload:\n"
      "  model: {0}\n"
      "  dataset: {1}\n"
      "  train: {{{2}: {3}}}\n"
      "  {4}\n"
      "  strategy: {{kind: single}}\n"
      "cluster:\n"
      "  provider: gcp\n"
      "  region: any\n"
      "  pools: [{{name: workers, machine: any, nodes: 1}}]\n"  // what varies takes its place
      "plan:\n"
      "  vary:\n"
      "    provider: [gcp, aws, azure]\n"
      "    nodes: 1..64\n"
      "    pricing: [on_demand, spot]\n"
      "    strategy: any\n"
      "    precision: any\n"
      "{5}",
      model, dataset, tokens ? "tokens" : "epochs", amount, batch, free_batch);
}

/// Of the catalog, where the question speaks of them; a file that does not read is told later.
Expected<void> read_regions(const Options& options, planner::Base& base) {
  const auto file = planner::read(base);
  if (!file || !file->scenario.plan) return {};
  const PlanSpec& said = *file->scenario.plan;
  if (said.residency.empty() && !said.carbon_free) return {};
  std::vector<std::filesystem::path> layers{default_catalog_directory()};
  layers.insert(layers.end(), options.catalogs.begin(), options.catalogs.end());
  auto regions = load_regions(layers);
  if (!regions) return tl::unexpected(std::move(regions.error()));
  base.regions = std::move(*regions);
  return {};
}

}  // namespace

Expected<planner::Base> plan_base(const Options& options, const Catalog& catalog) {
  if (options.files.size() > 1) throw UsageError("plan takes one scenario file");
  planner::Base base;
  base.overrides = overrides_of(options);
  base.layers = options.layers;
  base.words = words_of(options, base.overrides);
  base.complete = [](ScenarioFile& file) { return resolve_model_files(file); };
  if (!options.files.empty()) {
    for (const char* option : {"model", "dataset", "tokens", "epochs"})
      if (!options.answer(option).empty())
        throw UsageError(
            fmt::format("--{} is the file's to say; change it with --set workload.{}=...", option,
                        std::string_view(option) == "tokens" || std::string_view(option) == "epochs"
                            ? fmt::format("train.{}", option)
                            : option));
    base.name = options.files.front();
    base.text = read_text(base.name);
  } else {
    if (options.answer("model").empty()) throw UsageError("plan needs a scenario file, or --model");
    auto text = text_of_flags(options, catalog);
    if (!text) return tl::unexpected(std::move(text.error()));
    base.name = "the command line";
    base.is_file = false;
    base.text = std::move(*text);
  }
  if (auto read = read_regions(options, base); !read) return tl::unexpected(read.error());
  return base;
}

}  // namespace reckon::cli
