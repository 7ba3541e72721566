#include "sim/scenario/yaml/kueue/checks.h"

#include <fmt/format.h>

namespace reckon {
namespace {

const Fields<KueueCheckRuleSpec>& check_rule_fields() {
  using R = KueueCheckRuleSpec;
  static const Fields<R> table{
      required(text_field("name", &R::name, "Of the check.", "dws")),
      field<R>(
          "onFlavors", Form{.kind = Form::Kind::list, .item = Form::Kind::text},
          [](Reader& r, const YamlNode& n, R& rule) { rule.on_flavors = r.texts(n); },
          "Flavors whose jobs are checked; default: all.", "[spot]"),
  };
  return table;
}

struct CheckRules {
  std::vector<KueueCheckRuleSpec> list;
};
const Fields<CheckRules>& check_rules_fields() {
  Form rules{Form::Kind::list};
  rules.fields = &infos_of<check_rule_fields>;
  static const Fields<CheckRules> table{required(field<CheckRules>(
      "admissionChecks", rules,
      [](Reader& reader, const YamlNode& node, CheckRules& out) {
        reader.each(node, [&](const YamlNode& item) {
          KueueCheckRuleSpec rule;
          if (read_fields(reader, item, check_rule_fields(), rule))
            out.list.push_back(std::move(rule));
        });
      },
      "Checks of the queue's jobs, all at once.", "[{name: dws, onFlavors: [spot]}]"))};
  return table;
}

const Fields<KueueRetrySpec>& retry_fields() {
  using R = KueueRetrySpec;
  const auto seconds = [](Seconds R::*member) {
    return [member](Reader& r, const YamlNode& n, R& retry) {
      if (const auto v = r.number(n, whole(0, 1e9))) retry.*member = Seconds{double(*v)};
    };
  };
  static const Fields<R> table{
      number_field("backoffLimitCount", &R::backoff_limit_count, whole(0, 1e6),
                   "Attempts after the first; then the job is deactivated. Default: 3.", "3"),
      field<R>("backoffBaseSeconds", whole(0, 1e9), seconds(&R::backoff_base),
               "Until the second attempt, doubled for each further one; default: 60.", "60"),
      field<R>("backoffMaxSeconds", whole(0, 1e9), seconds(&R::backoff_max),
               "At most; default: 1800.", "1800"),
  };
  return table;
}

}  // namespace

std::vector<const FieldInfo*> check_rules_infos() { return infos_of<check_rules_fields>(); }

void read_check_rules(Reader& reader, const YamlNode& node, ClusterQueueSpec& queue) {
  CheckRules rules;
  if (read_fields(reader, node, check_rules_fields(), rules))
    queue.admission_checks = std::move(rules.list);
}

const Fields<KueueAdmissionCheckSpec>& admission_check_fields() {
  using C = KueueAdmissionCheckSpec;
  static const Fields<C> table{
      required(name_field("name", &C::name, "Queues name it.", "dws")),
      required(field<C>(
          "ready_after", time_law_form(),
          [](Reader& r, const YamlNode& n, C& check) {
            if (auto law = read_time_law(r, n)) check.ready_after = std::move(*law);
          },
          "From the reservation of quota until it is Ready, or Retry.",
          "!exponential {mean: 20min}")),
      number_field("failures", &C::failures, fraction(),
                   "Share of the attempts that end in Retry; default: 0.", "10%"),
      block_field<retry_fields>("retryStrategy", &C::retry, {}, "Of its ProvisioningRequestConfig.",
                                "{backoffLimitCount: 3}"),
  };
  return table;
}

void check_admission_checks(Reader& reader, const YamlNode& node, const KueueSpec& kueue) {
  const auto* at = node.find("clusterQueues");
  if (at == nullptr) return;
  std::vector<std::string> names;
  for (const KueueAdmissionCheckSpec& check : kueue.admission_checks) names.push_back(check.name);
  for (const ClusterQueueSpec& queue : kueue.cluster_queues) {
    std::vector<std::string> flavors;
    for (const KueueFlavorSpec& flavor : queue.flavors) flavors.push_back(flavor.name);
    for (const KueueCheckRuleSpec& rule : queue.admission_checks) {
      if (std::ranges::find(names, rule.name) == names.end())
        reader.error(at->key_at,
                     fmt::format("'{}' names the AdmissionCheck '{}', which is not there{}",
                                 queue.name, rule.name, did_you_mean(rule.name, names)),
                     "add it to admissionChecks");
      for (const std::string& flavor : rule.on_flavors)
        if (std::ranges::find(flavors, flavor) == flavors.end())
          reader.error(at->key_at,
                       fmt::format("'{}' checks jobs on flavor '{}', which it does not have{}",
                                   queue.name, flavor, did_you_mean(flavor, flavors)),
                       fmt::format("flavors: {}", fmt::join(flavors, ", ")));
      for (const KueueResourceFlavorSpec& flavor : kueue.resource_flavors)
        if (rule.on_flavors.empty()
                ? std::ranges::find(flavors, flavor.name) != flavors.end()
                : std::ranges::find(rule.on_flavors, flavor.name) != rule.on_flavors.end())
          reader.error(at->key_at,
                       fmt::format("'{}' checks jobs on flavor '{}', which has a topology",
                                   queue.name, flavor.name),
                       "the two together are not simulated: leave one of them out");
    }
  }
}

}  // namespace reckon
