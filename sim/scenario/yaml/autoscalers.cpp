#include "sim/scenario/yaml/fields.h"

// `cluster.cluster_autoscaler:`, by the flags of the cluster-autoscaler, and `cluster.slurm:`, by
// the parameters of slurm.conf.
namespace reckon {
namespace {

/// "priority,least-waste", as the flag has it.
void read_expanders(Reader& reader, const YamlNode& node, ClusterAutoscalerSpec& spec) {
  const auto text = reader.text(node);
  if (!text) return;
  spec.expander.clear();
  const std::vector<std::string> words = texts_of<Expander>();
  std::size_t begin = 0;
  while (begin <= text->size()) {
    const std::size_t end = std::min(text->find(',', begin), text->size());
    const std::string word = text->substr(begin, end - begin);
    begin = end + 1;
    const auto expander = from_text<Expander>(word);
    if (!expander)
      reader.error(
          fmt::format("unknown expander '{}'{}", shortened(word), did_you_mean(word, words)),
          fmt::format("one of {}, or a chain of them: priority,least-waste",
                      fmt::join(words, ", ")));
    else if (std::ranges::count(spec.expander, *expander) > 0)
      reader.error(fmt::format("expander '{}' stands twice in the chain", word), "name it once");
    else
      spec.expander.push_back(*expander);
  }
}

void read_priorities(Reader& reader, const YamlNode& node, ClusterAutoscalerSpec& spec) {
  reader.each_entry(node, [&](const std::string& key, const YamlNode& value) {
    ExpanderPriority row;
    const bool digits =
        !key.empty() && key.size() <= 9 && key.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || std::stoi(key) < 1)
      return reader.error(fmt::format("'{}' is no priority", shortened(key)),
                          "a whole number above 0, the highest wins: {10: [.*], 50: [.*spot.*]}");
    row.priority = std::stoi(key);
    if (value.kind == YamlNode::Kind::list)
      row.groups = reader.texts(value);
    else if (auto one = reader.text(value))
      row.groups.push_back(std::move(*one));
    for (const std::string& group : row.groups)
      if (!is_regular_expression(group))
        reader.error(fmt::format("'{}' is no regular expression", shortened(group)),
                     ".*spot.* is found in every name that has the word");
    spec.priorities.push_back(std::move(row));
  });
}

}  // namespace

const Fields<ClusterAutoscalerSpec>& cluster_autoscaler_fields() {
  using C = ClusterAutoscalerSpec;
  static const Fields<C> table{
      field<C>("expander", Form{Form::Kind::text}, read_expanders,
               "How a node group is chosen among a pool and its fallback pools; a chain "
               "breaks ties. random, most-pods, least-waste, least-nodes, price, priority; "
               "default: random.",
               "priority,least-waste"),
      field<C>("priorities",
               Form{.kind = Form::Kind::map, .item = Form::Kind::text, .or_list = true},
               read_priorities,
               "Of expander priority: by priority, regular expressions of names of pools.",
               "{10: [.*], 50: [.*spot.*]}"),
      boolean_field("balance-similar-node-groups", &C::balance_similar_node_groups,
                    "Nodes are shared among pools of one machine and capacity type; default: "
                    "false.",
                    "true"),
  };
  return table;
}

namespace {

/// A duration; -1: never.
Field<SlurmPowerSpec> suspend_time_field() {
  Form form = choice("a duration, or -1");
  form.item = Form::Kind::duration;
  form.words = {"-1", "INFINITE"};
  return field<SlurmPowerSpec>(
      "SuspendTime", form,
      [](Reader& r, const YamlNode& n, SlurmPowerSpec& slurm) {
        if (n.kind == YamlNode::Kind::scalar && (n.text == "-1" || n.text == "INFINITE"))
          slurm.suspend_time.reset();
        else if (const auto seconds = r.number(n, duration_from_zero()))
          slurm.suspend_time = Seconds{*seconds};
      },
      "Time without a job after which a node is powered down; -1: it stays.", "5min");
}

void read_excluded(Reader& reader, const YamlNode& node, SlurmPowerSpec& slurm) {
  reader.each(node, [&](const YamlNode& item) {
    const auto text = reader.text(item);
    if (!text) return;
    SlurmExcludedNodes row;
    const std::size_t colon = text->find(':');
    row.pool = text->substr(0, colon);
    if (colon != std::string::npos) {
      const std::string count = text->substr(colon + 1);
      if (count.empty() || count.size() > 5 ||
          count.find_first_not_of("0123456789") != std::string::npos)
        return reader.error(
            fmt::format("'{}' has no number of nodes behind its colon", shortened(*text)),
            "SuspendExcNodes: [\"gpu:4\"]");
      row.count = std::stoi(count);
    }
    slurm.suspend_exc_nodes.push_back(std::move(row));
  });
}

}  // namespace

const Fields<SlurmPowerSpec>& slurm_power_fields() {
  using S = SlurmPowerSpec;
  constexpr double kMostRate = 1e6;  // nodes a minute
  static const Fields<S> table{
      required(suspend_time_field()),
      number_field("SuspendTimeout", &S::suspend_timeout, duration_from_zero(),
                   "From the power-down until the node can be powered up again; default: 30s.",
                   "30s"),
      number_field("ResumeTimeout", &S::resume_timeout, duration_above_zero(),
                   "From the power-up until the node is available; one that takes longer is DOWN. "
                   "Default: 60s.",
                   "10min"),
      number_field("ResumeRate", &S::resume_rate, whole(0, kMostRate),
                   "Nodes powered up in a minute; 0: no limit; default: 300.", "100"),
      number_field("SuspendRate", &S::suspend_rate, whole(0, kMostRate),
                   "Nodes powered down in a minute; 0: no limit; default: 60.", "60"),
      field<S>("SuspendExcNodes", Form{.kind = Form::Kind::list, .item = Form::Kind::text},
               read_excluded,
               "Pools whose nodes are never powered down; with a number: so many of them.",
               "[\"gpu:4\"]"),
      boolean_field("idle_on_node_suspend", &S::idle_on_node_suspend,
                    "SlurmctldParameters: a node that is DOWN can be powered up again after "
                    "SuspendTime and SuspendTimeout; default: false.",
                    "true"),
      number_field("power_save_interval", &S::power_save_interval, duration_above_zero(),
                   "SlurmctldParameters: how often idle nodes are looked for; default: 10s.",
                   "10s"),
  };
  return table;
}

}  // namespace reckon
