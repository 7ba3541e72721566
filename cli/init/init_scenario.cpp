#include "cli/init/init_scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <tuple>

#include "cli/init/init_offers.h"
#include "sim/base/money.h"
#include "sim/base/text/lower_case.h"
#include "sim/base/text/yaml_writer.h"
#include "sim/base/unit_text.h"
#include "sim/scenario/plan.h"
#include "sim/scenario/yaml/scenario_yaml.h"
#include "sim/step/step.h"

namespace reckon::cli {
namespace {

struct Draft {
  Offer offer;
  std::string strategy;   // "{kind: single}"
  std::string precision;  // "bf16"
  int batch = 1;
};

constexpr int kLargestBatch = 1024;  // beyond it convergence, not memory, is the limit

/// In the order in which they are tried: what needs the least beyond the accelerators first.
std::vector<std::string> strategies_for(const Offer& offer) {
  if (offer.slice != nullptr) return {"{kind: tpu}"};
  if (offer.nodes * offer.per_node == 1) return {"{kind: single}"};
  if (offer.nodes == 1) return {"{kind: mirrored}", "{kind: sharded, zero_stage: 3}"};
  return {fmt::format("{{kind: multi_worker_mirrored, workers: {}}}", offer.nodes),
          fmt::format("{{kind: sharded, workers: {}, zero_stage: 3}}", offer.nodes)};
}

/// A name of a catalog, which may be the user's own, as YAML.
std::string as_yaml(std::string_view name) {
  YamlWriter out(YamlQuotes::for_us);
  out.text(name);
  std::string text = out.done();
  text.pop_back();  // its newline
  return text;
}

/// "epochs: 90" -> "90 epochs".
std::string duration_in_words(const std::string& length) {
  const std::size_t colon = length.find(": ");
  return length.substr(colon + 2) + " " + length.substr(0, colon);
}

std::string pool_text(const InitAnswers& answers, const Draft& d, const Catalog& catalog) {
  const Offer& offer = d.offer;
  std::string out = "    - name: workers\n";
  if (offer.slice != nullptr) {
    out +=
        fmt::format("      tpu: {{type: {}, slice: {}}}  # {} chips\n",
                    as_yaml(answers.accelerator), as_yaml(offer.slice->name), offer.slice->chips);
  } else {
    if (offer.machine == nullptr) {
      out += fmt::format("      machine: {}  # assumed: put in yours\n", offer.size);
    } else {
      const Machine& m = *offer.machine;
      out += fmt::format("      machine: {}  # {} vCPUs, {}\n", as_yaml(m.name), m.vcpus,
                         format_bytes(m.memory.value));
    }
    if (!answers.accelerator.empty())
      out += fmt::format("      accelerator: {{type: {}, count: {}}}  # {} of memory each\n",
                         as_yaml(answers.accelerator), offer.per_node,
                         format_bytes(catalog.find_accelerator(answers.accelerator)->memory.value));
  }
  out += fmt::format(
      "      nodes: {}  # or {{initial: 1, min: 0, max: 5}} with autoscaling: true\n", offer.nodes);
  out +=
      answers.pricing == CapacityType::spot
          ? "      pricing: spot  # may be reclaimed; the catalog's rate applies unless you give "
            "disruptions:\n"
          : "      pricing: on_demand  # spot is cheaper and may be reclaimed\n";
  return out;
}

bool has_storage(const Catalog& catalog, const Provider& provider) {
  return std::ranges::any_of(catalog.storages,
                             [&](const Storage& s) { return s.provider == provider; });
}

/// What nobody said, as comments.
std::string assumed_text(const InitAnswers& answers, const Draft& d) {
  std::vector<std::string> all = answers.assumed;
  if (!answers.provider)
    all.push_back(fmt::format("provider {}: the cheapest that is listed", d.offer.provider.name));
  if (answers.region.empty() && !d.offer.region.empty())
    all.push_back(fmt::format("region {}", d.offer.region));
  if (!d.offer.size.empty()) all.push_back(fmt::format("machine {}", d.offer.size));
  std::string out;
  for (const std::string& one : all)
    out += fmt::format("{}{}\n", out.empty() ? "#\n# Assumed: " : "#   ", one);
  return out;
}

std::string text_of(const InitAnswers& answers, const Draft& d, const Catalog& catalog,
                    std::string_view batch_note, std::string_view price_note) {
  const bool bare = answers.accelerator.empty();
  const std::string what = bare ? fmt::format("{} node{} without accelerators", answers.count,
                                              answers.count > 1 ? "s" : "")
                                : fmt::format("{} x {}", answers.count, answers.accelerator);
  std::string out = fmt::format(
      "# Question: {} for {} on {}: how long does it take, and what does it cost?\n"
      "#\n"
      "# Written by `reckon init`. Answer it with `reckon simulate` on this file; what else may "
      "stand\n"
      "# here says `reckon schema`.\n",
      answers.model, duration_in_words(answers.length), what);
  out += assumed_text(answers, d);
  out += fmt::format(
      "name: {}\n",
      as_yaml(fmt::format("{}-{}-{}", lower_case(answers.model),
                          bare ? "cpu" : lower_case(answers.accelerator), answers.count)));
  out += fmt::format(
      "workload:\n"
      "  model: {}\n"
      "  dataset: {}\n"
      "  train: {{{}}}\n"
      "  precision: {}\n"
      "  batch_per_accelerator: {}  # {}\n"
      "  strategy: {}\n"
      "  checkpoint: {{interval: {}\n",
      as_yaml(answers.model), as_yaml(answers.dataset), answers.length, d.precision, d.batch,
      batch_note, d.strategy,
      has_storage(catalog, d.offer.provider)
          ? "optimal}  # Young and Daly's interval; or a time such as 30min"
          : "none}  # the catalog has no storage of this provider");
  out += fmt::format(
      "cluster:\n"
      "  provider: {}{}{}  # {}\n"
      "  pools:\n"
      "{}",
      as_yaml(to_text(d.offer.provider)), d.offer.region.empty() ? "" : "\n  region: ",
      d.offer.region.empty() ? "" : as_yaml(d.offer.region), price_note,
      pool_text(answers, d, catalog));
  out +=
      "forecast: {replications: 1000, seed: 1}\n"
      "# What `reckon check` holds the forecast to; put in your own deadline and budget:\n"
      "# expect:\n"
      "#   - p95(time) <= 72h\n"
      "#   - p95(cost) <= 1000 USD\n"
      "#   - goodput >= 95%\n";
  return out;
}

struct Planned {
  ScenarioFile file;
  Plan plan;
};
Expected<Planned> planned(const InitAnswers& answers, const Draft& draft, const Catalog& catalog) {
  auto file = parse_scenario(text_of(answers, draft, catalog, "", ""), "the new scenario");
  if (!file) return tl::unexpected(std::move(file.error()));
  auto plan = make_plan(*file, catalog);
  if (!plan) return tl::unexpected(std::move(plan.error()));
  return Planned{std::move(*file), std::move(*plan)};
}

Int128 price_of_nodes(const Plan& plan) {  // nano-dollars an hour
  Int128 sum = 0;
  for (const PlannedPool& pool : plan.pools)
    sum +=
        (Int128{pool.price.machine.nano_usd_per_hour} + pool.price.accelerators.nano_usd_per_hour) *
        pool.nodes_initial;
  return sum;
}

bool price_is_known(const Plan& plan) {
  return std::all_of(plan.pools.begin(), plan.pools.end(),
                     [](const PlannedPool& p) { return p.price.known; });
}

struct Best {
  Draft draft;
  Plan plan;
};
/// A known price before an unknown one, then the lower one; prices that agree to the cent an hour
/// are the same, and the faster network decides.
bool is_better(const Plan& a, const Plan& b) {
  const auto rank = [](const Plan& plan) {
    constexpr Int128 kCent = 10'000'000;  // nano-dollars
    const bool known = price_is_known(plan);
    const Int128 cents = known ? (price_of_nodes(plan) + kCent / 2) / kCent : 0;
    return std::tuple(!known, cents, -plan.pools.front().machine.network.value.v);
  };
  return rank(a) < rank(b);
}

/// The cheapest of the offers that the strategy can be planned on.
Expected<Best> cheapest(const InitAnswers& answers, const std::vector<Offer>& offers,
                        std::size_t strategy, const std::string& precision,
                        const Catalog& catalog) {
  std::optional<Best> best;
  Diagnostics first_problem;
  for (const Offer& offer : offers) {
    const auto strategies = strategies_for(offer);
    if (strategy >= strategies.size()) continue;
    const Draft draft{offer, strategies[strategy], precision, 1};
    auto made = planned(answers, draft, catalog);
    if (!made) {
      if (first_problem.empty()) first_problem = made.error();
      continue;
    }
    if (!best || is_better(made->plan, best->plan)) best = Best{draft, std::move(made->plan)};
  }
  if (best) return std::move(*best);
  return tl::unexpected(std::move(first_problem));
}

bool fits(const Plan& plan, int batch) {
  PlannedWorkload job = plan.only_job();
  job.strategy.layout.micro_batch = batch;
  return estimate_memory(plan, job).fits_at(kRiskOfAPlan);
}

/// The largest power of two that fits; 0: not even one sample does.
int largest_batch(const Plan& plan) {
  int batch = 0;
  for (int next = 1; next <= kLargestBatch && fits(plan, next); next *= 2) batch = next;
  return batch;
}

std::string batch_note(const Plan& plan, int batch) {
  PlannedWorkload job = plan.only_job();
  job.strategy.layout.micro_batch = batch;
  const MemoryEstimate m = estimate_memory(plan, job);
  return fmt::format("takes {}{}", memory_text(m),
                     batch == kLargestBatch ? "" : "; twice as many may not fit");
}

std::string price_note(const Plan& plan) {
  if (!price_is_known(plan)) return "no price is known: give yours under prices: {rates: ...}";
  return fmt::format("all nodes together {} an hour, price of {}",
                     format_usd(Usd{double(price_of_nodes(plan)) * 1e-9}), plan.prices_as_of);
}

}  // namespace

Expected<std::string> scenario_for(const InitAnswers& answers, const Catalog& catalog) {
  const Accelerator* accelerator = catalog.find_accelerator(answers.accelerator);
  const auto offers = offers_for(answers, catalog);
  if (!offers) return tl::unexpected(offers.error());
  const std::string precision{
      to_text(accelerator == nullptr ? Precision::fp32 : accelerator->training_precision())};
  Diagnostics problems;
  constexpr std::size_t kStrategies = 2;
  for (std::size_t strategy = 0; strategy < kStrategies; ++strategy) {
    auto best = cheapest(answers, *offers, strategy, precision, catalog);
    if (!best) {
      if (problems.empty()) problems = best.error();
      continue;
    }
    best->draft.batch = largest_batch(best->plan);
    if (best->draft.batch > 0)
      return text_of(answers, best->draft, catalog, batch_note(best->plan, best->draft.batch),
                     price_note(best->plan));
    auto problem = check_memory(best->plan, best->plan.only_job(), catalog, Places{});
    if (problem && problems.empty()) problems.push_back(std::move(*problem));
  }
  for (Diagnostic& d : problems) d.at = {"reckon init", 0, 0};
  return tl::unexpected(std::move(problems));
}

}  // namespace reckon::cli
