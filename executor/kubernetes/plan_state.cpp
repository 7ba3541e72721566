#include "executor/kubernetes/plan_state.h"

#include "sim/base/text/base64.h"
#include "sim/base/unit_text.h"

namespace reckon::kubernetes {
namespace {

constexpr const char *kPlanFrom = "plan-from", *kParts = "parts";
constexpr const char *kDecisions = "decisions", *kEnds = "ends";

std::string text_in(const Json& data, const char* key) {
  const auto at = data.find(key);
  return at != data.end() && at->is_string() ? at->get<std::string>() : "";
}

template <class Record>
std::string text_of_records(const std::vector<Record>& records) {
  Json list = Json::array();
  for (const Record& record : records) list.push_back(Json::parse(to_json(record)));
  return list.dump();
}

Measurements records_in(const Json& data, const char* key) {
  Measurements all;
  const Json list = Json::parse(text_in(data, key), nullptr, false);
  if (!list.is_array()) return all;
  for (const Json& record : list) {
    const auto read = parse_measurements(key, record.dump() + '\n');
    if (!read) continue;
    for (const DecisionRecord& r : read->decisions) all.decisions.push_back(r);
    for (const EndRecord& r : read->ends) all.ends.push_back(r);
  }
  return all;
}

}  // namespace

Json plan_data(const RunState& state) {
  Json parts = Json::array();
  for (const RunPart& part : state.parts)
    parts.push_back({{"attempt", part.attempt}, {"at_seconds", part.at.count()}});
  return {{kPlanFrom, std::to_string(state.plan_from)},
          {kParts, parts.dump()},
          {kDecisions, text_of_records(state.decisions)},
          {kEnds, text_of_records(state.ends)}};
}

void read_plan_data(const Json& data, RunState& state) {
  state.plan_from = parse_integer(text_in(data, kPlanFrom)).value_or(0);
  const Json parts = Json::parse(text_in(data, kParts), nullptr, false);
  if (parts.is_array())
    for (const Json& part : parts)
      if (part.is_object())
        state.parts.push_back({.attempt = part.value("attempt", std::int64_t{0}),
                               .at = Seconds{part.value("at_seconds", 0.0)}});
  state.decisions = records_in(data, kDecisions).decisions;
  state.ends = records_in(data, kEnds).ends;
}

/// By standard input: a plan may be longer than a word of a command line. The fields are ours
/// alone, and whatever else is in the map stays.
void write_plan_state(const Kubectl& kubectl, const RunState& state) {
  const Json map = {{"apiVersion", "v1"},
                    {"kind", "ConfigMap"},
                    {"metadata", {{"name", state_object_of(state.run)}}},
                    {"binaryData", {{"plan.reckon", to_base64(state.plan)}}},
                    {"data", plan_data(state)}};
  kubectl.run({"apply", "--server-side", "--force-conflicts", "--filename", "-"}, map.dump());
}

void write_ends(const Kubectl& kubectl, const std::string& run,
                const std::vector<EndRecord>& ends) {
  const Json patch = {{"data", {{kEnds, text_of_records(ends)}}}};
  kubectl.run(
      {"patch", "configmap", state_object_of(run), "--type", "merge", "--patch", patch.dump()});
}

}  // namespace reckon::kubernetes
