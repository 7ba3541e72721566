#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "planner/question.h"
#include "sim/base/unit_text.h"
#include "sim/scenario/resolve/draft.h"
#include "sim/scenario/resolve/pricing.h"
#include "sim/scenario/yaml/reader.h"

// The `plan:` block, read into a question.
namespace reckon::planner {
namespace {

/// Beyond so many nodes in a row not every number is tried but so many an octave.
constexpr int kNodesInARow = 64;
/// All that the catalog knows.
constexpr const char* kAny = "any";
bool has_any(const std::vector<std::string>& names) {
  return std::ranges::find(names, kAny) != names.end();
}

/// Reads `plan:` into a question; collects what is wrong.
class Maker {
 public:
  Maker(Question& question, const Catalog& catalog) : q_(question), catalog_(catalog) {}
  Diagnostics problems;

  void make() {
    const Scenario& s = q_.file.scenario;
    if (s.trace)
      return error("trace", "only 'reckon simulate' and 'reckon check' answer a trace of jobs",
                   "give one workload: instead of trace:");
    if (s.arrivals)
      return error("arrivals", "only 'reckon simulate' and 'reckon check' answer a queue of jobs",
                   "give one workload: instead of arrivals:");
    if (!s.workload)
      return error("workload", "`reckon plan` plans one workload, and the scenario has none",
                   "plan each of several jobs by itself");
    if (s.cluster.pools.empty())
      return error("cluster", "the cluster has no pools of its own",
                   "`reckon plan` varies a pool: write one instead of a scale tier");
    const AutoscalerKind autoscaler = s.cluster.autoscaler;
    if (autoscaler == AutoscalerKind::slurm)
      return error("cluster.autoscaler", "`reckon plan` does not plan clusters of Slurm yet",
                   "compare plans by `reckon compare FILE --sweep ...`");
    if (autoscaler != AutoscalerKind::cluster_autoscaler)
      return error(
          "cluster.autoscaler",
          fmt::format("`reckon plan` varies pools of one machine, and {} chooses the machines",
                      called(autoscaler)),
          fmt::format("autoscaler: cluster_autoscaler, and compare its best plan with {} by "
                      "`reckon compare FILE --sweep cluster.autoscaler=cluster_autoscaler,{}`",
                      called(autoscaler), to_text(autoscaler)));
    if (s.cluster.cluster_autoscaler)
      return error(
          "cluster.cluster_autoscaler",
          "`reckon plan` varies pools of one machine, and an expander chooses among several",
          "leave cluster_autoscaler out");
    for (const PoolSpec& pool : s.cluster.pools)
      if (pool.provisioning != ProvisioningModel::standard)
        return error(
            "cluster.pools." + pool.name + ".provisioning",
            fmt::format("`reckon plan` does not buy nodes by {} yet", to_text(pool.provisioning)),
            "provisioning: standard, and compare by `reckon compare FILE --sweep "
            "cluster.pools." +
                pool.name + ".provisioning=standard," + std::string(to_text(pool.provisioning)) +
                "`");
    for (const PoolSpec& pool : s.cluster.pools)
      if (pool.role == Role::chief)
        return error("cluster.pools." + pool.name, "clusters with a chief are not planned yet",
                     "let the workers' pool hold it: leave the chief's pool out");
    static const PlanSpec kNone;
    const PlanSpec& spec = s.plan ? *s.plan : kNone;
    vary_ = &spec.vary;
    read_hardware(s);
    read_nodes(s);
    read_strategies(s);
    read_limits(spec);
    q_.quota = spec.quota;
    q_.max_nodes = spec.max_nodes;
    read_memory(spec.memory);
    read_zones();
    read_bounds(s);
    read_server_machines(s);
    read_checkpoints();
    read_mixes(s);
    q_.residency = spec.residency;
    q_.carbon_free = spec.carbon_free;
    q_.energy_joules = spec.energy_joules;
    q_.co2_grams = spec.co2_grams;
    check_residency();
    q_.objective = spec.objective.value_or(Objective::cost);
    if (q_.objective == Objective::cost_under_deadline && !q_.deadline)
      error("plan.objective", "cost_under_deadline needs a deadline", "deadline: 72h@95%");
  }

 private:
  void error(const std::string& path, std::string what, std::string hint = "") {
    problems.push_back(
        {Severity::error, q_.file.places.find(path), std::move(what), std::move(hint)});
  }
  const std::vector<std::string>* varied(const std::string& key) const {
    const auto found = vary_->find(key);
    return found == vary_->end() ? nullptr : &found->second;
  }

  /// Canonical name of an accelerator; a short one ("h100", "a100-80") is completed where all that
  /// it fits are meant.
  std::vector<std::string> accelerators_named(const std::string& written) {
    if (const Accelerator* a = catalog_.find_accelerator(written)) return {a->name};
    const auto plain = [](std::string_view text) {
      std::string out;
      for (const char c : text)
        if (c != '-' && c != '_') out += char(std::tolower(static_cast<unsigned char>(c)));
      return out;
    };
    std::vector<std::string> fitting, all;
    const std::size_t dash = written.find_last_of("-_");
    const std::string front = plain(written.substr(0, dash));
    const std::string back = dash == std::string::npos ? "" : plain(written.substr(dash + 1));
    for (const Accelerator& a : catalog_.accelerators) {
      all.push_back(a.name);
      const std::size_t first = a.name.find('-'), last = a.name.rfind('-');
      const bool family = plain(a.name.substr(0, first)) == front;
      const bool size = back.empty() || (last != first && plain(a.name.substr(last + 1)) == back);
      if (family && size) fitting.push_back(a.name);
    }
    if (fitting.empty())
      error("plan.vary.accelerator",
            fmt::format("unknown accelerator '{}'{}", written, did_you_mean(written, all)),
            fmt::format("known: {}", fmt::join(all, ", ")));
    return fitting;
  }

  void add_provider(const std::string& name) {
    if (const ProviderRules* found = catalog_.find_provider(name)) {
      q_.may.providers.push_back(found->id);
      return;
    }
    std::vector<std::string> names;
    for (const ProviderRules& p : catalog_.providers) names.push_back(p.id.name);
    error("plan.vary.provider",
          fmt::format("unknown provider '{}'{}", name, did_you_mean(name, names)),
          fmt::format("providers of the catalog: {}", fmt::join(names, ", ")));
  }

  bool autoscales(const ClusterSpec& cluster) const {
    const ServiceRules* service = planning::service_of(cluster, catalog_);
    return service != nullptr && service->scales != Scales::nothing;
  }
  std::string service_name(const ClusterSpec& cluster) const {
    const ServiceRules* service = planning::service_of(cluster, catalog_);
    return service == nullptr ? "" : service->id.name;
  }

  void read_hardware(const Scenario& s) {
    Freedom& may = q_.may;
    // "any" stands for what is not written: it never narrows the search.
    const PoolSpec& pool = worker_pool(s);
    const auto* machine = std::get_if<MachineByName>(&pool.machine);
    const bool any_machine = machine != nullptr && machine->name == kAny;
    const bool any_accelerator = pool.accelerator && pool.accelerator->type == kAny;
    const bool any_region = s.cluster.region == kAny;
    may.hardware = varied("provider") || varied("accelerator") || varied("machine") ||
                   varied("region") || any_machine || any_accelerator || any_region;
    may.providers = {s.cluster.provider};
    if (const auto* names = varied("provider")) {
      may.providers.clear();
      for (const ProviderRules& p : catalog_.providers)
        if (has_any(*names) && !p.owned) may.providers.push_back(p.id);
      if (!has_any(*names))
        for (const std::string& name : *names) add_provider(name);
    }
    if (const auto* names = varied("accelerator")) {
      for (const std::string& name : has_any(*names) ? std::vector<std::string>{} : *names)
        for (std::string& found : accelerators_named(name))
          if (std::ranges::find(may.accelerators, found) == may.accelerators.end())
            may.accelerators.push_back(std::move(found));
    } else if (const auto& own = pool.accelerator; own && !any_accelerator) {
      may.accelerators = {own->type};
      if (const Accelerator* a = catalog_.find_accelerator(own->type)) may.accelerators = {a->name};
    }
    if (const auto* names = varied("machine")) {
      if (!has_any(*names)) may.machines = *names;
    } else if (machine != nullptr && !any_machine && !any_accelerator && !varied("accelerator") &&
               !varied("provider")) {
      may.machines = {machine->name};
    }
    if (const auto* names = varied("region")) {
      if (!has_any(*names)) may.regions = *names;
    } else if (!varied("provider") && !s.cluster.region.empty() && !any_region)
      may.regions = {s.cluster.region};
    may.pricing = {worker_pool(s).pricing};
    if (const auto* names = varied("pricing")) {
      may.pricing.clear();
      for (const CapacityType c :
           {CapacityType::on_demand, CapacityType::spot, CapacityType::reserved})
        if (std::ranges::find(*names, to_text(c)) != names->end()) may.pricing.push_back(c);
    }
  }

  void read_memory(const std::string& text) {
    if (text.ends_with('%'))
      q_.memory_share = *parse_fraction(text);
    else if (!text.empty())
      q_.memory = *parse_bytes(text);
  }

  void read_zones() {
    const auto* names = varied("zone");
    if (!names) return;
    q_.may.zone = true;
    if (has_any(*names)) return;
    q_.may.zones = *names;
    std::vector<std::string> known;
    for (const Location& l : catalog_.locations)
      if (std::ranges::count(q_.may.providers, l.provider) > 0)
        known.insert(known.end(), l.zones.begin(), l.zones.end());
    std::ranges::sort(known);
    known.erase(std::unique(known.begin(), known.end()), known.end());
    for (const std::string& name : *names)
      if (!known.empty() && !std::ranges::binary_search(known, name))
        error("plan.vary.zone", fmt::format("unknown zone '{}'{}", name, did_you_mean(name, known)),
              fmt::format("zones of the catalog: {}", fmt::join(known, ", ")));
  }

  void read_bounds(const Scenario& s) {
    const auto* texts = varied("autoscaling");
    if (!texts) return;
    for (const std::string& text : *texts) {
      PoolBounds bounds;
      if (text != "fixed") {
        const std::size_t dots = text.find("..");
        bounds.text = text;
        bounds.least = *parse_fraction(std::string_view(text).substr(0, dots));
        bounds.most = dots == std::string::npos
                          ? bounds.least
                          : *parse_fraction(std::string_view(text).substr(dots + 2));
      }
      q_.may.bounds.push_back(std::move(bounds));
    }
    const bool scaled = std::ranges::any_of(q_.may.bounds, &PoolBounds::autoscaled);
    if (scaled && !autoscales(s.cluster))
      error("plan.vary.autoscaling",
            fmt::format("service {} does not autoscale node pools", service_name(s.cluster)),
            "a Kubernetes service: " + planning::autoscaling_services(catalog_));
  }

  bool has_servers(const Scenario& s) const {
    return q_.may.kinds.empty()
               ? s.workload->strategy.kind == StrategyKind::parameter_server
               : std::ranges::count(q_.may.kinds, StrategyKind::parameter_server) > 0;
  }

  void read_server_machines(const Scenario& s) {
    const auto* names = varied("parameter_server_machine");
    const bool counted = !q_.may.parameter_servers.empty() && q_.may.parameter_servers.back() > 0;
    if (colocates_servers(q_)) {
      if (names)
        error("plan.vary.parameter_server_machine",
              "colocated parameter servers have no machine of their own", "leave it out");
      return;
    }
    if (!names && counted && has_servers(s) && server_pool(s) == nullptr)
      error(
          "plan.vary.parameter_servers",
          "the parameter servers have no machine: the cluster has no pool for them",
          "plan: {vary: {parameter_server_machine: n1-highmem-8}}, or 0 servers, which run beside "
          "the workers");
    if (!names) return;
    const auto known = [&](const std::string& name) {
      return std::ranges::any_of(q_.may.providers, [&](const Provider& provider) {
        return catalog_.find_machine(provider, name) != nullptr;
      });
    };
    for (const std::string& name : *names)
      if (!known(name))
        error("plan.vary.parameter_server_machine", fmt::format("unknown machine '{}'", name),
              "reckon catalog list machines");
    if (!has_servers(s))
      error("plan.vary.parameter_server_machine", "no strategy with parameter servers may be taken",
            "plan: {vary: {strategy: [parameter_server], parameter_servers: 1..8}}");
    if (server_pool(s) == nullptr && q_.may.parameter_servers.empty())
      error("plan.vary.parameter_server_machine", "how many parameter servers is not said",
            "plan: {vary: {parameter_servers: 1..8}}");
    q_.may.server_machines = *names;
  }

  /// The numbers of "3", "1..8" or several of them.
  static std::vector<int> numbers(const std::vector<std::string>& texts) {
    std::vector<int> out;
    for (const std::string& text : texts) {
      const std::size_t dots = text.find("..");
      const std::int64_t low = *parse_integer(std::string_view(text).substr(0, dots));
      const std::int64_t high =
          dots == std::string::npos ? low : *parse_integer(std::string_view(text).substr(dots + 2));
      for (std::int64_t n = low; n <= high;) {
        out.push_back(int(n));
        std::int64_t stride = 1;
        while (n >= 2 * stride * kNodesInARow) stride *= 2;
        n = n < high ? std::min(high, n + stride) : high + 1;
      }
    }
    std::ranges::sort(out);
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  void read_nodes(const Scenario& s) {
    const NodesSpec& own = worker_pool(s).nodes;
    q_.may.nodes = {own.initial};
    if (const auto* texts = varied("nodes")) q_.may.nodes = numbers(*texts);
    if (q_.may.nodes.front() == 0)
      error("cluster.pools." + worker_pool(s).name + ".nodes", "a plan needs nodes to start with",
            "plan: {vary: {nodes: 1..8}}");
    if (const auto* texts = varied("parameter_servers")) q_.may.parameter_servers = numbers(*texts);
  }

  void read_strategies(const Scenario& s) {
    Freedom& may = q_.may;
    if (const auto* words = varied("strategy")) {
      const bool any = std::ranges::find(*words, "any") != words->end();
      for (const StrategyKind kind :
           {StrategyKind::single, StrategyKind::mirrored, StrategyKind::multi_worker_mirrored,
            StrategyKind::tpu, StrategyKind::sharded, StrategyKind::parameter_server,
            StrategyKind::model_parallel}) {
        const bool named = std::ranges::find(*words, to_text(kind)) != words->end();
        if (named || (any && kind != StrategyKind::parameter_server)) may.kinds.push_back(kind);
      }
    }
    may.precision = varied("precision") && !s.workload->precision;
    if (varied("layout")) {
      may.layouts = true;
      for (const StrategyKind kind : {StrategyKind::sharded, StrategyKind::model_parallel})
        if (std::ranges::find(may.kinds, kind) == may.kinds.end()) may.kinds.push_back(kind);
    }
    if (const auto* words = varied("recompute"))
      for (const auto& [mode, word] : {std::pair{Recompute::none, "none"},
                                       {Recompute::selective, "selective"},
                                       {Recompute::full, "full"}})
        if (std::ranges::find(*words, word) != words->end() ||
            std::ranges::find(*words, "any") != words->end())
          may.recompute.push_back(mode);
    read_batch(*s.workload);
  }

  /// What another batch does to learning [McCandlish et al. 2018, arXiv:1812.06162].
  static std::string learning_text(const WorkloadSpec& w) {
    const bool counted = w.train && w.train->unit == TrainLength::Unit::to_accuracy;
    return fmt::format(
        "Another batch wants another learning rate, and more samples to the same quality where it "
        "is "
        "above the critical batch: {}",
        counted ? "counted from published runs"
                : "not counted, the training's length is as written");
  }
  void read_batch(const WorkloadSpec& w) {
    Freedom& may = q_.may;
    const auto* texts = varied("global_batch");
    if (!texts) {
      may.batch_per_accelerator = w.batch_per_accelerator;
      may.global_batch = w.global_batch;
      q_.batch_rule =
          w.global_batch
              ? fmt::format(
                    "The global batch is held at {} samples; plan.vary.global_batch frees it",
                    format_count(double(*w.global_batch)))
              : fmt::format(
                    "Each accelerator takes {} sample{}, so that a step's grow with the "
                    "accelerators; workload.global_batch holds them. {}",
                    w.batch_per_accelerator.value_or(1),
                    w.batch_per_accelerator.value_or(1) == 1 ? "" : "s", learning_text(w));
      return;
    }
    if (w.global_batch)
      error("workload.global_batch", "the batch is given and varied",
            "write batch_per_accelerator: 1, which the planner then replaces");
    may.most_global_batch = numbers(*texts).back();
    q_.assumed.push_back(
        fmt::format("each accelerator gets the largest power of two of samples that fits, and a "
                    "step has at most {} of them",
                    may.most_global_batch));
    q_.batch_rule = fmt::format("The global batch is free up to {} samples. {}",
                                format_count(double(may.most_global_batch)), learning_text(w));
  }

  void read_checkpoints() {
    using Mode = CheckpointSpec::Mode;
    if (const auto* texts = varied("checkpoint_interval"))
      for (const std::string& text : *texts) {
        const bool timed = text != "none" && text != "optimal";
        q_.may.save_intervals.push_back({timed            ? Mode::interval
                                         : text == "none" ? Mode::none
                                                          : Mode::optimal,
                                         timed ? *parse_duration(text) : Seconds{}, text});
      }
    const auto* names = varied("checkpoint_storage");
    if (!names) return;
    std::vector<std::string> known;
    for (const Storage& s : catalog_.storages)
      if (std::ranges::count(q_.may.providers, s.provider) > 0) known.push_back(s.name);
    for (const std::string& name : *names) {
      const Storage* s = catalog_.find_storage(name);
      if (s != nullptr && std::ranges::count(known, s->name) > 0)
        q_.may.checkpoint_storages.push_back(s->name);
      else
        error("plan.vary.checkpoint_storage",
              fmt::format("unknown storage '{}'{}", name, did_you_mean(name, known)),
              fmt::format("known: {}", fmt::join(known, ", ")));
    }
  }

  /// A mix is written as pools beside the workers' own, of nodes with a name.
  void read_mixes(const Scenario& s) {
    const auto *bases = varied("base"), *fallbacks = varied("fallback");
    if (!bases && !fallbacks) return;
    const char* at = bases ? "plan.vary.base" : "plan.vary.fallback";
    if (std::ranges::count(q_.may.pricing, CapacityType::spot) == 0)
      error(at, "mixes are of spot nodes with others, and no spot nodes may be bought",
            "plan: {vary: {pricing: [spot, on_demand]}}");
    const PoolSpec& own = worker_pool(s);
    if (s.cluster.pools.size() > 1)
      error(at, "mixes beside other pools than the workers' are not planned yet",
            "leave base and fallback out");
    if (!q_.may.hardware && (own.tpu || !std::holds_alternative<MachineByName>(own.machine)))
      error(at, "mixes of TPU slices or machines of your own are not planned yet",
            "leave base and fallback out");
    if (fallbacks && !autoscales(s.cluster))
      error(
          "plan.vary.fallback",
          fmt::format(
              "service {} does not autoscale node pools, so no pool can be the fallback of another",
              service_name(s.cluster)),
          "a Kubernetes service: " + planning::autoscaling_services(catalog_));
    if (bases)
      for (const std::string& text : *bases) {
        const std::size_t space = text.find(' ');
        q_.may.bases.push_back({*parse_fraction(std::string_view(text).substr(0, space)),
                                text.substr(space + 1) == "reserved" ? CapacityType::reserved
                                                                     : CapacityType::on_demand});
      }
    if (!fallbacks) return;
    q_.may.fallbacks = *fallbacks;
    if (s.disruptions.shortage_off)
      q_.assumed.push_back(
          "there is always spot capacity, as `disruptions: {shortage: none}` says: on-demand nodes "
          "stand in only for spot nodes that are slow to come");
  }

  /// A jurisdiction that no region is under is a mistake: nothing would ever fit.
  void check_residency() {
    std::vector<std::string> known;
    for (const Region& region : q_.base.regions)
      known.insert(known.end(), region.jurisdictions.begin(), region.jurisdictions.end());
    std::ranges::sort(known);
    known.erase(std::unique(known.begin(), known.end()), known.end());
    for (const std::string& name : q_.residency)
      if (!std::ranges::binary_search(known, name))
        error("plan.residency", fmt::format("no region of the catalog is in '{}'", name),
              fmt::format("known: {}", fmt::join(known, ", ")));
  }

  std::optional<double> probability_of(const std::string& text) {
    const std::size_t at = text.find('@');
    if (at == std::string::npos) return std::nullopt;
    return *parse_fraction(text.substr(at + 1));
  }

  void read_limits(const PlanSpec& spec) {
    if (!spec.deadline.empty()) {
      const std::string value = spec.deadline.substr(0, spec.deadline.find('@'));
      const auto duration = parse_duration(value);
      const auto date = parse_utc_time(value);
      const auto& start = q_.file.scenario.start;
      if (date && !start)
        error("plan.deadline", "a deadline by date needs the scenario's start",
              "start: 2026-12-04T18:00:00Z");
      else
        q_.deadline = Limit{
            duration ? duration->count() : std::chrono::duration<double>(*date - *start).count(),
            probability_of(spec.deadline), spec.deadline};
    }
    if (!spec.budget.empty()) {
      const auto money = parse_money(spec.budget.substr(0, spec.budget.find('@')));
      const auto usd = planning::to_usd_rate(*money, q_.file.scenario.prices);
      if (!usd)
        error("plan.budget", usd.error(), "prices: {currency: EUR, usd_rate: 0.92}");
      else
        q_.budget = Limit{usd->v, probability_of(spec.budget), spec.budget};
    }
  }

  Question& q_;
  const Catalog& catalog_;
  const std::map<std::string, std::vector<std::string>>* vary_ = nullptr;
};

}  // namespace

Expected<Question> make_question(Base base, const Catalog& catalog) {
  Question question;
  auto file = read(base);
  if (!file) return tl::unexpected(std::move(file.error()));
  question.base = std::move(base);
  question.file = std::move(*file);
  Maker maker(question, catalog);
  maker.make();
  if (!maker.problems.empty()) return tl::unexpected(std::move(maker.problems));
  return question;
}

}  // namespace reckon::planner
