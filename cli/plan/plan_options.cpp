#include "cli/plan/plan_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "cli/load/load.h"
#include "cli/options/usage_error.h"
#include "cli/options/values.h"
#include "cli/plan/lock.h"
#include "sim/base/unit_text.h"

namespace reckon::cli {
namespace {

/// A key of the `plan:` block: its value, as it stands there.
Read key(std::vector<std::string>& to, const char* path) {
  return [&to, path](const std::string&, const std::string& text) {
    if (!text.empty()) to.push_back(fmt::format("plan.{}={}", path, text));
  };
}
/// A list of it, as words between commas.
Read list_of_words(std::vector<std::string>& to, const char* path) {
  return [&to, path](const std::string&, const std::string& text) {
    if (!text.empty()) to.push_back(fmt::format("plan.{}=[{}]", path, text));
  };
}

/// "gcp/us-central1/T4=8,aws/us-east-1/V100-SXM2-16=16" as the block that it stands for.
Read quota_block(std::string& to) {
  return [&to](const std::string& name, const std::string& text) {
    if (text.empty()) return;
    std::string block;
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      const std::string one = text.substr(begin, end - begin);
      const std::size_t equal = one.find('=');
      if (equal == std::string::npos || equal == 0 || equal + 1 == one.size())
        throw UsageError(fmt::format(
            "--{} takes places with numbers such as gcp/us-central1/T4=8, not '{}'", name, one));
      block += fmt::format("{}{}: {}", block.empty() ? "" : ", ", one.substr(0, equal),
                           one.substr(equal + 1));
      begin = end + 1;
    }
    to = fmt::format("plan.quota={{{}}}", block);
  };
}

Read share(std::optional<double>& to) {
  return [&to](const std::string& name, const std::string& text) {
    const auto share = parse_fraction(text);
    const bool percent = text.ends_with('%');
    if (!share || *share < 0 || (!percent && *share >= 1))  // 3 is meant as 3 %, not as 300
      throw UsageError(fmt::format("--{} takes a share such as 3%, not '{}'", name, text));
    to = *share;
  };
}

/// Files that are read and written: one that is named twice would be lost.
void refuse_paths(const PlanOptions& o) {
  namespace fs = std::filesystem;
  std::vector<std::pair<std::string, fs::path>> taken;
  const auto take = [&](const std::string& what, const std::string& path) {
    if (path.empty()) return;
    const fs::path place = fs::weakly_canonical(path);
    for (const auto& [other, there] : taken)
      if (there == place)
        throw UsageError(fmt::format("{} and {} are one file: {}", other, what, path));
    taken.emplace_back(what, place);
  };
  for (const std::string& file : o.files) take("the question", file);
  take("--memo", o.memo);
  take("--baseline", o.baseline);
  if (o.lock && !o.files.empty()) take("--lock", lock_beside(o.files.front()).string());
  take("--out", o.out);
  if (!o.out.empty()) take("the artifact beside --out", artifact_beside(o.out).string());
  take("--svg", o.svg);
  take("--diff", o.diff);
}

}  // namespace

std::vector<Option> PlanOptions::declared() {
  std::vector<std::string>& block = plan_block;
  Option out_file = out_option();
  out_file.read = file_name(out);
  return {
      format_option(),
      {model_text(), text(model)},
      {tokens_text(), text(tokens)},
      {epochs_text(), text(epochs)},
      {dataset_text(), text(dataset)},
      {{"finetune", "METHOD:N",
        "fine-tuning method: lora:16, qlora:16 or dora:16 (rank), adapters:64 (width) or "
        "last_layers:1 (full training)"},
       text(finetune)},
      {{"sequence", "N", "sequence length in tokens (the model's own)"}, text(sequence)},
      {accelerator_text(), list_of_words(block, "vary.accelerator")},
      {machine_text(), list_of_words(block, "vary.machine")},
      {provider_text(), list_of_words(block, "vary.provider")},
      {region_text(), list_of_words(block, "vary.region")},
      {{"zone", "A,B", "zones to consider; any: all zones of the catalog"},
       list_of_words(block, "vary.zone")},
      {{"nodes", "1..64", "node counts to consider"}, list_of_words(block, "vary.nodes")},
      {{"autoscaling", "A,B",
        "size limits of the worker pool, as shares of the job's nodes: fixed,0..100%,125%"},
       list_of_words(block, "vary.autoscaling")},
      {pricing_text(), list_of_words(block, "vary.pricing")},
      {{"base", "A,B",
        "shares of the nodes that are not spot, such as '25% on_demand,50% reserved'"},
       list_of_words(block, "vary.base")},
      {{"fallback", "A,B",
        "waits for spot nodes before on-demand nodes replace them, such as 10min,30min"},
       list_of_words(block, "vary.fallback")},
      {{"strategy", "A,B", "strategies to consider (any)"}, list_of_words(block, "vary.strategy")},
      {{"layouts", "",
        "search all tensor, pipeline and data-parallel layouts (needs --global-batch)"},
       given(layouts)},
      {{"parameter-servers", "0..16", "parameter-server counts to consider"},
       list_of_words(block, "vary.parameter_servers")},
      {{"parameter-server-machine", "A,B", "machine types of the parameter servers to consider"},
       list_of_words(block, "vary.parameter_server_machine")},
      {{"recompute", "A,B", "activation recomputation to consider: none, selective, full or any"},
       list_of_words(block, "vary.recompute")},
      {precision_text(), text(precision)},
      {{"global-batch", "N", "global batch in samples; 1..8192 searches up to that many"},
       text(global_batch)},
      {{"checkpoint-interval", "A,B",
        "checkpoint intervals to consider: durations, optimal or none"},
       list_of_words(block, "vary.checkpoint_interval")},
      {{"restart", "A,B",
        "restarts after a loss to consider: full, in_place, warm_spare 1, elastic 12"},
       list_of_words(block, "vary.restart")},
      {{"checkpoint-storage", "A,B", "checkpoint storages of the catalog to consider"},
       list_of_words(block, "vary.checkpoint_storage")},
      {deadline_text(), key(block, "deadline")},
      {{"budget", "MONEY", "cost limit; 20000USD@90% asks for that probability"},
       key(block, "budget")},
      {{"quota", "PLACE=N,...",
        "quota per location: gcp/us-central1/H100-SXM5-80=128, or .../spot=128"},
       quota_block(quota)},
      {{"memory", "AMOUNT", "accelerator memory limit: 70GiB or 90%"}, key(block, "memory")},
      {{"max-nodes", "N", "node limit, including parameter servers and fallback nodes"},
       key(block, "max_nodes")},
      {{"residency", "A,B", "countries where data may reside (ISO 3166, or EU)"},
       list_of_words(block, "residency")},
      {{"carbon-free", "SHARE",
        "minimum carbon-free share of the region's electricity, such as 80%"},
       key(block, "carbon_free")},
      {{"energy", "AMOUNT", "electricity limit of the run, such as 500kWh (mean)"},
       key(block, "energy")},
      {{"co2", "MASS", "CO2 limit of the run's electricity, such as 2t (mean)"}, key(block, "co2")},
      {{"objective", "NAME",
        "what to minimise: cost, time, cost_time, throughput_per_dollar, cost_under_deadline, "
        "p95_cost or p95_time (cost)"},
       key(block, "objective")},
      {{"plans", "N", "number of plans to show (5)"}, whole(plans, 1, 1000)},
      {{"fewest", "", "find the fewest accelerators that fit, or the fewest parameter servers"},
       given(fewest)},
      {{"limit", "METRIC",
        "shared cluster: limit to meet with the fewest nodes, such as 'p95(wait) <= 1h'"},
       text(limit)},
      {{"pool", "NAME",
        "with --limit: pool whose nodes vary (the pool with the most accelerators)"},
       text(pool)},
      {{"try", "PATH=VALUE",
        "with --limit: also try this change, as of --set; 'A=1 and B=2' together (repeatable)"},
       texts(tries),
       true},
      out_file,
      memo_option(memo),
      {{"svg", "FILE.svg", "plot the Pareto front of time and cost"}, file_name(svg)},
      {{"baseline", "FILE",
        "plan file or lock file to compare with; exit code 1 if today's best is worse (lock: "
        "because of an edit)"},
       file_name(baseline)},
      {{"lock", "", "write FILE.lock.json beside the scenario: the result with its inputs"},
       given(lock)},
      {{"tolerance", "PERCENT", "allowed change for the worse, such as 3% (0%)"}, share(tolerance)},
      {{"diff", "FILE.md", "Markdown of the difference from the baseline, for a comment"},
       file_name(diff)},
      seed_option(),
      replications_option(),
      set_option(),
      layer_option(),
      catalog_option(),
      calibration_option(),
      evidence_option(),
      without_evidence_option(),
      threads_option()};
}

void PlanOptions::check() const {
  refuse_paths(*this);
  if (files.size() > 1) throw UsageError("plan takes one scenario file");
  if (!pool.empty() && limit.empty()) throw UsageError("--pool needs --limit");
  if (!tries.empty() && limit.empty()) throw UsageError("--try needs --limit");
  if (baseline.empty() && (tolerance || !diff.empty()))
    throw UsageError(fmt::format("--{} needs --baseline", tolerance ? "tolerance" : "diff"));
  if (lock && files.empty())
    throw UsageError(
        "--lock needs a scenario file, beside which it writes; --out FILE keeps the answer");
  if (!fewest) return;
  refuse_given({{"baseline", !baseline.empty()},
                {"lock", lock},
                {"out", !out.empty()},
                {"svg", !svg.empty()},
                {"plans", plans.has_value()},
                {"memo", !memo.empty()}},
               [](const char* name) {
                 return fmt::format("--fewest does not rank plans: leave --{} out", name);
               });
}

}  // namespace reckon::cli
