#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "sim/base/unit_text.h"
#include "sim/scenario/mig_profiles.h"
#include "sim/scenario/yaml/fields.h"

namespace reckon {
namespace {

const Fields<MachineInline>& machine_fields() {
  using M = MachineInline;
  static const Fields<M> table{
      required(
          number_field("vcpu", &M::vcpus, whole(1, 1e4), "Virtual CPUs (hardware threads).", "64")),
      required(number_field("memory", &M::memory, Form{Form::Kind::bytes, 1, 1e15}, "Host memory.",
                            "512GiB")),
      required(number_field("network", &M::network, Form{Form::Kind::bandwidth, 1, 1e13},
                            "Bandwidth to other nodes, one direction.", "100Gbps")),
      field<M>(
          "price", Form{Form::Kind::price},
          [](Reader& r, const YamlNode& n, M& m) { m.price = r.price(n); }, "Of the whole machine.",
          "4.10 USD/h"),
      field<M>("purchase", Form{Form::Kind::text}, read_purchase,
               "Paid for the machine; needs amortised_over.", "250000 USD"),
      text_field("network_link", &M::network_link,
                 "The catalog's name of the kind of network: ethernet, infiniband, efa2 ...; "
                 "default: ethernet.",
                 "infiniband"),
      text_field("peer_link", &M::peer_link,
                 "The catalog's name of what joins the accelerators of the machine: pcie, nvlink, "
                 "nvswitch ...; default: the accelerator's own.",
                 "nvlink"),
      number_field("amortised_over", &M::amortised_over, above_zero(Form::Kind::duration, 1e9),
                   "Time in which the purchase is written off.", "3y"),
      field<M>("power", Form{Form::Kind::text}, read_power,
               "Drawn by the machine while it is on; needs tariff.", "10kW"),
      field<M>("tariff", Form{Form::Kind::text}, read_tariff, "Price of electricity.",
               "0.15 USD/kWh"),
  };
  return table;
}

const Fields<SharedGpuSpec>& shared_gpu_fields() {
  using S = SharedGpuSpec;
  static const Fields<S> table{
      required(text_field("resource", &S::resource,
                          "What jobs ask for, as the device plugin names it.",
                          "nvidia.com/mig-1g.10gb")),
      required(number_field("devices", &S::devices, whole(1, 64),
                            "Of each GPU: MIG instances, or replicas of time slicing.", "7")),
  };
  return table;
}

/// The seven compute slices of a GPU [NVIDIA, MIG User Guide, "Supported MIG Profiles"].
void check_shared_gpu(Reader& reader, const YamlNode& node, const SharedGpuSpec& shared) {
  constexpr int kSlices = 7;
  constexpr std::string_view kMig = "mig-";
  if (shared.resource == "nvidia.com/gpu" && node.has("resource"))
    reader.error(node.find("resource")->value.at, "nvidia.com/gpu are whole GPUs",
                 "example: nvidia.com/gpu.shared, as with renameByDefault: true");
  const auto at = shared.resource.find(kMig);
  if (at == std::string::npos || at + kMig.size() + 1 >= shared.resource.size()) return;
  const int each = shared.resource[at + kMig.size()] - '0';
  if (each < 1 || each > kSlices || shared.resource[at + kMig.size() + 1] != 'g') return;
  if (shared.devices > kSlices / each)
    reader.error(
        node.find("devices")->value.at,
        fmt::format("a GPU has {} slices, and so {} instance{} of {} at most", kSlices,
                    kSlices / each, kSlices / each == 1 ? "" : "s", shared.resource.substr(at)),
        fmt::format("devices: {}", kSlices / each));
}

void read_mig_devices(Reader& reader, const YamlNode& node, AcceleratorSpec& accelerator) {
  constexpr double kMostOfGpu = 64;
  reader.each_entry(node, [&](const std::string& key, const YamlNode& value) {
    if (const auto count = reader.number(value, whole(1, kMostOfGpu)))
      accelerator.mig_devices[key] = static_cast<int>(*count);
  });
}

/// What the GPUs are cut into must be possible [NVIDIA, MIG User Guide, "Supported MIG Profiles"].
void check_cut(Reader& reader, const YamlNode& node, const AcceleratorSpec& accelerator) {
  const auto* mig = node.find("mig-devices");
  if (mig == nullptr) return;
  if (node.has("shared"))
    reader.error(mig->key_at, "'mig-devices' cannot stand beside 'shared'",
                 "shared: all devices of a GPU are alike");
  if (const auto mistake = mig_mistake(accelerator.mig_devices, accelerator.type))
    reader.error(mig->key_at, fmt::format("a GPU cannot be cut so: {}", *mistake),
                 fmt::format("profiles: {}", fmt::join(mig_profile_names(accelerator.type), ", ")));
}

const Fields<AcceleratorSpec>& accelerator_fields() {
  static const Fields<AcceleratorSpec> table{
      required(
          text_field("type", &AcceleratorSpec::type, "Catalog or cloud name.", "P100-PCIE-16")),
      number_field("count", &AcceleratorSpec::count, whole(1, 1024),
                   "Accelerators of one node; default: 1.", "2"),
      block_field<shared_gpu_fields>("shared", &AcceleratorSpec::shared, check_shared_gpu,
                                     "Of jobs that share a cluster: each GPU is cut into devices.",
                                     "{resource: nvidia.com/mig-1g.10gb, devices: 7}"),
      field<AcceleratorSpec>(
          "mig-devices", Form{.kind = Form::Kind::map, .item = Form::Kind::whole}, read_mig_devices,
          "Of jobs that share a cluster: MIG instances of each GPU by profile, as mig-parted has "
          "them. Jobs ask for nvidia.com/mig-PROFILE.",
          "{1g.10gb: 2, 2g.20gb: 1, 3g.40gb: 1}"),
  };
  return table;
}

const Fields<TpuSpec>& tpu_fields() {
  static const Fields<TpuSpec> table{
      required(text_field("type", &TpuSpec::type, "Catalog name of the chip.", "TPU-v2")),
      required(text_field("slice", &TpuSpec::slice, "Slice as it is bought.", "v2-8")),
  };
  return table;
}

struct NodesKeys {
  std::optional<int> initial, min, max;
};
const Fields<NodesKeys>& nodes_fields() {
  static const Fields<NodesKeys> table{
      number_field("initial", &NodesKeys::initial, whole(0, kMostNodes),
                   "Nodes at the start; default: min.", "3"),
      number_field("min", &NodesKeys::min, whole(0, kMostNodes),
                   "The autoscaler keeps as many; default: initial.", "0"),
      number_field("max", &NodesKeys::max, whole(1, kMostNodes),
                   "The autoscaler makes no more; default: initial.", "5"),
  };
  return table;
}

void check_nodes(Reader& reader, const YamlNode& node, const NodesSpec& nodes) {
  // Each rule names a value that was written; a value that failed its own check is not judged
  // again.
  if (nodes.min > nodes.max && node.has("min"))
    reader.error(node.find("min")->value.at,
                 fmt::format("min {} is above max {}", nodes.min, nodes.max),
                 "example: nodes: {initial: 3, min: 0, max: 5}");
  else if (node.has("initial") && (nodes.initial < nodes.min || nodes.initial > nodes.max))
    reader.error(node.find("initial")->value.at,
                 fmt::format("initial {} is outside {}..{}", nodes.initial, nodes.min, nodes.max),
                 "initial must lie between min and max");
}

void read_nodes(Reader& reader, const YamlNode& node, PoolSpec& pool) {
  if (node.kind != YamlNode::Kind::map) {
    if (const auto n = reader.number(node, whole(1, kMostNodes)))
      pool.nodes = {static_cast<int>(*n), static_cast<int>(*n), static_cast<int>(*n)};
    return;
  }
  NodesKeys keys;
  const std::size_t before = reader.errors();
  if (!read_fields(reader, node, nodes_fields(), keys) || reader.errors() != before) return;
  if (!keys.initial && !keys.min) {
    reader.error(fmt::format("{} needs 'initial' or 'min'", reader.subject()));
    return;
  }
  pool.nodes.initial = keys.initial.value_or(keys.min.value_or(0));
  pool.nodes.min = keys.min.value_or(pool.nodes.initial);
  pool.nodes.max = keys.max.value_or(std::max(pool.nodes.initial, pool.nodes.min));
  if (pool.nodes.max < 1) {
    reader.error(fmt::format("{} never has a node", reader.subject()));
    return;
  }
  check_nodes(reader, node, pool.nodes);
}

/// Rules between the keys of a pool; `clean`: each was read without an error.
void check_pool(Reader& reader, const YamlNode& node, const PoolSpec& pool, bool clean) {
  if (!node.has("machine") && !node.has("tpu") && !reader.misspelt("machine") &&
      !reader.misspelt("tpu"))
    reader.error(fmt::format("{} needs 'machine' or 'tpu'", reader.subject()),
                 "example: machine: n1-standard-16, or tpu: {type: TPU-v2, slice: v2-8}");
  for (const std::string_view key : {"machine", "accelerator"})
    if (const auto* entry = node.find(key); entry != nullptr && node.has("tpu"))
      reader.error(entry->key_at, fmt::format("'{}' cannot stand beside 'tpu'", key),
                   "a TPU slice comes with its hosts");
  if (!clean) return;
  const auto* autoscaling = node.find("autoscaling");
  const auto* nodes = node.find("nodes");
  const bool range = pool.nodes.min != pool.nodes.max;
  if (pool.autoscaling && !range)
    reader.error(autoscaling->value.at, "autoscaling needs a range of nodes",
                 "example: nodes: {initial: 3, min: 0, max: 5}");
  if (!pool.autoscaling && range)
    reader.error(nodes->key_at,
                 fmt::format("{}..{} nodes without autoscaling", pool.nodes.min, pool.nodes.max),
                 "add autoscaling: true, or give one number of nodes");
}

void read_pools(Reader& reader, const YamlNode& node, ClusterSpec& cluster) {
  if (node.kind == YamlNode::Kind::list && node.entries.empty())
    reader.error("cluster.pools is empty");
  std::set<std::string> names;
  std::int64_t all_nodes = 0;
  reader.each(node, [&](const YamlNode& item) {
    PoolSpec pool;
    const std::size_t before = reader.errors();
    if (!read_fields(reader, item, pool_fields(), pool)) return;
    check_pool(reader, item, pool, reader.errors() == before);
    if (!pool.name.empty() && !names.insert(pool.name).second)
      reader.error(item.find("name")->value.at,
                   fmt::format("a second pool is named '{}'", pool.name),
                   "pool names must be unique: results and --set use them");
    all_nodes += pool.nodes.max;
    cluster.pools.push_back(std::move(pool));
  });
  if (double(all_nodes) > kMostNodesOfCluster)
    reader.error(fmt::format("the pools have {} nodes together, but must have at most {}",
                             format_count(double(all_nodes)), format_count(kMostNodesOfCluster)),
                 "fewer nodes: nodes.max counts where a pool scales");
}

}  // namespace

const Fields<PoolSpec>& pool_fields() {
  using P = PoolSpec;
  const auto machine = [](Reader& r, const YamlNode& n, P& pool) {
    if (n.kind == YamlNode::Kind::map) {
      MachineInline value;
      const std::size_t before = r.errors();
      if (!read_fields(r, n, machine_fields(), value)) return;
      if (r.errors() == before) check_machine_costs(r, n, value);
      pool.machine = value;
    } else if (auto name = r.text(n)) {
      pool.machine = MachineByName{std::move(*name)};
    }
  };
  Form machine_form = choice("a catalog name, or a map");
  machine_form.item = Form::Kind::text;
  machine_form.fields = &infos_of<machine_fields>;
  Form nodes_form = choice("a number, or a map");
  nodes_form.item = Form::Kind::whole;
  nodes_form.low = 1, nodes_form.high = kMostNodes;
  nodes_form.fields = &infos_of<nodes_fields>;
  static const Fields<P> table{
      required(name_field("name", &P::name, "Unique name.", "p100")),
      word_field("role", &P::role,
                 "What its nodes do; may be left out where only one assignment is possible.",
                 "worker"),
      field<P>("machine", machine_form, machine, "Catalog name, or the machine itself.",
               "n1-standard-16"),
      block_field<accelerator_fields>("accelerator", &P::accelerator, check_cut,
                                      "GPUs of one node.", "{type: P100-PCIE-16, count: 2}"),
      block_field<tpu_fields>("tpu", &P::tpu, {}, "A TPU slice: one node is the whole slice.",
                              "{type: TPU-v2, slice: v2-8}"),
      field<P>("nodes", nodes_form, read_nodes, "How many; default: 1.",
               "{initial: 3, min: 0, max: 5}"),
      boolean_field("autoscaling", &P::autoscaling,
                    "The cluster's autoscaler keeps the pool between min and max.", "true"),
      word_field("pricing", &P::pricing,
                 "What is paid, and whether the provider may take nodes back.", "spot"),
      renamed("stands_in_for",
              text_field("fallback_for", &P::fallback_for,
                         "The pool whose nodes this one's replace while they cannot be had, until "
                         "the job starts again.",
                         "spot")),
      number_field("after", &P::after, duration_above_zero(),
                   "Of a fallback pool: how long the other's nodes are waited for; default: "
                   "the autoscaler's patience.",
                   "10min"),
      word_field("provisioning", &P::provisioning,
                 "Under cluster_autoscaler: how its nodes are obtained: flex_start, "
                 "flex_start_queued (all at once) or, of "
                 "ProvisioningRequests, best_effort_atomic; default: standard.",
                 "flex_start_queued"),
      number_field("max_run_duration", &P::max_run_duration, duration_above_zero(),
                   "Of flex-start: a node ends at that age; default: 7d.", "3d"),
      number_field("capacity_wait", &P::capacity_wait, duration_from_zero(),
                   "Of flex-start: time in its queue; default: the catalog's.", "2h"),
  };
  return table;
}

namespace {

const Fields<FabricSpec>& fabric_fields() {
  using F = FabricSpec;
  static const Fields<F> table{
      number_field("nics", &F::nics, whole(1, 64),
                   "Network cards of a node, which share its bandwidth; an accelerator uses the "
                   "nearest. Default: as many as accelerators with rails, else 1.",
                   "8"),
      boolean_field("rails", &F::rails,
                    "Card k of every node is on switch k: what an accelerator sends to another "
                    "rail goes through its own node first.",
                    "true"),
      number_field("nodes_per_leaf", &F::nodes_per_leaf, whole(1, kMostNodes),
                   "Nodes below one leaf switch (with rails: one switch a rail); default: all.",
                   "32"),
      number_field("oversubscription", &F::oversubscription, Form{Form::Kind::number, 1, 1000},
                   "Bandwidth of a leaf's nodes over that of its uplinks; needs nodes_per_leaf.",
                   "2"),
      boolean_field("in_network_reduction", &F::in_network_reduction,
                    "The switches add up gradients as they pass.", "true"),
  };
  return table;
}

void check_fabric(Reader& reader, const YamlNode& node, const FabricSpec& fabric) {
  if (const auto* ratio = node.find("oversubscription"); ratio != nullptr && !fabric.nodes_per_leaf)
    reader.error(ratio->key_at, "oversubscription needs nodes_per_leaf",
                 "without leaves no traffic crosses a spine\n"
                 "example: fabric: {nodes_per_leaf: 32, oversubscription: 2}");
}

}  // namespace

const Fields<ClusterSpec>& cluster_fields() {
  using C = ClusterSpec;
  Form pools{Form::Kind::list};
  pools.fields = &infos_of<pool_fields>;
  static const Fields<C> table{
      required(id_field(
          "provider", &C::provider,
          "Whose machines: a provider of the catalog (reckon catalog list providers).", "gcp")),
      id_field("service", &C::service,
               "Whose rules apply: a service of the provider (reckon catalog list services); "
               "default: its first; none: VMs that you run yourself.",
               "gke"),
      text_field("region", &C::region, "Prices and offers depend on it.", "us-central1"),
      text_field("zone", &C::zone, "Of the region.", "us-central1-c"),
      text_field("scale_tier", &C::scale_tier,
                 "AI Platform's ready-made pools; CUSTOM: those of 'pools'.", "BASIC_GPU"),
      field<C>("pools", pools, read_pools, "Groups of equal nodes; or give a scale_tier.",
               "[{name: p100, machine: n1-standard-16, accelerator: {type: P100-PCIE-16, "
               "count: 2}, nodes: 3}]"),
      block_field<fabric_fields>("fabric", &C::fabric, check_fabric,
                                 "How the nodes are wired; default: all on one switch.",
                                 "{nics: 8, rails: true, nodes_per_leaf: 32, oversubscription: 2}"),
      word_field("autoscaler", &C::autoscaler,
                 "Who scales the pools with autoscaling: true; default: cluster_autoscaler.",
                 "karpenter"),
      block_field<karpenter_fields>("karpenter", &C::karpenter, {},
                                    "Settings and NodePools, which count under autoscaler: "
                                    "karpenter.",
                                    "{nodePools: [{name: default, requirements: []}]}"),
      block_field<cluster_autoscaler_fields>(
          "cluster_autoscaler", &C::cluster_autoscaler, {},
          "Expanders: a pool and its fallback pools are node groups to choose from.",
          "{expander: \"priority,least-waste\", priorities: {10: [.*], 50: [.*spot.*]}}"),
      block_field<node_auto_provisioning_fields>(
          "node_auto_provisioning", &C::node_auto_provisioning, {},
          "Limits and ComputeClass, which count under autoscaler: node_auto_provisioning.",
          "{resourceLimits: [{resourceType: cpu, maximum: 1000}]}"),
      block_field<slurm_power_fields>("slurm", &C::slurm, {},
                                      "Power saving, which counts under autoscaler: slurm.",
                                      "{SuspendTime: 5min, ResumeTimeout: 10min}"),
      block_field<scheduler_fields>("scheduler", &C::scheduler, {},
                                    "Who chooses among the jobs of a trace or of arrivals.",
                                    "{policy: fifo}"),
      field<C>(
          "ai_platform", Form{Form::Kind::map},
          [](Reader& r, const YamlNode& n, C&) { r.expect(n, YamlNode::Kind::map); },
          "What `reckon import ai-platform` found besides, for `reckon export ai-platform`: its "
          "words are the service's, and change no forecast.",
          "{trainingInput: {pythonModule: trainer.task}}"),
  };
  return table;
}

void check_cluster(Reader& reader, const YamlNode& node, const ClusterSpec&) {
  const bool listed = node.has("scheduler");  // check_trace asks for pools or a list of nodes
  if (!listed && !node.has("pools") && !node.has("scale_tier") && !reader.misspelt("pools") &&
      !reader.misspelt("scale_tier"))
    reader.error(fmt::format("{} needs 'pools'", reader.subject()),
                 "example: pools: [{name: p100, machine: n1-standard-16, accelerator: {type: "
                 "P100-PCIE-16, count: 2}, nodes: 3}]");
}

}  // namespace reckon
