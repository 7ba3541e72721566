#include "exchange/foreign/imported.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "sim/base/text/printable.h"
#include "sim/scenario/plan.h"
#include "sim/scenario/resolve/draft.h"
#include "sim/scenario/yaml/scenario_yaml.h"
#include "sim/scenario/yaml/yaml_word.h"
#include "sim/step/step.h"

namespace reckon {
namespace {

/// What the published runs of tf_cnn_benchmarks took a GPU; smaller powers of two where it does not
/// fit.
constexpr int kLargestBatch = 64;

/// Letters, digits, '-' and '_', of which the first is a letter or a digit ("$JOB_NAME").
std::string name_of(const Imported& imported) {
  std::string name;
  for (const char c : imported.name)
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' ? c : '-';
  name.erase(0, name.find_first_not_of("-_"));
  constexpr std::size_t kLongest = 63;
  name.resize(std::min(name.size(), kLongest));
  return name.empty() ? imported.kind : name;
}

std::string list_text(std::string_view head, const std::vector<std::string>& items) {
  if (items.empty()) return "";
  std::string out = fmt::format("# {}\n", head);
  for (const std::string& item : items) out += fmt::format("#   - {}\n", printable(item));
  return out;
}

std::string head_text(const Imported& imported, const ImportedWork& work) {
  std::string out = fmt::format(
      "# Question: what do {} of {} take and cost on the cluster of {}?\n"
      "#\n"
      "# Written by `reckon import {}`; answer it with `reckon simulate` on this file.\n",
      printable(work.length.substr(work.length.find(": ") + 2) + " " +
                work.length.substr(0, work.length.find(':'))),
      work.model, printable(imported.from), imported.kind);
  std::vector<std::string> assumed = work.assumed;
  assumed.insert(assumed.end(), imported.assumed.begin(), imported.assumed.end());
  out += list_text("Assumed, since the file does not say it:", assumed);
  out +=
      list_text(imported.kept_as.empty()
                    ? "In the file, but without effect on a forecast, and not in this one:"
                    : fmt::format("Without effect on a forecast; kept under {}:", imported.kept_as),
                imported.left_out);
  return out + fmt::format("name: {}\n", yaml_word(name_of(imported)));
}

std::string container_text(const ImportedContainer& container, const std::string& model) {
  std::string out = fmt::format("  container:\n    image: {}\n", yaml_word(container.image));
  if (!container.command.empty()) {
    std::vector<std::string> words;
    for (const std::string& w : container.command) words.push_back(yaml_word(w));
    out += fmt::format("    command: [{}]\n", fmt::join(words, ", "));
  }
  if (!container.environment.empty()) {
    out += "    env:\n";
    for (const auto& [name, value] : container.environment)
      out += fmt::format("      {}: {}\n", yaml_word(name), yaml_word(value));
  }
  return out + fmt::format("    profile: {}  # what its program trains\n", model);
}

std::string workload_text(const Imported& imported, const ImportedWork& work,
                          const Catalog& catalog, int batch) {
  std::string out = "workload:\n";
  out += imported.container ? container_text(*imported.container, work.model)
                            : fmt::format("  model: {}\n", work.model);
  out += fmt::format("  dataset: {}\n  train: {{{}}}\n", work.dataset, work.length);
  if (!work.precision.empty()) out += fmt::format("  precision: {}\n", work.precision);
  out += fmt::format("  batch_per_accelerator: {}\n  strategy: {}\n", batch,
                     imported.strategy ? *imported.strategy
                                       : strategy_of(imported.pools, imported.provider, catalog));
  return out;
}

std::string nodes_text(const ImportedPool& pool) {
  const NodesSpec& n = pool.nodes;
  std::string out = n.initial == n.min && n.min == n.max
                        ? fmt::format("      nodes: {}\n", n.max)
                        : fmt::format("      nodes: {{initial: {}, min: {}, max: {}}}\n", n.initial,
                                      n.min, n.max);
  if (pool.autoscaling) out += "      autoscaling: true\n";
  return out;
}

std::string pool_text(const ImportedPool& pool, const Catalog& catalog) {
  std::string out =
      fmt::format("    - name: {}\n      role: {}\n", yaml_word(pool.name), to_text(pool.role));
  const std::string note = pool.note.empty() ? "" : "  # " + printable(pool.note);
  if (!pool.slice.empty()) {
    const TpuSlice* slice = catalog.find_slice(pool.slice);
    out += fmt::format("      tpu: {{type: {}, slice: {}}}{}\n",
                       slice == nullptr ? yaml_word(pool.accelerator) : slice->accelerator,
                       yaml_word(pool.slice), note);
  } else {
    out += fmt::format(
        "      machine: {}{}\n",
        pool.inventory.empty() ? yaml_word(pool.machine) : "{" + pool.inventory + "}", note);
    if (!pool.accelerator.empty())
      out += fmt::format("      accelerator: {{type: {}, count: {}}}\n",
                         yaml_word(pool.accelerator), pool.per_node);
  }
  out += nodes_text(pool);
  if (pool.spot) out += "      pricing: spot\n";
  return out;
}

std::string cluster_text(const Imported& imported, const Catalog& catalog) {
  std::string out = fmt::format("cluster:\n  provider: {}\n", to_text(imported.provider));
  if (imported.service) out += fmt::format("  service: {}\n", to_text(*imported.service));
  if (!imported.region.empty()) out += fmt::format("  region: {}\n", yaml_word(imported.region));
  if (!imported.zone.empty()) out += fmt::format("  zone: {}\n", yaml_word(imported.zone));
  if (!imported.scale_tier.empty())
    out += fmt::format("  scale_tier: {}\n", yaml_word(imported.scale_tier));
  if (!imported.pools.empty()) out += "  pools:\n";
  for (const ImportedPool& pool : imported.pools) out += pool_text(pool, catalog);
  return out + imported.kept;
}

std::string text_of(const Imported& imported, const ImportedWork& work, const Catalog& catalog,
                    int batch) {
  std::string out = head_text(imported, work) + workload_text(imported, work, catalog, batch) +
                    cluster_text(imported, catalog) + "forecast: {replications: 1000, seed: 1}\n";
  if (!imported.expectations.empty()) out += "expect:\n";
  for (const std::string& line : imported.expectations) out += fmt::format("  - {}\n", line);
  return out;
}

/// Places of the scenario's values in the file that was imported.
Places places_of(const Imported& imported) {
  Places places;
  places.file = imported.from;
  for (const auto& [path, at] : imported.places) places.set(path, at);
  for (const ImportedPool& pool : imported.pools) places.set("cluster.pools." + pool.name, pool.at);
  return places;
}

int nodes_at_most(const std::vector<ImportedPool>& pools, Role role) {
  int nodes = 0;
  for (const ImportedPool& pool : pools)
    if (pool.role == role) nodes += pool.nodes.max;
  return nodes;
}

}  // namespace

int devices_of(const ImportedPool& pool, const Provider& provider, const Catalog& catalog) {
  if (pool.per_node > 0) return pool.per_node;
  if (const TpuSlice* slice = catalog.find_slice(pool.slice)) return slice->chips;
  const Machine* machine = catalog.find_machine(provider, pool.machine);
  return machine == nullptr ? 0 : machine->accelerator_count;
}

std::string strategy_of(const std::vector<ImportedPool>& pools, const Provider& provider,
                        const Catalog& catalog) {
  const bool sliced =
      std::ranges::any_of(pools, [](const ImportedPool& p) { return !p.slice.empty(); });
  if (sliced) return "{kind: tpu}";
  // Nodes that train: a chief without the accelerators that workers have coordinates. Where nodes
  // have different numbers of them a worker is as large as the smallest has.
  int per_node = 0, workers = 0;
  const auto devices = [&](const ImportedPool& p) { return devices_of(p, provider, catalog); };
  const bool accelerated = std::ranges::any_of(
      pools, [&](const ImportedPool& p) { return p.role == Role::worker && devices(p) > 0; });
  for (const ImportedPool& pool : pools) {
    const bool trains = pool.role == Role::worker ||
                        (pool.role == Role::chief && (!accelerated || devices(pool) > 0));
    if (!trains) continue;
    per_node = per_node == 0 ? devices(pool) : std::min(per_node, devices(pool));
    workers += pool.nodes.max;
  }
  if (nodes_at_most(pools, Role::parameter_server) > 0)
    return per_node > 1
               ? fmt::format(
                     "{{kind: parameter_server, accelerators_per_worker: {}, mode: asynchronous}}",
                     per_node)
               : "{kind: parameter_server, mode: asynchronous}";
  if (workers > 1) return fmt::format("{{kind: multi_worker_mirrored, workers: {}}}", workers);
  return per_node > 1 ? "{kind: mirrored}" : "{kind: single}";
}

Expected<std::string> scenario_of(const Imported& imported, const ImportedWork& work,
                                  const Catalog& catalog) {
  ImportedWork said = work;
  if (!work.batch)
    said.assumed.push_back(fmt::format(
        "batch_per_accelerator: the largest power of two up to {} that fits", kLargestBatch));
  for (int batch = work.batch.value_or(kLargestBatch);; batch /= 2) {
    std::string text = text_of(imported, said, catalog, batch);
    auto file = parse_scenario(text, imported.from);
    if (!file) {  // its places are those of a text that nobody sees
      for (Diagnostic& d : file.error()) d.at = {imported.from, 0, 0};
      return tl::unexpected(std::move(file.error()));
    }
    file->places = places_of(imported);
    const auto plan = make_plan(*file, catalog);
    if (!plan) return tl::unexpected(plan.error());
    const auto problem = check_memory(*plan, plan->only_job(), catalog, file->places);
    if (!problem) return text;
    if (work.batch || batch == 1) return tl::unexpected(Diagnostics{*problem});
  }
}

}  // namespace reckon
