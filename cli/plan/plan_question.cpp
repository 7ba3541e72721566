#include "cli/plan/plan_question.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "cli/init/init_scenario.h"
#include "cli/options/usage_error.h"
#include "cli/output.h"
#include "cli/plan/placeholders.h"
#include "exchange/model_files.h"
#include "sim/base/text/shell_word.h"
#include "sim/base/text/yaml_writer.h"
#include "sim/model/finetune.h"
#include "sim/model/zoo/zoo.h"

namespace reckon::cli {
namespace {

/// "1..8192": free, up to so many; else the number that is kept.
bool is_range(const std::string& batch) { return batch.find("..") != std::string::npos; }

std::vector<std::string> overrides_of(const PlanOptions& options) {
  std::vector<std::string> out = options.overrides;
  out.insert(out.end(), options.plan_block.begin(), options.plan_block.end());
  if (options.layouts) out.emplace_back("plan.vary.layout=any");
  if (const std::string& batch = options.global_batch; is_range(batch))
    out.push_back("plan.vary.global_batch=" + batch);
  else if (!batch.empty() && !options.files.empty())
    out.push_back("workload.global_batch=" + batch);
  if (!options.quota.empty()) out.push_back(options.quota);
  if (options.precision == "any")
    out.emplace_back("plan.vary.precision=any");
  else if (!options.precision.empty())
    out.push_back("workload.precision=" + options.precision);
  return out;
}

planner::CommandWords words_of_answer(const PlanOptions& options,
                                      const std::vector<std::string>& overrides) {
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
  out.plan_file = options.out;
  return out;
}

/// What is trained, by the options that say so.
std::array<std::pair<std::string_view, std::string>, 6> of_workload(const PlanOptions& options) {
  return {{{"model", options.model},
           {"dataset", options.dataset},
           {"tokens", options.tokens},
           {"epochs", options.epochs},
           {"finetune", options.finetune},
           {"sequence", options.sequence}}};
}

using Style = YamlWriter::Style;

/// "lora:16" as the block that it stands for; "": the whole model is trained.
void write_finetune(YamlWriter& out, const std::string& written) {
  if (written.empty()) return;
  const std::size_t colon = written.find(':');
  const std::string method = written.substr(0, colon);
  const auto number = colon == std::string::npos ? Parsed<std::int64_t>(0)
                                                 : parse_integer(written.substr(colon + 1));
  const bool last = method == "last_layers";
  if ((!last && !from_text<AdapterKind>(method)) || !number || *number < 1)
    throw UsageErrorWithHint(
        fmt::format("--finetune takes METHOD:N, not '{}'", written),
        fmt::format("METHOD is {} or last_layers: lora:16 trains adapters of rank 16",
                    fmt::join(texts_of<AdapterKind>(), ", ")));
  out.key("finetune");
  out.begin_map(Style::flow);
  out.key("method");
  out.text(method);
  out.key(last ? "layers" : "rank");
  out.word(std::to_string(*number));
  out.end_map();
}

void write_sequence(YamlWriter& out, const PlanOptions& options) {
  if (options.sequence.empty()) return;
  const auto length = parse_integer(options.sequence);
  if (!length || *length < 1)
    throw UsageError(
        fmt::format("--sequence takes a whole number of tokens, not '{}'", options.sequence));
  if (!zoo_takes_sequence_length(options.model))
    throw UsageError(
        fmt::format("--sequence is for models that read tokens, not {}", options.model));
  out.key("sequence_length");
  out.word(std::to_string(*length));
}

/// Providers that rent machines on demand and on spot, which is what is asked for.
std::vector<std::string> providers_asked(const Catalog& catalog) {
  std::vector<std::string> names;
  for (const ProviderRules& provider : catalog.providers)
    if (!provider.owned && provider.sells_spot) names.push_back(provider.id.name);
  if (names.empty())
    throw UsageError("no provider of the catalog rents machines on demand and on spot");
  return names;
}

void write_list(YamlWriter& out, std::string_view key, const std::vector<std::string>& words) {
  out.key(key);
  out.begin_list(Style::flow);
  for (const std::string& word : words) out.text(word);
  out.end_list();
}

using Line = std::pair<std::string_view, std::string>;

void write_lines(YamlWriter& out, const std::vector<Line>& lines) {
  for (const auto& [key, value] : lines) {
    out.key(key);
    out.text(value);
  }
}

/// `length`: "tokens" or "epochs", and how many.
void write_workload(YamlWriter& out, const PlanOptions& options, const std::string& dataset,
                    const Line& length) {
  // Without a batch it is free up to what `reckon init` takes as the largest.
  const bool free_batch = options.global_batch.empty() || is_range(options.global_batch);
  out.key("workload");
  out.begin_map();
  write_lines(out, {{"model", options.model}});
  write_finetune(out, options.finetune);
  write_sequence(out, options);
  write_lines(out, {{"dataset", dataset}});
  out.key("train");
  out.begin_map(Style::flow);
  write_lines(out, {length});
  out.end_map();
  write_lines(out, {free_batch ? Line{"batch_per_accelerator", "1"}
                               : Line{"global_batch", options.global_batch}});
  out.key("strategy");
  out.begin_map(Style::flow);
  write_lines(out, {{"kind", "single"}});
  out.end_map();
  out.end_map();
}

/// What varies takes its place.
void write_cluster(YamlWriter& out, const std::string& provider) {
  out.key("cluster");
  out.begin_map();
  write_lines(out, {{"provider", provider}, {"region", "any"}});
  out.key("pools");
  out.begin_list();
  out.begin_map(Style::flow);
  write_lines(out, {{"name", "workers"}, {"machine", "any"}, {"nodes", "1"}});
  out.end_map();
  out.end_list();
  out.end_map();
}

Expected<std::string> text_of_flags(const PlanOptions& options, const Catalog& catalog) {
  const std::string& model = options.model;
  Diagnostics problems;
  for (const auto& [option, value] : of_workload(options))
    if (!value.empty())
      if (auto problem = judge_answer(option, value, catalog)) problems.push_back(*problem);
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  const bool tokens = zoo_takes_sequence_length(model);
  const std::string& amount = tokens ? options.tokens : options.epochs;
  if (amount.empty())
    throw UsageError(fmt::format("how long is {} trained? give --{}", model,
                                 tokens ? "tokens, such as 10B" : "epochs, such as 90"));
  std::string dataset = options.dataset;
  if (dataset.empty()) dataset = default_dataset(model, catalog);
  if (dataset.empty())
    throw UsageError(fmt::format("no dataset of the catalog is read by {}: give --dataset", model));
  const std::vector<std::string> providers = providers_asked(catalog);

  YamlWriter out(YamlQuotes::for_us);
  out.begin_map();
  write_lines(out, {{"name", model + "-plan"}});
  write_workload(out, options, dataset, {tokens ? "tokens" : "epochs", amount});
  write_cluster(out, providers.front());
  out.key("plan");
  out.begin_map();
  out.key("vary");
  out.begin_map();
  write_list(out, "provider", providers);
  write_lines(out, {{"nodes", "1..64"}});
  write_list(out, "pricing", {"on_demand", "spot"});
  write_lines(out, {{"strategy", "any"}, {"precision", "any"}});
  if (options.global_batch.empty() || is_range(options.global_batch))
    write_lines(out, {{"global_batch", "1..1024"}});
  out.end_map();
  out.end_map();
  out.end_map();
  return out.done();
}

}  // namespace

Diagnostics told_by_option(Diagnostics problems, const PlanOptions& options) {
  constexpr std::string_view kSet = "--set ", kPlan = "plan.", kVary = "vary.";
  for (Diagnostic& d : problems) {
    std::string_view said = d.at.file;
    if (!said.starts_with(kSet)) continue;
    said.remove_prefix(kSet.size());
    if (std::ranges::find(options.plan_block, said) == options.plan_block.end()) continue;
    said.remove_prefix(kPlan.size());
    if (said.starts_with(kVary)) said.remove_prefix(kVary.size());
    const std::size_t equals = said.find('=');
    std::string name(said.substr(0, equals));
    std::ranges::replace(name, '_', '-');
    std::string_view value = said.substr(equals + 1);
    if (value.starts_with('[')) value = value.substr(1, value.size() - 2);  // a list
    d.at.file = fmt::format("--{} {}", name, value);
  }
  return problems;
}

Expected<void> read_regions(const PlanOptions& options, planner::Base& base) {
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

Expected<std::unique_ptr<const Evidence>> profile_of(const planner::Base& base,
                                                     const LoadedCatalog& catalog) {
  planner::Base written = base;
  written.overrides.clear();
  const auto file = planner::read(written);
  if (!file) return nullptr;  // told when the question is made
  return evidence_of_profile(*file, catalog);
}

Expected<planner::Base> plan_base(const PlanOptions& options, const Catalog& catalog) {
  planner::Base base;
  base.overrides = overrides_of(options);
  base.layers = options.layers;
  base.words = words_of_answer(options, base.overrides);
  base.complete = [](ScenarioFile& file) {
    print_in_its_currency(file);
    return resolve_model_files(file);
  };
  if (!options.files.empty()) {
    for (const auto& [option, value] : of_workload(options)) {
      const bool of_train = option == "tokens" || option == "epochs";
      if (!value.empty())
        throw UsageError(fmt::format(
            "the scenario file says --{}; change it with --set workload.{}{}=...", option,
            of_train ? "train." : "", option == "sequence" ? "sequence_length" : option));
    }
    base.name = options.files.front();
    base.text = read_text(base.name);
    const auto words = placeholders_for(base, catalog);
    base.overrides.insert(base.overrides.begin(), words.begin(), words.end());
  } else {
    if (options.model.empty()) throw UsageError("plan needs a scenario file, or --model");
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
