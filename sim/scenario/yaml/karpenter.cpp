#include <cmath>
#include <set>

#include "sim/base/unit_text.h"
#include "sim/scenario/cron_schedule.h"
#include "sim/scenario/yaml/fields.h"

// `cluster.karpenter:`, by the names of karpenter.sh/v1 NodePool; what stands below
// spec.template.spec there stands in the NodePool itself here.
namespace reckon {
namespace {

constexpr double kMostOfPool = 1e9;    // vCPUs, GPUs
constexpr double kMostMinValues = 50;  // as karpenter.sh/v1 has it
constexpr std::string_view kNever = "Never";

const Fields<NodeRequirement>& requirement_fields() {
  using R = NodeRequirement;
  static const Fields<R> table{
      required(text_field("key", &R::key, "Label of a node.", "karpenter.sh/capacity-type")),
      required(word_field("operator", &R::op, "How its value and `values` compare.", "In")),
      field<R>(
          "values", Form{.kind = Form::Kind::list, .item = Form::Kind::text},
          [](Reader& r, const YamlNode& n, R& requirement) { requirement.values = r.texts(n); },
          "What it is compared with; none for Exists and DoesNotExist.", "[spot, on-demand]"),
      number_field("minValues", &R::min_values, whole(1, kMostMinValues),
                   "Different values that the machines of a launch must have; default: 1.", "3"),
  };
  return table;
}

/// How many values an operator takes [kubernetes.io, "Assigning Pods to Nodes", "Operators"].
void check_requirement(Reader& reader, const YamlNode& node, const NodeRequirement& made) {
  using Op = RequirementOperator;
  const YamlNode::Entry* values = node.find("values");
  const SourcePlace at = values != nullptr ? values->value.at : reader.at();
  const bool none = made.op == Op::Exists || made.op == Op::DoesNotExist;
  const bool many = made.op == Op::In || made.op == Op::NotIn;
  if (none && !made.values.empty())
    reader.error(at, fmt::format("operator {} takes no values", to_text(made.op)),
                 "leave them out");
  else if (many && made.values.empty())
    reader.error(at, fmt::format("operator {} needs values", to_text(made.op)),
                 "values: [g5.2xlarge, g5.4xlarge]");
  else if (!none && !many && made.values.size() != 1)
    reader.error(at, fmt::format("operator {} takes one value, a whole number", to_text(made.op)),
                 "values: [\"3\"]");
  else if (made.op == Op::In && made.min_values &&
           std::size_t(*made.min_values) > made.values.size())
    reader.error(
        node.find("minValues")->value.at,
        fmt::format("minValues is {}, and `values` has {}", *made.min_values, made.values.size()),
        "at least as many values as minValues");
}

const Fields<NodePoolLimits>& limit_fields() {
  using L = NodePoolLimits;
  static const Fields<L> table{
      number_field("cpu", &L::cpu, whole(0, kMostOfPool), "vCPUs of all its nodes.", "1000"),
      number_field("memory", &L::memory, Form{Form::Kind::bytes, 0, 1e18},
                   "Memory of all its nodes.", "1000GiB"),
      number_field("nodes", &L::nodes, whole(0, kMostNodes), "Nodes.", "10"),
      number_field("nvidia.com/gpu", &L::gpus, whole(0, kMostOfPool), "GPUs of all its nodes.",
                   "16"),
  };
  return table;
}

void read_budget_nodes(Reader& reader, const YamlNode& node, DisruptionBudget& budget) {
  const auto text = reader.text(node);
  if (!text) return;
  const bool percent = text->ends_with('%');
  const std::string digits = percent ? text->substr(0, text->size() - 1) : *text;
  const bool whole_number = !digits.empty() && digits.size() <= 9 &&
                            digits.find_first_not_of("0123456789") == std::string::npos;
  if (!whole_number || (percent && std::stoi(digits) > 100))
    return reader.error(fmt::format("'{}' is neither a number of nodes nor a share of them", *text),
                        "nodes: \"5\", or nodes: 20%");
  if (percent)
    budget.share = std::stoi(digits) / 100.0;
  else
    budget.nodes = std::stoi(digits);
}

const Fields<DisruptionBudget>& budget_fields() {
  using B = DisruptionBudget;
  static const Fields<B> table{
      required(field<B>("nodes", Form{Form::Kind::text}, read_budget_nodes,
                        "Nodes that may be disrupted at once: a number, or a share of the "
                        "NodePool's, rounded up.",
                        "10%")),
      field<B>(
          "schedule", Form{Form::Kind::text},
          [](Reader& r, const YamlNode& n, B& budget) {
            const auto text = r.text(n);
            if (!text) return;
            if (const auto read = CronSchedule::parse(*text); !read)
              r.error(read.error(), "schedule: \"0 9 * * mon-fri\", or @daily");
            budget.schedule = *text;
          },
          "Times, as cron writes them in UTC, from which the budget counts; default: always.",
          "\"0 9 * * mon-fri\""),
      number_field("duration", &B::duration, duration_above_zero(),
                   "How long it counts from each of them.", "8h"),
      field<B>(
          "reasons", Form{.kind = Form::Kind::list, .item = Form::Kind::text},
          [](Reader& r, const YamlNode& n, B& budget) {
            const auto words = texts_of<DisruptionReason>();
            r.each(n, [&](const YamlNode& item) {
              if (const auto i = r.word(item, words))
                budget.reasons.push_back(*from_text<DisruptionReason>(words[*i]));
            });
          },
          "Of which disruptions; default: of all.", "[Underutilized]"),
  };
  return table;
}

void read_budgets(Reader& reader, const YamlNode& node, NodePoolSpec& pool) {
  reader.each(node, [&](const YamlNode& item) {
    DisruptionBudget budget;
    if (!read_fields(reader, item, budget_fields(), budget)) return;
    if (item.has("schedule") != item.has("duration"))
      reader.error("schedule and duration stand together",
                   "{nodes: \"0\", schedule: \"@daily\", duration: 10min}");
    pool.budgets.push_back(std::move(budget));
  });
}

/// A duration or `Never`.
Field<NodePoolSpec> lasting_field(std::string_view key,
                                  std::optional<Seconds> NodePoolSpec::*member,
                                  std::string_view doc, std::string_view example) {
  Form form = choice("a duration, or Never");
  form.item = Form::Kind::duration;
  form.words = {std::string(kNever)};
  return field<NodePoolSpec>(
      key, form,
      [member](Reader& r, const YamlNode& n, NodePoolSpec& pool) {
        if (n.kind == YamlNode::Kind::scalar && n.text == kNever)
          (pool.*member).reset();
        else if (const auto seconds = r.number(n, duration_from_zero()))
          pool.*member = Seconds{*seconds};
      },
      doc, example);
}

const Fields<NodePoolSpec>& disruption_fields() {
  using P = NodePoolSpec;
  Form budgets{Form::Kind::list};
  budgets.fields = &infos_of<budget_fields>;
  static const Fields<P> table{
      word_field("consolidationPolicy", &P::consolidation_policy,
                 "Which nodes may be deleted or replaced to save money; default: "
                 "WhenEmptyOrUnderutilized.",
                 "WhenEmpty"),
      lasting_field("consolidateAfter", &P::consolidate_after,
                    "Time without a pod that came or went; default: 0s.", "1min"),
      field<P>("budgets", budgets, read_budgets,
               "Nodes disrupted at once; the least that counts applies. Default: 10 %.",
               "[{nodes: 20%, reasons: [Empty]}]"),
  };
  return table;
}

const Fields<NodePoolSpec>& node_pool_fields() {
  using P = NodePoolSpec;
  Form requirements{Form::Kind::list};
  requirements.fields = &infos_of<requirement_fields>;
  Form disruption{Form::Kind::block};
  disruption.fields = &infos_of<disruption_fields>;
  static const Fields<P> table{
      required(name_field("name", &P::name, "Unique name.", "default")),
      number_field("weight", &P::weight, whole(0, 100),
                   "The NodePool of the highest weight comes first; default: 0.", "10"),
      required(field<P>(
          "requirements", requirements,
          [](Reader& r, const YamlNode& n, P& pool) {
            r.each(n, [&](const YamlNode& item) {
              NodeRequirement made;
              const std::size_t before = r.errors();
              if (!read_fields(r, item, requirement_fields(), made)) return;
              if (r.errors() == before) check_requirement(r, item, made);
              pool.requirements.push_back(std::move(made));
            });
          },
          "Labels that its nodes must have; []: any machine.",
          "[{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]")),
      block_field<limit_fields>("limits", &P::limits, {}, "Of all its nodes together.",
                                "{cpu: 1000}"),
      field<P>(
          "disruption", disruption,
          [](Reader& r, const YamlNode& n, P& pool) {
            read_fields(r, n, disruption_fields(), pool);
          },
          "How Karpenter may disrupt its nodes.",
          "{consolidationPolicy: WhenEmpty, consolidateAfter: 1min}"),
      lasting_field("expireAfter", &P::expire_after,
                    "Age at which a node is drained; default: "
                    "720h.",
                    "720h"),
      number_field("terminationGracePeriod", &P::termination_grace_period, duration_above_zero(),
                   "How long a node drains at most; default: until its pods have gone.", "1h"),
  };
  return table;
}

void read_node_pools(Reader& reader, const YamlNode& node, KarpenterSpec& karpenter) {
  std::set<std::string> names;
  reader.each(node, [&](const YamlNode& item) {
    NodePoolSpec pool;
    if (!read_fields(reader, item, node_pool_fields(), pool)) return;
    if (!pool.name.empty() && !names.insert(pool.name).second)
      reader.error(item.find("name")->value.at,
                   fmt::format("a second NodePool is named '{}'", pool.name), "names are unique");
    karpenter.node_pools.push_back(std::move(pool));
  });
  if (node.kind == YamlNode::Kind::list && node.entries.empty())
    reader.error("there is no NodePool, and Karpenter makes no nodes without one",
                 "nodePools: [{name: default, requirements: []}]");
}

}  // namespace

const Fields<KarpenterSpec>& karpenter_fields() {
  using K = KarpenterSpec;
  Form pools{Form::Kind::list};
  pools.fields = &infos_of<node_pool_fields>;
  static const Fields<K> table{
      number_field("batchIdleDuration", &K::batch_idle, duration_from_zero(),
                   "Time without a new pending pod that ends a batch; default: 1s.", "1s"),
      number_field("batchMaxDuration", &K::batch_max, duration_from_zero(),
                   "A batch lasts no longer; default: 10s.", "10s"),
      boolean_field("spotToSpotConsolidation", &K::spot_to_spot_consolidation,
                    "The feature gate: spot nodes are replaced by cheaper spot nodes; default: "
                    "false.",
                    "true"),
      boolean_field("interruptionQueue", &K::interruption_queue,
                    "Karpenter hears of a spot reclaim at its notice; default: false.", "true"),
      boolean_field("doNotDisrupt", &K::do_not_disrupt,
                    "The jobs' pods have the annotation karpenter.sh/do-not-disrupt; default: "
                    "true.",
                    "false"),
      required(field<K>("nodePools", pools, read_node_pools, "Which nodes Karpenter may make.",
                        "[{name: default, requirements: []}]")),
  };
  return table;
}

}  // namespace reckon
