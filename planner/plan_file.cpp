#include "planner/plan_file.h"

#include <fmt/format.h>

#include <array>

#include "sim/base/text/printable.h"
#include "sim/scenario/yaml/scenario_yaml.h"
#include "sim/scenario/yaml/yaml_word.h"

namespace reckon::planner {
namespace {

/// Files that the scenario names, relative to where the plan will stand.
void add_paths(const ScenarioFile& file, const std::filesystem::path& directory,
               std::vector<std::string>& overrides) {
  const auto add = [&](const std::string& path, const std::string& value) {
    if (value.empty() || std::filesystem::path(value).is_absolute()) return;
    const auto from = directory_of(file, path) / value;
    const auto there = std::filesystem::relative(from, directory.empty() ? "." : directory);
    overrides.push_back(fmt::format("{}={}", path, yaml_word(there.string())));
  };
  const Scenario& s = file.scenario;
  if (s.workload && s.workload->model)
    if (const auto* config = std::get_if<ModelFromHuggingFace>(&*s.workload->model))
      add("workload.model.huggingface", config->config);
  if (s.workload && s.workload->model)
    if (const auto* graph = std::get_if<ModelFromGraphFile>(&*s.workload->model))
      add(graph->format == ModelFromGraphFile::Format::onnx ? "workload.model.onnx"
                                                            : "workload.model.fx",
          graph->file);
  if (s.workload && s.workload->data && !is_store_location(s.workload->data->path)) {
    add("workload.data.path", s.workload->data->path);
    add("workload.data.validation", s.workload->data->validation);
  }
  if (s.disruptions.preemption)
    if (const auto* trace = std::get_if<TraceReclaim>(&*s.disruptions.preemption))
      add("disruptions.preemption.file", trace->file);
}

std::string planned_block(const Forecast& f, std::string_view version) {
  std::string out = fmt::format(
      "planned:\n"
      "  schema_version: 1\n"
      "  reckon_version: \"{}\"\n"
      "  catalog_digest: \"{}\"\n",
      version, f.catalog_digest);
  if (!f.prices_as_of.empty()) out += fmt::format("  prices_as_of: {}\n", f.prices_as_of);
  out += "  calibrations: [";
  for (std::size_t k = 0; k < f.calibrations.size(); ++k)
    out += (k == 0 ? "" : ", ") + yaml_word(f.calibrations[k]);
  out += fmt::format("]\n  seed: {}\n  forecast:\n", f.seed);
  const auto line = [&](const char* name, const Quantiles& q) {
    out += fmt::format("    {}: {{mean: {}, p5: {}, p50: {}, p95: {}}}\n", name, q.mean, q.p5,
                       q.p50, q.p95);
  };
  line("time_seconds", f.time_seconds);
  if (f.cost_usd) line("cost_usd", *f.cost_usd);
  line("goodput", f.goodput);
  out += fmt::format("    step_seconds: {}\n", f.step.step.count());
  return out;
}

/// One comment a pool.
std::string price_lines(const Plan& plan) {
  std::string out = "#\n";  // a paragraph of its own
  for (const PlannedPool& pool : plan.pools) {
    const double usd = 1e-9 * double(pool.price.machine.nano_usd_per_hour +
                                     pool.price.accelerators.nano_usd_per_hour);
    out += pool.price.known
               ? fmt::format("# Price of a node of {}: {:g} USD/h ({}, {}{}).\n", pool.name, usd,
                             to_text(pool.pricing), pool.price.source,
                             pool.price.as_of.empty() ? "" : " as of " + pool.price.as_of)
               : fmt::format("# Price of a node of {}: unknown.\n", pool.name);
  }
  return out;
}

}  // namespace

Expected<std::string> plan_file(const Question& question, const RankedPlan& plan,
                                const Plan& resolved, std::string_view reckon_version,
                                const std::filesystem::path& directory) {
  const Base& base = question.base;
  std::vector<std::string> overrides = base.overrides;
  const auto own = texts(plan.result.changes);
  overrides.insert(overrides.end(), own.begin(), own.end());
  const Forecast& f = plan.result.forecast;
  overrides.push_back("name=" + yaml_word(question.file.scenario.name));
  overrides.push_back(
      fmt::format("forecast={{replications: {}, seed: {}}}", f.replications, f.seed));
  const auto raw = parse_scenario(base.text, base.name, overrides, base.layers);
  if (!raw) return tl::unexpected(raw.error());
  add_paths(*raw, directory, overrides);
  constexpr std::array<std::string_view, 3> kLeftOut{"plan", "planned", "extends"};
  auto text = flat_scenario(base.text, base.name, overrides, base.layers, kLeftOut);
  if (!text) return text;
  return fmt::format(
             "# Plan made by `reckon plan` from {}: {} in {}, {}, {}.\n"
             "# `reckon simulate` on this file gives the forecast below; `reckon compare` and "
             "`reckon "
             "run` take it too.\n",
             printable(base.name), hardware_text(plan.hardware, plan.split.nodes),
             plan.offer.zone.empty() ? plan.offer.region : plan.offer.zone,
             bought_text(plan.offer, plan.split.nodes), strategy_text(plan.split)) +
         price_lines(resolved) + *text + planned_block(f, reckon_version);
}

}  // namespace reckon::planner
