#include "sim/accuracy/scoring/reliability_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "sim/accuracy/named_csv.h"
#include "sim/base/parallel.h"
#include "sim/base/unit_text.h"
#include "sim/catalog/operations_keys.h"
#include "sim/forecast/replicate.h"

namespace reckon {
namespace {

constexpr std::array<std::string_view, 14> kReliabilityColumns{"run",
                                                               "accelerators",
                                                               "accelerator",
                                                               "nodes",
                                                               "days",
                                                               "interruptions",
                                                               "goodput_or_ettr",
                                                               "interruptions_kind",
                                                               "goodput_kind",
                                                               "checkpoint_interval",
                                                               "checkpoint_seconds",
                                                               "restart_time",
                                                               "evidence",
                                                               "notes"};
constexpr double kMostOfRun = 1e6;  // accelerators, nodes, days

bool contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

/// The numbers of a text in their order, "50,677" as one.
std::vector<double> numbers_in(std::string_view text) {
  std::vector<double> numbers;
  for (std::size_t i = 0; i < text.size();) {
    if (std::isdigit(static_cast<unsigned char>(text[i])) == 0) {
      ++i;
      continue;
    }
    std::string digits;
    for (; i < text.size(); ++i) {
      const bool digit = std::isdigit(static_cast<unsigned char>(text[i])) != 0;
      const bool inside =
          i + 1 < text.size() && std::isdigit(static_cast<unsigned char>(text[i + 1])) != 0;
      if (digit || (text[i] == '.' && inside))
        digits += text[i];
      else if (text[i] != ',' || !inside)
        break;
    }
    if (const auto value = parse_number(digits)) numbers.push_back(*value);
  }
  return numbers;
}

/// "> 90", "up to 0.97", "1-2", "about 20".
std::optional<PublishedRange> range_in(std::string_view text, double most) {
  const std::vector<double> numbers = numbers_in(text);
  if (numbers.empty()) return std::nullopt;
  PublishedRange range{numbers.front(), numbers.size() > 1 ? numbers[1] : numbers.front()};
  if (text.starts_with('>')) range.high = most;
  return range;
}

/// Of the whole run; what is told a week or a 1,000 node-days is not a count yet.
std::optional<PublishedRange> interruptions_in(std::string_view text, const ReliabilityRun& run) {
  const double days = run.length.count() / 86400;
  double times = 1;
  if (contains(text, "node-days")) {
    const auto numbers = numbers_in(text);
    if (numbers.empty()) return std::nullopt;
    const double each = numbers.front() * days * run.nodes / 1000;
    return PublishedRange{each, each};
  }
  if (contains(text, "a week")) times = days / 7;
  auto range = range_in(text, 1e9);
  if (range) *range = {range->low * times, range->high * times};
  return range;
}

/// "about 3 h (100 iterations)": the first number with its unit.
std::optional<Seconds> duration_in(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (std::isdigit(static_cast<unsigned char>(text[i])) == 0) continue;
    std::string word;
    for (std::size_t k = i; k < text.size() && text[k] != '(' && text[k] != ';'; ++k) {
      if (text[k] == ' ') continue;
      word += text[k];
      if (const auto value = parse_duration(word)) {
        const bool longer =
            k + 1 < text.size() && std::isalpha(static_cast<unsigned char>(text[k + 1])) != 0;
        if (!longer) return *value;
      }
    }
    return std::nullopt;
  }
  return std::nullopt;
}

/// "Llama 3.1 405B": parameters by the name; 0: it has none.
double parameters_in(std::string_view name) {
  for (std::size_t b = name.find('B'); b != std::string_view::npos; b = name.find('B', b + 1)) {
    std::size_t begin = b;
    while (begin > 0 && std::isdigit(static_cast<unsigned char>(name[begin - 1])) != 0) --begin;
    if (const auto value = parse_number(name.substr(begin, b - begin))) return *value * 1e9;
  }
  return 0;
}

/// Why the row says nothing that the life of a cluster could; "": it does.
std::string read_row(const NamedCsv& csv, ReliabilityRun& run) {
  const auto first = [&](std::string_view column) {
    const auto numbers = numbers_in(csv.text(column));
    return numbers.empty() || numbers.front() > kMostOfRun ? 0.0 : numbers.front();
  };
  run.name = csv.text("run");
  run.line = csv.line();
  run.accelerator = csv.text("accelerator");
  run.evidence = csv.text("evidence");
  run.kind = csv.text("interruptions_kind");
  run.parameters = parameters_in(run.name);
  run.takes_hours = contains(csv.text("restart_time"), "hours");
  run.accelerators = int(first("accelerators"));
  constexpr double kOfNode = 8;  // accelerators, where the row has no nodes
  run.nodes = int(first("nodes"));
  if (run.nodes == 0) run.nodes = int(std::ceil(run.accelerators / kOfNode));
  run.length = Seconds{first("days") * 86400};
  run.rented = contains(csv.text("restart_time"), "cloud") || contains(csv.text("notes"), "cloud");
  if (run.accelerators < 1) return "the number of accelerators is not known";
  if (run.length.count() <= 0) return "the length of the run is not known";
  if (contains(run.kind, "spike") || contains(run.kind, "anew") || contains(run.kind, "spikes"))
    return "counts no failures of machines";
  run.interruptions = interruptions_in(csv.text("interruptions"), run);
  run.goodput = range_in(csv.text("goodput_or_ettr"), 1);
  const bool best = csv.text("notes").starts_with("up to");  // of several runs
  if (run.goodput && best) run.goodput->low = 0;
  if (!run.interruptions && !run.goodput) return "neither interruptions nor goodput are known";
  run.interval = duration_in(csv.text("checkpoint_interval"));
  if (const double save = first("checkpoint_seconds"); save > 0) run.save = Seconds{save};
  run.restart = duration_in(csv.text("restart_time"));
  if (contains(csv.text("restart_time"), "lost")) run.restart = std::nullopt;
  return "";
}

/// From a failure to training again where spare nodes stand by. 11 min: median interval of
/// automatic retries of a cluster of 63 B200 nodes (IQR 10 to 11; abstract of SKT's, Upstage's and
/// Lablup's report); within 15 min of a crash is what MegaScale aims at (arXiv:2402.15627).
const Fact<Seconds> kRestartWithSpares{Seconds{660}, Seconds{540}, Seconds{900}, SourceId::user};
/// "Hours" for a machine of a cloud (chronicles of OPT-175B): not told more exactly.
const Fact<Seconds> kRestartOfHours{Seconds{4 * 3600}, Seconds{2 * 3600}, Seconds{8 * 3600},
                                    SourceId::user};

/// Every node writes its part of 12 bytes a parameter (fp32 weights and AdamW's state) at 1 GB/s,
/// half to twice that: storages of catalogs/storages.yaml and BLOOM-176B's 1.2 (2.3 TB from 48
/// nodes in 40 s).
Fact<Seconds> save_of(double parameters, int nodes, const Fact<Seconds>& overhead) {
  const double bytes = 12 * parameters / nodes;
  const auto at = [&](double rate, Seconds fixed) { return Seconds{bytes / rate} + fixed; };
  return {at(1e9, overhead.value), at(2e9, overhead.low), at(0.5e9, overhead.high), SourceId::user};
}

Fact<Seconds> in_seconds(const Fact<double>& f) {
  Fact<Seconds> out{Seconds{f.value}, Seconds{f.low}, Seconds{f.high}, f.source};
  out.assumed = f.assumed;
  return out;
}

/// A gang on its owner's nodes, nothing but failures.
Plan plan_of_run(const ReliabilityRun& run, const OperationalDefaults& operations) {
  Plan plan;
  plan.name = run.name;
  const auto seconds = [&](std::string_view key) { return in_seconds(operations.at(key)); };
  PlannedPool pool;
  pool.name = "run";
  pool.nodes_initial = pool.nodes_min = pool.nodes_max = run.nodes;
  pool.accelerators_per_node = std::max(1, run.accelerators / run.nodes);
  pool.accelerator = Accelerator{};
  pool.provisioning = Fact<Seconds>{Seconds{0}};
  plan.pools.push_back(pool);
  PlannedWorkload job;
  job.name = "run";
  job.strategy.kind = StrategyKind::multi_worker_mirrored;
  job.strategy.workers = run.nodes;
  job.strategy.accelerators_per_worker = pool.accelerators_per_node;
  Fact<Seconds>& save = job.checkpoint.save_overhead;
  save = seconds(keys::kLargeSave);
  if (run.parameters > 0) save = save_of(run.parameters, run.nodes, seconds(keys::kSaveOverhead));
  if (run.save) save = Fact<Seconds>{*run.save};
  plan.jobs.push_back(job);
  plan.retry.backoff_limit = std::numeric_limits<int>::max();
  plan.autoscaler.scan_interval = Seconds{10};
  plan.billing.granularity = Seconds{1};
  plan.reclaim.law = NoReclaim{};
  plan.failures = {
      .on = true,
      .mtbf_per_accelerator = seconds(run.rented ? keys::kMtbfRented : keys::kMtbfPerAccelerator),
      .repair = seconds(keys::kRepair),
      .hang_share = operations.at(keys::kHangShare),
      .hang_detection = seconds(keys::kHangDetection)};
  // All of a restart, so that nothing else is waited for.
  plan.failures.repair = run.restart       ? Fact<Seconds>{*run.restart}
                         : run.takes_hours ? kRestartOfHours
                                           : kRestartWithSpares;
  return plan;
}

template <class Where>
void add_assumption(std::vector<PlanAssumption>& rows, const Plan& plan, std::string key,
                    std::string unit, Where where) {
  const auto& fact = where(plan);
  if (!fact.assumed) return;
  PlanAssumption a;
  a.key = std::move(key);
  a.unit = std::move(unit);
  using T = std::decay_t<decltype(fact.value)>;
  const auto number = [](T value) {
    if constexpr (std::is_same_v<T, Seconds>)
      return value.count();
    else
      return double(value);
  };
  a.value = number(fact.value);
  a.low = number(fact.low);
  a.high = number(fact.high);
  a.set = [where](Plan& p, double value) { where(p).value = T{value}; };
  rows.push_back(std::move(a));
}

std::vector<PlanAssumption> assumptions_of_run(const Plan& plan) {
  std::vector<PlanAssumption> rows;
  add_assumption(
      rows, plan, "failures.mtbf_per_accelerator", "s",
      [](auto& p) -> auto& { return p.failures.mtbf_per_accelerator; });
  add_assumption(
      rows, plan, "failures.repair", "s", [](auto& p) -> auto& { return p.failures.repair; });
  add_assumption(
      rows, plan, "failures.hang_share", "fraction",
      [](auto& p) -> auto& { return p.failures.hang_share; });
  add_assumption(
      rows, plan, "failures.hang_detection", "s",
      [](auto& p) -> auto& { return p.failures.hang_detection; });
  add_assumption(
      rows, plan, "checkpoint.large_run_save", "s",
      [](auto& p) -> auto& { return p.only_job().checkpoint.save_overhead; });
  return rows;
}

ScoredReliability forecast_of(ReliabilityRun run, const Catalog& catalog, int replications) {
  const Plan plan = plan_of_run(run, catalog.operations);
  const std::vector<PlanAssumption> assumptions = assumptions_of_run(plan);
  const Seconds save = plan.only_job().checkpoint.save_overhead.value;
  const Seconds interval = run.interval.value_or(
      optimal_checkpoint_interval(save, mean_time_to_interruption(plan, plan.only_job())));
  std::vector<double> interruptions(static_cast<std::size_t>(replications));
  std::vector<double> lost(interruptions.size());
  parallel_for(interruptions.size(), 0, [&](std::size_t k) {
    Plan drawn = plan;
    for (const PlanAssumption& a : assumptions)
      a.set(drawn, value_at(a, draw_score(a, plan.seed, std::uint32_t(k))));
    JobPace pace;
    constexpr double kMoreThanThereIs = 2;  // times the run's length
    pace.steps = std::int64_t(kMoreThanThereIs * run.length.count());
    pace.step_by_workers.assign(std::size_t(run.nodes) + 1, Seconds{1});
    pace.checkpoint_save = drawn.only_job().checkpoint.save_overhead.value;
    pace.checkpoint_interval = interval;
    const LifeResult life =
        simulate_life(drawn, request_of(drawn.only_job(), std::move(pace)),
                      {.seed = plan.seed, .replication = std::uint32_t(k), .horizon = run.length});
    for (const std::int64_t n : life.interruptions) interruptions[k] += double(n);
    lost[k] = 1 - ratio(life.goodput, life.total);
  });
  return {std::move(run), quantiles(interruptions), quantiles(lost)};
}

}  // namespace

bool ScoredReliability::interruptions_inside() const {
  return run.interruptions && run.interruptions->low <= interruptions.p95 &&
         interruptions.p5 <= run.interruptions->high;
}

bool ScoredReliability::goodput_inside() const {
  return run.goodput && 1 - run.goodput->high <= goodput_lost.p95 &&
         goodput_lost.p5 <= 1 - run.goodput->low;
}

bool is_reliability_table(std::string_view bytes) {
  std::vector<CsvField> header;
  if (!CsvReader(bytes).next(header)) return false;
  return std::ranges::any_of(header, [](const CsvField& f) { return f.text == "goodput_or_ettr"; });
}

Expected<ReliabilityScores> score_reliability(std::string_view file_name, std::string_view bytes,
                                              const Catalog& catalog, int replications) {
  auto csv = NamedCsv::open(file_name, bytes, kReliabilityColumns);
  if (!csv) return tl::unexpected(std::move(csv.error()));
  ReliabilityScores scores;
  while (csv->next(scores.counts)) {
    ReliabilityRun run;
    const std::string reason = read_row(*csv, run);
    if (!reason.empty()) {
      csv->skip(scores.counts, reason);
      continue;
    }
    scores.runs.push_back(forecast_of(std::move(run), catalog, replications));
  }
  return scores;
}

}  // namespace reckon
