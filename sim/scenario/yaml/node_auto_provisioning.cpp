#include "sim/scenario/yaml/fields.h"

// `cluster.node_auto_provisioning:`, by the names of ClusterAutoscaling of the GKE API and of
// cloud.google.com/v1 ComputeClass.
namespace reckon {
namespace {

const Fields<ResourceLimit>& resource_limit_fields() {
  using L = ResourceLimit;
  static const Fields<L> table{
      required(text_field("resourceType", &L::resource_type,
                          "cpu, memory (in GB) or an accelerator.", "nvidia-tesla-t4")),
      required(number_field("maximum", &L::maximum, whole(0, 1e9), "Of all nodes of the cluster.",
                            "16")),
  };
  return table;
}

/// A block with one boolean, as the API has many: {enabled: true}.
template <class T>
Field<T> switch_field(std::string_view key, std::string_view of, bool T::*member,
                      std::string_view doc, std::string_view example) {
  return field<T>(
      key, Form{Form::Kind::map},
      [of, member](Reader& r, const YamlNode& n, T& t) {
        r.each_entry(n, [&](const std::string& name, const YamlNode& value) {
          if (name != of)
            r.error(fmt::format("unknown key '{}'", shortened(name)),
                    fmt::format("allowed here: {}", of));
          else if (const auto on = r.boolean(value))
            t.*member = *on;
        });
      },
      doc, example);
}

const Fields<ComputeClassRule>& rule_fields() {
  using R = ComputeClassRule;
  static const Fields<R> table{
      text_field("machineFamily", &R::machine_family, "Machine series.", "n2"),
      text_field("machineType", &R::machine_type, "Machine.", "a3-highgpu-8g"),
      boolean_field("spot", &R::spot, "Spot nodes; default: false.", "true"),
      switch_field("flexStart", "enabled", &R::flex_start, "Nodes of flex-start; default: not.",
                   "{enabled: true}"),
      number_field("minCores", &R::min_cores, whole(1, 1e4), "vCPUs of a node, at least.", "16"),
      number_field("minMemoryGb", &R::min_memory_gb, whole(1, 1e6),
                   "Memory of a node in GB, at least.", "64"),
      number_field("maxRunDurationSeconds", &R::max_run_duration, whole(1, 1e9),
                   "A node ends at that age, in seconds.", "604800"),
  };
  return table;
}

void check_rule(Reader& reader, const YamlNode& node, const ComputeClassRule& rule) {
  if (node.has("machineFamily") && node.has("machineType"))
    reader.error(node.find("machineType")->key_at, "machineType cannot stand beside machineFamily",
                 "leave one of them out");
  if (rule.spot && rule.flex_start)
    reader.error(node.find("flexStart")->key_at, "flexStart cannot stand beside spot",
                 "a rule of its own for either");
}

const Fields<ComputeClassSpec>& autoscaling_policy_fields() {
  using C = ComputeClassSpec;
  static const Fields<C> table{
      field<C>(
          "consolidationDelayMinutes", whole(1, 1440),
          [](Reader& r, const YamlNode& n, C& c) {
            if (const auto minutes = r.number(n, whole(1, 1440)))
              c.consolidation_delay = Seconds{*minutes * 60};
          },
          "A node without pods goes so many minutes later; default: the autoscaler's 10.", "5"),
  };
  return table;
}

const Fields<ComputeClassSpec>& compute_class_fields() {
  using C = ComputeClassSpec;
  Form priorities{Form::Kind::list};
  priorities.fields = &infos_of<rule_fields>;
  Form policy{Form::Kind::block};
  policy.fields = &infos_of<autoscaling_policy_fields>;
  static const Fields<C> table{
      required(field<C>(
          "priorities", priorities,
          [](Reader& r, const YamlNode& n, C& c) {
            r.each(n, [&](const YamlNode& item) {
              ComputeClassRule rule;
              const std::size_t before = r.errors();
              if (!read_fields(r, item, rule_fields(), rule)) return;
              if (r.errors() == before) check_rule(r, item, rule);
              c.priorities.push_back(std::move(rule));
            });
            if (n.kind == YamlNode::Kind::list && n.entries.empty())
              r.error("the ComputeClass has no rule", "priorities: [{machineFamily: n2}]");
          },
          "Rules, the preferred first.", "[{machineFamily: n2, spot: true}, {machineFamily: n2}]")),
      word_field("whenUnsatisfiable", &C::when_unsatisfiable,
                 "Where no rule can be met; default: DoNotScaleUp.", "ScaleUpAnyway"),
      switch_field("activeMigration", "optimizeRulePriority", &C::optimize_rule_priority,
                   "Pods move to nodes of a preferred rule once there are some; default: not.",
                   "{optimizeRulePriority: true}"),
      field<C>(
          "autoscalingPolicy", policy,
          [](Reader& r, const YamlNode& n, C& c) {
            read_fields(r, n, autoscaling_policy_fields(), c);
          },
          "When nodes are removed.", "{consolidationDelayMinutes: 5}"),
  };
  return table;
}

}  // namespace

const Fields<NodeAutoProvisioningSpec>& node_auto_provisioning_fields() {
  using N = NodeAutoProvisioningSpec;
  Form limits{Form::Kind::list};
  limits.fields = &infos_of<resource_limit_fields>;
  static const Fields<N> table{
      field<N>(
          "resourceLimits", limits,
          [](Reader& r, const YamlNode& n, N& spec) {
            r.each(n, [&](const YamlNode& item) {
              ResourceLimit limit;
              if (read_fields(r, item, resource_limit_fields(), limit))
                spec.resource_limits.push_back(std::move(limit));
            });
          },
          "What all nodes of the cluster may have.", "[{resourceType: cpu, maximum: 1000}]"),
      field<N>(
          "autoprovisioningLocations", Form{.kind = Form::Kind::list, .item = Form::Kind::text},
          [](Reader& r, const YamlNode& n, N& spec) { spec.locations = r.texts(n); },
          "Zones in which node pools may be made; default: all.", "[us-central1-a]"),
      block_field<compute_class_fields>("computeClass", &N::compute_class, {},
                                        "The ComputeClass of the jobs' pods.",
                                        "{priorities: [{machineFamily: n2, spot: true}]}"),
      boolean_field("safeToEvict", &N::safe_to_evict,
                    "The jobs' pods have the annotation "
                    "cluster-autoscaler.kubernetes.io/safe-to-evict: \"true\"; default: false.",
                    "true"),
  };
  return table;
}

}  // namespace reckon
