#include <fmt/format.h>

#include "sim/scenario/yaml/fields.h"
#include "sim/scenario/yaml/kueue/checks.h"
#include "sim/scenario/yaml/kueue/flavors.h"

// `cluster.scheduler.kueue:`, by the names of kueue.x-k8s.io/v1beta2.
namespace reckon {
namespace {

const Fields<KueueBorrowWithinSpec>& borrow_within_fields() {
  using B = KueueBorrowWithinSpec;
  static const Fields<B> table{
      word_field("policy", &B::policy,
                 "Whether jobs of other queues are evicted for a job that borrows; default: Never.",
                 "LowerPriority"),
      number_field("maxPriorityThreshold", &B::max_priority_threshold,
                   Form{Form::Kind::whole, -1e9, 1e9},
                   "Only jobs up to this priority; default: all below the job's.", "100"),
  };
  return table;
}

const Fields<KueuePreemptionSpec>& preemption_fields() {
  using P = KueuePreemptionSpec;
  static const Fields<P> table{
      word_field("reclaimWithinCohort", &P::reclaim_within_cohort,
                 "Whom of other queues that borrow a job evicts; default: Never.", "Any"),
      word_field("withinClusterQueue", &P::within_cluster_queue,
                 "Whom of its own queue; default: Never.", "LowerPriority"),
      block_field<borrow_within_fields>("borrowWithinCohort", &P::borrow_within_cohort, {},
                                        "Whom of other queues a job evicts that borrows.",
                                        "{policy: LowerPriority, maxPriorityThreshold: 100}"),
  };
  return table;
}

const Fields<KueueFungibilitySpec>& fungibility_fields() {
  using F = KueueFungibilitySpec;
  static const Fields<F> table{
      word_field("whenCanBorrow", &F::when_can_borrow,
                 "Where a flavor suffices with borrowing; default: MayStopSearch.",
                 "TryNextFlavor"),
      word_field("whenCanPreempt", &F::when_can_preempt,
                 "Where it suffices with preemption; default: TryNextFlavor.", "MayStopSearch"),
  };
  return table;
}

const Fields<KueueWeightSpec>& weight_fields() {
  static const Fields<KueueWeightSpec> table{number_field("weight", &KueueWeightSpec::weight,
                                                          above_zero(Form::Kind::number, 1e6),
                                                          "Of what it borrows; default: 1.", "2")};
  return table;
}

template <class Owner>
void read_flavors(Reader& reader, const YamlNode& node, Owner& queue) {
  queue.flavors = read_flavor_list(reader, node);
}

const Fields<ClusterQueueSpec>& cluster_queue_fields() {
  using Q = ClusterQueueSpec;
  Form flavors{Form::Kind::list}, strategy{Form::Kind::block};
  flavors.fields = &flavor_infos;
  strategy.fields = &check_rules_infos;
  static const Fields<Q> table{
      required(name_field("name", &Q::name, "Jobs name it as their queue.", "team-a")),
      text_field("cohortName", &Q::cohort, "Queues that lend to each other; default: none.", "all"),
      word_field("queueingStrategy", &Q::strategy,
                 "Whether a job that does not fit blocks those behind it; default: "
                 "BestEffortFIFO, it does not.",
                 "StrictFIFO"),
      block_field<preemption_fields>("preemption", &Q::preemption, {}, "Whom its jobs evict.",
                                     "{reclaimWithinCohort: Any}"),
      block_field<fungibility_fields>("flavorFungibility", &Q::fungibility, {},
                                      "When the next flavor is tried.",
                                      "{whenCanBorrow: TryNextFlavor}"),
      block_field<weight_fields>("fairSharing", &Q::fair_sharing, {}, "Of policy fair sharing.",
                                 "{weight: 2}"),
      field<Q>(
          "admissionChecksStrategy", strategy,
          [](Reader& r, const YamlNode& n, Q& queue) { read_check_rules(r, n, queue); },
          "What its jobs wait for once they have quota.",
          "{admissionChecks: [{name: dws, onFlavors: [spot]}]}"),
      required(field<Q>("flavors", flavors, read_flavors<Q>, "Quotas, tried in this order.",
                        "[{name: a100, nominalQuota: 8}]")),
  };
  return table;
}

const Fields<KueueCohortSpec>& cohort_fields() {
  using C = KueueCohortSpec;
  Form flavors{Form::Kind::list};
  flavors.fields = &flavor_infos;
  static const Fields<C> table{
      required(name_field("name", &C::name, "Queues name it as their cohort.", "vision")),
      text_field("parentName", &C::parent, "The cohort above it; default: none.", "all"),
      field<C>("flavors", flavors, read_flavors<C>,
               "GPUs that are the cohort's own; default: what its queues lend.",
               "[{name: a100, nominalQuota: 8}]"),
      block_field<weight_fields>("fairSharing", &C::fair_sharing, {}, "Of policy fair sharing.",
                                 "{weight: 2}"),
  };
  return table;
}

void read_cohorts(Reader& reader, const YamlNode& node, KueueSpec& kueue) {
  std::set<std::string> names;
  reader.each(node, [&](const YamlNode& item) {
    KueueCohortSpec cohort;
    if (!read_fields(reader, item, cohort_fields(), cohort)) return;
    if (!cohort.name.empty() && !names.insert(cohort.name).second)
      reader.error(item.find("name")->value.at,
                   fmt::format("a second cohort is named '{}'", cohort.name), "names are unique");
    kueue.cohorts.push_back(std::move(cohort));
  });
}

void read_cluster_queues(Reader& reader, const YamlNode& node, KueueSpec& kueue) {
  std::set<std::string> names;
  reader.each(node, [&](const YamlNode& item) {
    ClusterQueueSpec queue;
    if (!read_fields(reader, item, cluster_queue_fields(), queue)) return;
    if (!queue.name.empty() && !names.insert(queue.name).second)
      reader.error(item.find("name")->value.at,
                   fmt::format("a second ClusterQueue is named '{}'", queue.name),
                   "names are unique");
    kueue.cluster_queues.push_back(std::move(queue));
  });
  if (node.kind == YamlNode::Kind::list && node.entries.empty())
    reader.error("there is no ClusterQueue");
}

struct Strategies {
  std::vector<ShareStrategy> list;
};

const Fields<Strategies>& fair_sharing_fields() {
  static const Fields<Strategies> table{required(field<Strategies>(
      "preemptionStrategies", Form{.kind = Form::Kind::list, .item = Form::Kind::text},
      [](Reader& r, const YamlNode& n, Strategies& s) {
        const auto words = texts_of<ShareStrategy>();
        r.each(n, [&](const YamlNode& item) {
          if (const auto i = r.word(item, words))
            s.list.push_back(*from_text<ShareStrategy>(words[*i]));
        });
        const bool known =
            s.list.size() == 1 || (s.list.size() == 2 && s.list[0] == ShareStrategy::final_share &&
                                   s.list[1] == ShareStrategy::initial_share);
        if (!known && s.list.size() == n.entries.size())
          r.error("Kueue does not support this list of strategies",
                  "[LessThanOrEqualToFinalShare], [LessThanInitialShare], or both in this order");
      },
      "Which evictions are fair, tried one after the other.",
      "[LessThanOrEqualToFinalShare, LessThanInitialShare]"))};
  return table;
}

void read_fair_sharing(Reader& reader, const YamlNode& node, KueueSpec& kueue) {
  Strategies strategies;
  if (read_fields(reader, node, fair_sharing_fields(), strategies))
    kueue.fair_sharing = std::move(strategies.list);
}

const Fields<KueueLevelSpec>& level_fields() {
  using L = KueueLevelSpec;
  static const Fields<L> table{
      required(text_field("nodeLabel", &L::node_label, "Jobs name it as the level they ask for.",
                          "cloud.provider.com/topology-rack")),
      number_field("nodes", &L::nodes, whole(1, kMostQuota),
                   "Nodes of a pool that a domain has, one behind the other; default: 1.", "4"),
  };
  return table;
}

void read_levels(Reader& reader, const YamlNode& node, KueueTopologySpec& topology) {
  reader.each(node, [&](const YamlNode& item) {
    KueueLevelSpec level;
    if (!read_fields(reader, item, level_fields(), level)) return;
    if (!topology.levels.empty() && level.nodes > 0 &&
        (level.nodes >= topology.levels.back().nodes ||
         topology.levels.back().nodes % level.nodes != 0))
      reader.error(item.at,
                   fmt::format("a domain of '{}' has {} nodes, and one of the level above {}",
                               level.node_label, level.nodes, topology.levels.back().nodes),
                   "the widest level first, each a multiple of the next");
    topology.levels.push_back(std::move(level));
  });
}

const Fields<KueueTopologySpec>& topology_fields() {
  using T = KueueTopologySpec;
  Form levels{Form::Kind::list};
  levels.fields = &infos_of<level_fields>;
  static const Fields<T> table{
      required(name_field("name", &T::name, "Flavors name it.", "default")),
      required(field<T>("levels", levels, read_levels, "The widest first.",
                        "[{nodeLabel: cloud.provider.com/topology-rack, nodes: 4}, {nodeLabel: "
                        "kubernetes.io/hostname}]")),
  };
  return table;
}

const Fields<KueueResourceFlavorSpec>& resource_flavor_fields() {
  using F = KueueResourceFlavorSpec;
  static const Fields<F> table{
      required(text_field("name", &F::name, "The pool whose nodes it is.", "a100")),
      required(
          text_field("topologyName", &F::topology, "Which domains its nodes are in.", "default")),
  };
  return table;
}

template <class Item>
void read_named(Reader& reader, const YamlNode& node, const Fields<Item>& fields,
                std::string_view what, std::vector<Item>& out) {
  std::set<std::string> names;
  reader.each(node, [&](const YamlNode& item) {
    Item read;
    if (!read_fields(reader, item, fields, read)) return;
    if (!read.name.empty() && !names.insert(read.name).second)
      reader.error(item.find("name")->value.at,
                   fmt::format("a second {} is named '{}'", what, read.name), "names are unique");
    out.push_back(std::move(read));
  });
}

}  // namespace

const Fields<KueueSpec>& kueue_fields() {
  using K = KueueSpec;
  Form queues{Form::Kind::list}, fair{Form::Kind::block}, cohorts{Form::Kind::list},
      topologies{Form::Kind::list}, flavors{Form::Kind::list}, checks{Form::Kind::list};
  checks.fields = &infos_of<admission_check_fields>;
  topologies.fields = &infos_of<topology_fields>;
  flavors.fields = &infos_of<resource_flavor_fields>;
  queues.fields = &infos_of<cluster_queue_fields>;
  cohorts.fields = &infos_of<cohort_fields>;
  fair.fields = &infos_of<fair_sharing_fields>;
  static const Fields<K> table{
      field<K>("fairSharing", fair, read_fair_sharing,
               "Of Kueue's Configuration; default: classic preemption.",
               "{preemptionStrategies: [LessThanInitialShare]}"),
      number_field("checkpoint", &K::checkpoint, duration_from_zero(),
                   "An evicted job goes on from the last multiple of it; 0s: from where it was. "
                   "Default: it starts again.",
                   "30min"),
      required(field<K>("clusterQueues", queues, read_cluster_queues,
                        "Queues and their quotas of GPUs.",
                        "[{name: team-a, flavors: [{name: a100, nominalQuota: 8}]}]")),
      field<K>("cohorts", cohorts, read_cohorts,
               "Cohorts below others or with quotas of their own; default: flat ones.",
               "[{name: vision, parentName: all}]"),
      field<K>(
          "admissionChecks", checks,
          [](Reader& reader, const YamlNode& node, K& kueue) {
            read_named(reader, node, admission_check_fields(), "AdmissionCheck",
                       kueue.admission_checks);
          },
          "AdmissionChecks, and how long they take; default: none.",
          "[{name: dws, ready_after: 20min}]"),
      field<K>(
          "topologies", topologies,
          [](Reader& reader, const YamlNode& node, K& kueue) {
            read_named(reader, node, topology_fields(), "Topology", kueue.topologies);
          },
          "Of topology-aware scheduling; default: none.",
          "[{name: default, levels: [{nodeLabel: rack, nodes: 4}, {nodeLabel: "
          "kubernetes.io/hostname}]}]"),
      field<K>(
          "resourceFlavors", flavors,
          [](Reader& reader, const YamlNode& node, K& kueue) {
            read_named(reader, node, resource_flavor_fields(), "ResourceFlavor",
                       kueue.resource_flavors);
          },
          "Flavors that have a topology; the others need not be here.",
          "[{name: a100, topologyName: default}]"),
  };
  return table;
}

}  // namespace reckon
