#include "planner/controls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "planner/space/site.h"
#include "planner/variants.h"
#include "sim/base/parallel.h"
#include "sim/base/unit_text.h"
#include "sim/base/words.h"

namespace reckon::planner {
namespace {

/// Beside the scenario's own number: each one up to it, and quarters of it up to four times.
constexpr int kNodesInARow = 8, kTimesAsMany = 4, kPartsOfIt = 4;
/// The fastest layouts are enough to choose from by hand.
constexpr std::size_t kLayoutsShown = 20;
constexpr std::array kPricings{CapacityType::on_demand, CapacityType::spot, CapacityType::reserved};

std::vector<int> numbers_of_nodes(int now) {
  std::vector<int> out;
  for (int n = 1; n <= std::max(kNodesInARow, kTimesAsMany); ++n) out.push_back(n);
  for (int part = 1; part <= kTimesAsMany * kPartsOfIt; ++part)
    out.push_back(std::max(1, now * part / kPartsOfIt));
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::string node_text(const Hardware& h) {
  if (!h.slice.empty()) return h.slice;
  if (h.accelerator.empty()) return h.machine;
  return fmt::format("{} ({} {})", h.machine, h.per_node, h.accelerator);
}

class Maker {
 public:
  Maker(const Question& question, const Catalog& catalog, const NetworkModel& network, int threads)
      : q_(question),
        catalog_(catalog),
        network_(network),
        threads_(threads),
        variants_(question, catalog, network),
        now_(variants_.nodes()),
        own_(variants_.own()) {}

  Controls make() {
    Controls out;
    out.scenario = scenario().name;
    // What scales the pool chooses its machines and how they are bought.
    if (!q_.may.as_scaled) add(out, machines());
    if (!q_.may.as_scaled) add(out, regions());
    add(out, nodes());
    if (!q_.may.as_scaled) add(out, ways_to_buy());
    add(out, layouts());
    add(out, batch());
    add(out, checkpoint());
    add(out, limit("deadline", "Deadline", q_.deadline));
    add(out, limit("budget", "Budget", q_.budget));
    out.search = search_words(out);
    return out;
  }

 private:
  const Scenario& scenario() const { return q_.file.scenario; }
  const StrategySpec& strategy() const { return scenario().workload->strategy; }
  const ClusterSpec& cluster() const { return scenario().cluster; }
  static void add(Controls& out, Control control) {
    if (!control.options.empty() || !control.key.empty()) out.all.push_back(std::move(control));
  }

  bool is_own(const Hardware& h) const {
    const Machine* a = catalog_.find_machine(own_.provider, own_.machine);
    const Machine* b = catalog_.find_machine(h.provider, h.machine);
    return h.provider == own_.provider && (a == b && (a != nullptr || h.machine == own_.machine)) &&
           h.accelerator == own_.accelerator && h.per_node == own_.per_node &&
           h.slice == own_.slice;
  }
  std::string text_with_provider(const Hardware& h) const {
    return h.provider == cluster().provider
               ? node_text(h)
               : fmt::format("{}, {}", node_text(h), to_text(h.provider));
  }

  Control machines() const {
    Control control{.name = "machine", .label = "Machine", .value = node_text(own_)};
    std::vector<Hardware> kinds = hardware_for(variants_.with_hardware(false), catalog_).kinds;
    const bool listed = std::ranges::any_of(kinds, [&](const Hardware& h) { return is_own(h); });
    control.options.resize(kinds.size());
    parallel_for(kinds.size(), threads_, [&](std::size_t k) {
      if (!is_own(kinds[k])) control.options[k] = variants_.on(kinds[k], now_);
      control.options[k].text = is_own(kinds[k]) ? control.value : text_with_provider(kinds[k]);
      control.options[k].group = kinds[k].accelerator;
    });
    if (!listed)
      control.options.insert(control.options.begin(),
                             ControlOption{.text = control.value, .group = own_.accelerator});
    std::ranges::stable_sort(control.options, {}, &ControlOption::group);
    return control;
  }

  Control regions() const {
    Control control{.name = "region", .label = "Region", .value = cluster().region};
    for (const Hardware& h : hardware_for(variants_.with_hardware(true), catalog_).kinds) {
      if (!is_own(h)) continue;
      for (const std::string& region : h.regions) {
        ControlOption option{.text = region};
        if (region != cluster().region) {
          option.set.push_back(to_text(SetRegion{region}));
          if (!cluster().zone.empty()) option.set.push_back(to_text(SetZone{}));
        }
        control.options.push_back(std::move(option));
      }
    }
    if (std::ranges::count(control.options, control.value, &ControlOption::text) == 0)
      control.options.insert(control.options.begin(), ControlOption{.text = control.value});
    return control;
  }

  Control nodes() const {
    Control control{.name = "nodes",
                    .label = spares_now(scenario()) > 0 ? "Nodes without spares" : "Nodes",
                    .value = std::to_string(now_)};
    control.ascending = true;
    if (!own_.slice.empty()) return control;  // a job has one slice
    std::vector<int> numbers = q_.may.nodes.size() > 1 ? q_.may.nodes : numbers_of_nodes(now_);
    if (std::ranges::count(numbers, now_) == 0) numbers.push_back(now_);
    std::ranges::sort(numbers);
    control.options.resize(numbers.size());
    parallel_for(numbers.size(), threads_, [&](std::size_t k) {
      if (numbers[k] != now_) control.options[k] = variants_.on(own_, numbers[k]);
      control.options[k].text = std::to_string(numbers[k]);
    });
    return control;
  }

  Control ways_to_buy() const {
    const PoolSpec& pool = worker_pool(scenario());
    Control control{
        .name = "pricing", .label = "How bought", .value = std::string(to_text(pool.pricing))};
    for (const CapacityType type : kPricings) {
      ControlOption option{.text = std::string(to_text(type))};
      if (type != pool.pricing) {
        // What nobody sells so, or no reservation covers, is no choice.
        const Change change = SetCapacityType{pool.name, type};
        const auto plan = plan_with(variants_.as_it_is(), std::span(&change, 1), catalog_);
        if (!plan) continue;
        const auto named = std::ranges::find(plan->pools, pool.name, &PlannedPool::name);
        if (named == plan->pools.end() || !named->price.known) continue;
        option.set.push_back(to_text(change));
      }
      control.options.push_back(std::move(option));
    }
    return control;
  }

  /// All kinds of strategy, all degrees where a global batch is said, all recomputation.
  Control layouts() const {
    Control control{.name = "layout", .label = "Layout"};
    Question question = variants_.only_own();
    for (const auto& word : words_of(StrategyKind{}))
      if (!traits_of(word.value).servers || word.value == strategy().kind)
        question.may.kinds.push_back(word.value);
    question.may.layouts = scenario().workload->global_batch.has_value();
    question.may.recompute = {Recompute::none, Recompute::selective, Recompute::full};
    Site site = make_site(question, own_, catalog_, network_);
    std::ranges::stable_sort(site.splits, {}, &Split::step_seconds);
    const Site as_is = make_site(variants_.only_own(), own_, catalog_, network_);
    const Split* now = most_alike(as_is.splits, strategy());
    control.value = now != nullptr ? text_of(*now) : std::string(to_text(strategy().kind));
    control.options.push_back({.text = control.value});
    for (const Split& split : site.splits) {
      if (control.options.size() > kLayoutsShown) break;
      ControlOption option{.text = text_of(split)};
      if (std::ranges::count(control.options, option.text, &ControlOption::text) > 0) continue;
      option.set = variants_.words_for(question, own_, split);
      control.options.push_back(std::move(option));
    }
    return control;
  }
  static std::string text_of(const Split& split) {
    return fmt::format("{} ({} a step)", strategy_text(split),
                       format_duration(Seconds{split.step_seconds}));
  }

  Control batch() const {
    const WorkloadSpec& w = *scenario().workload;
    const bool global = w.global_batch.has_value();
    Control control{
        .name = "batch",
        .label = global ? "Global batch" : "Batch of an accelerator",
        .value = std::to_string(w.global_batch.value_or(w.batch_per_accelerator.value_or(1)))};
    control.key = global ? "workload.global_batch" : "workload.batch_per_accelerator";
    control.whole_number = true;
    control.of_question = q_.may.most_global_batch == 0;
    return control;
  }

  Control checkpoint() const {
    using Mode = CheckpointSpec::Mode;
    Control control{.name = "checkpoint", .label = "Checkpoint interval"};
    control.key = "workload.checkpoint.interval";
    const CheckpointSpec said = scenario().workload->checkpoint.value_or(CheckpointSpec{});
    const std::string word = to_text(SetCheckpointInterval{said.mode, said.interval});  // KEY=VALUE
    control.value = word.substr(word.find('=') + 1);
    control.suggestions = {"optimal", "none"};
    for (const SaveInterval& interval : q_.may.save_intervals)
      if (interval.mode == Mode::interval) control.suggestions.push_back(interval.text);
    control.of_question = q_.may.save_intervals.size() < 2;
    return control;
  }

  static Control limit(std::string name, std::string label, const std::optional<Limit>& said) {
    Control control{.name = name, .label = std::move(label), .value = said ? said->text : ""};
    control.key = "plan." + name;
    control.of_question = true;
    control.limit = said;
    return control;
  }

  /// A file that says what may vary is its own question.
  std::vector<std::string> search_words(const Controls& made) const {
    const SearchedKeys keys = searched_keys(q_);
    if (!keys.searched.empty()) return {};
    std::vector<std::string> words;
    for (const Control& control : made.all) {
      if (control.name != "nodes" && control.name != "pricing") continue;
      std::vector<std::string> values;
      for (const ControlOption& option : control.options)
        if (option.why_not.empty()) values.push_back(option.text);
      words.push_back(fmt::format("plan.vary.{}=[{}]", control.name, fmt::join(values, ", ")));
    }
    if (q_.may.as_scaled) return words;
    words.emplace_back("plan.vary.machine=any");
    words.emplace_back("plan.vary.accelerator=any");
    words.push_back(fmt::format("plan.vary.region={}", cluster().region));
    return words;
  }

  const Question& q_;
  const Catalog& catalog_;
  const NetworkModel& network_;
  const int threads_;
  const Variants variants_;
  const int now_;
  const Hardware& own_;
};

}  // namespace

Expected<Controls> controls_of(const Base& base, const Catalog& catalog,
                               const NetworkModel& network, int threads) {
  auto question = make_question(base, catalog);
  if (!question) {
    // A pool that starts empty says how many it may have.
    const auto file = read(base);
    if (!file || !file->scenario.workload || file->scenario.cluster.pools.empty() ||
        worker_pool(file->scenario).nodes.initial > 0)
      return tl::unexpected(std::move(question.error()));
    Base full = base;
    full.overrides.push_back(fmt::format("plan.vary.nodes={}", nodes_now(file->scenario)));
    question = make_question(std::move(full), catalog);
    if (!question) return tl::unexpected(std::move(question.error()));
  }
  return Maker(*question, catalog, network, threads).make();
}

}  // namespace reckon::planner
