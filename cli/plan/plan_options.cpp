#include "cli/plan/plan_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

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
Read list(std::vector<std::string>& to, const char* path) {
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
      {{"finetune", "METHOD:N", "train a part: lora:16 (rank) or last_layers:1 (the whole model)"},
       text(finetune)},
      {{"sequence", "N", "tokens of a sequence (the model's own)"}, text(sequence)},
      {accelerator_text(), list(block, "vary.accelerator")},
      {machine_text(), list(block, "vary.machine")},
      {provider_text(), list(block, "vary.provider")},
      {region_text(), list(block, "vary.region")},
      {{"zone", "A,B", "zones to consider; any: all that the catalog knows"},
       list(block, "vary.zone")},
      {{"nodes", "1..64", "numbers of nodes to consider"}, list(block, "vary.nodes")},
      {{"autoscaling", "A,B",
        "bounds of the workers' pool as shares of the job's nodes: fixed,0..100%,125%"},
       list(block, "vary.autoscaling")},
      {pricing_text(), list(block, "vary.pricing")},
      {{"base", "A,B",
        "shares of a job's nodes that are not spot, such as '25% on_demand,50% reserved'"},
       list(block, "vary.base")},
      {{"fallback", "A,B", "use on-demand nodes when spot nodes have not come within 10min,30min"},
       list(block, "vary.fallback")},
      {{"strategy", "A,B", "kinds of strategy to consider (any)"}, list(block, "vary.strategy")},
      {{"layouts", "", "try every split of the model; it needs --global-batch"}, given(layouts)},
      {{"parameter-servers", "0..16", "numbers of parameter servers to consider"},
       list(block, "vary.parameter_servers")},
      {{"parameter-server-machine", "A,B", "machines of the parameter servers to consider"},
       list(block, "vary.parameter_server_machine")},
      {{"recompute", "A,B", "none, selective, full or any"}, list(block, "vary.recompute")},
      {precision_text(), text(precision)},
      {{"global-batch", "N", "samples of an optimizer step; 1..8192: at most so many, free"},
       text(global_batch)},
      {{"checkpoint-interval", "A,B", "durations, optimal or none"},
       list(block, "vary.checkpoint_interval")},
      {{"restart", "A,B", "after a loss: full, in_place, warm_spare 1, elastic 12"},
       list(block, "vary.restart")},
      {{"checkpoint-storage", "A,B", "storages of the catalog to consider"},
       list(block, "vary.checkpoint_storage")},
      {deadline_text(), key(block, "deadline")},
      {{"budget", "MONEY", "what it may cost: 20000USD@90% is with that probability"},
       key(block, "budget")},
      {{"quota", "PLACE=N,...",
        "accelerators that may be had: gcp/us-central1/H100-SXM5-80=128, or .../spot=128"},
       quota_block(quota)},
      {{"memory", "AMOUNT", "of an accelerator that may be used at most: 70GiB or 90%"},
       key(block, "memory")},
      {{"max-nodes", "N", "most nodes at once, servers and those that stand in included"},
       key(block, "max_nodes")},
      {{"residency", "A,B", "where data may be: countries (ISO 3166), or EU"},
       list(block, "residency")},
      {{"carbon-free", "SHARE",
        "least share of a region's power that is free of carbon, such as 80%"},
       key(block, "carbon_free")},
      {{"energy", "AMOUNT", "electricity of the run at most, such as 500kWh (mean)"},
       key(block, "energy")},
      {{"co2", "MASS", "CO2 of the run's electricity at most, such as 2t (mean)"},
       key(block, "co2")},
      {{"objective", "NAME",
        "what is best: cost, time, cost_time, throughput_per_dollar, cost_under_deadline, "
        "p95_cost or p95_time (cost)"},
       key(block, "objective")},
      {{"plans", "N", "how many plans to show (5)"}, whole(plans, 1, 1000)},
      {{"fewest", "",
        "will it fit, and how many accelerators at least; of parameter servers, how many"},
       given(fewest)},
      {{"limit", "METRIC",
        "of jobs that share a cluster: the fewest nodes that keep it, such as 'p95(wait) <= 1h'"},
       text(limit)},
      {{"pool", "NAME", "whose nodes --limit counts (the pool with the most accelerators)"},
       text(pool)},
      out_file,
      memo_option(memo),
      {{"svg", "FILE.svg", "draw time against cost of the plans that no other beats in both"},
       file_name(svg)},
      {{"baseline", "FILE",
        "a plan of --out, or a lock: exit code 1 if today's best is worse; by an edit, of a lock"},
       file_name(baseline)},
      {{"lock", "", "write FILE.lock.json beside the question: the answer with its inputs"},
       given(lock)},
      {{"tolerance", "PERCENT", "by how much it may be worse, such as 3% (0%)"}, share(tolerance)},
      {{"diff", "FILE.md", "write what is different from the baseline, for a comment"},
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
  if (!pool.empty() && limit.empty())
    throw UsageError("--pool speaks of a --limit, which is missing");
  if (baseline.empty() && (tolerance || !diff.empty()))
    throw UsageError(fmt::format("--{} speaks of a --baseline, which is missing",
                                 tolerance ? "tolerance" : "diff"));
  if (lock && files.empty())
    throw UsageError("--lock stands beside a scenario file: --out question.yaml keeps the answer");
  if (!fewest) return;
  const std::pair<const char*, bool> of_ranked[] = {
      {"baseline", !baseline.empty()}, {"lock", lock},
      {"out", !out.empty()},           {"svg", !svg.empty()},
      {"plans", plans.has_value()},    {"memo", !memo.empty()}};
  for (const auto& [name, given] : of_ranked)
    if (given)
      throw UsageError(fmt::format("--fewest makes no ranked plans: leave --{} out", name));
}

}  // namespace reckon::cli
