#pragma once
#include "sim/scenario/yaml/fields.h"

// Keys that a class, a recorded list and a job of a queue share.
namespace reckon {

/// Pools by name, and how fast a job is on each.
inline void read_pace_of_pools(Reader& reader, const YamlNode& node, PaceSpec& pace) {
  reader.each_entry(node, [&](const std::string& key, const YamlNode& value) {
    if (const auto own = reader.number(value, Form{Form::Kind::fraction, 0, 1000}))
      pace.by_pool[key] = *own;
  });
}

template <class T>
Field<T> pace_field() {
  return field<T>(
      "pace", Form{.kind = Form::Kind::map, .item = Form::Kind::fraction},
      [](Reader& r, const YamlNode& n, T& t) { read_pace_of_pools(r, n, t.pace); },
      "Work done in a second on the nodes of a pool, over that for which lengths are said; 0: not "
      "there. A gang over several pools has the lowest. Default: 1.",
      "{v100: 45%}");
}

template <class T>
Field<T> across_leaves_field() {
  return field<T>(
      "across_leaves", fraction(true),
      [](Reader& r, const YamlNode& n, T& t) {
        if (const auto own = r.number(n, fraction(true))) t.pace.across_leaves = *own;
      },
      "Pace of a gang on nodes of several leaves (cluster.fabric.nodes_per_leaf); default: 1.",
      "80%");
}

inline const Fields<PodShapeSpec>& pod_shape_fields() {
  using P = PodShapeSpec;
  constexpr double kMostGpusOfPod = 1024, kMostCpus = 1e5;
  static const Fields<P> table{
      number_field("gpus", &P::gpus, whole(1, kMostGpusOfPod), "Default: 1.", "1"),
      number_field("cpu", &P::cpu, Form{Form::Kind::number, 0, kMostCpus},
                   "vCPUs; default: 0, which any node has.", "8"),
      number_field("memory", &P::memory, Form{Form::Kind::bytes, 0, 1e15}, "Default: 0.", "32GiB"),
      boolean_field("doNotDisrupt", &P::do_not_disrupt,
                    "Its annotation karpenter.sh/do-not-disrupt; default: that of "
                    "cluster.karpenter.",
                    "true"),
  };
  return table;
}

template <class T>
Field<T> pod_field() {
  return block_field<pod_shape_fields>("pod", &T::pod, {},
                                       "Where Karpenter makes the nodes: what a pod asks for, of "
                                       "which a job has as many as its GPUs "
                                       "take. Default: one pod with all GPUs.",
                                       "{gpus: 1, cpu: 8, memory: 32GiB}");
}

/// With the devices, queue, QOS, priority and topology of a job, by their names in
/// ArrivalClassSpec.
template <class T>
Fields<T> with_owner(Fields<T> own) {
  Fields<T> more{
      text_field("resource", &T::resource,
                 "Devices that GPUs are cut into (accelerator.shared), and `gpus` counts; default: "
                 "whole GPUs.",
                 "nvidia.com/mig-1g.10gb"),
      text_field("queue", &T::queue, "Partition of Slurm, or ClusterQueue of Kueue.", "batch"),
      text_field("qos", &T::qos, "QOS of Slurm.", "normal"),
      number_field("priority", &T::priority, Form{Form::Kind::whole, -1e9, 1e9},
                   "Priority of Kueue's and Kubernetes' workloads; default: 0.", "100"),
      text_field("podset-required-topology", &T::required_topology,
                 "Of Kueue: all nodes in one domain of the level with this label.",
                 "cloud.provider.com/topology-rack"),
      text_field("podset-preferred-topology", &T::preferred_topology,
                 "The same where it is possible, else in as few as suffice.",
                 "cloud.provider.com/topology-block"),
  };
  own.insert(own.end(), more.begin(), more.end());
  return own;
}

}  // namespace reckon
