#include "executor/kubernetes/pods/pod_view.h"

#include <cstdio>
#include <ctime>

#include "executor/kubernetes/json_at.h"
#include "sim/base/unit_text.h"

namespace reckon::kubernetes {
namespace {

std::optional<Time> time_at(const Json& object, const char* pointer) {
  return parse_time(text_at(object, pointer));
}
std::optional<std::int64_t> integer_text(const std::string& text) {
  const auto value = parse_integer(text);
  return value ? std::optional(*value) : std::nullopt;
}

const Json& list_at(const Json& object, const char* pointer) {
  static const Json kNone = Json::array();
  const Json::json_pointer at(pointer);
  return object.contains(at) && object.at(at).is_array() ? object.at(at) : kNone;
}

void read_container(PodView& pod, const Json& status) {
  if (status.contains("/state/waiting"_json_pointer)) {
    pod.waiting = text_at(status, "/state/waiting/reason");
    pod.waiting_message = text_at(status, "/state/waiting/message");
  }
  if (const auto started = time_at(status, "/state/running/startedAt")) pod.started = started;
  if (!status.contains("/state/terminated"_json_pointer)) return;
  const Json& end = status.at("state").at("terminated");
  pod.exit_code = end.value("exitCode", 0);
  pod.ended_as = text_at(end, "/reason");
  pod.ended_message = text_at(end, "/message");
  pod.started = time_at(end, "/startedAt");
  pod.finished = time_at(end, "/finishedAt");
}

void read_condition(PodView& pod, const Json& condition) {
  const std::string type = condition.value("type", "");
  const bool on = condition.value("status", "") == "True";
  if (type == "PodScheduled" && on) pod.scheduled = time_at(condition, "/lastTransitionTime");
  if (type == "PodScheduled" && !on) pod.unschedulable = text_at(condition, "/message");
  if (type == "DisruptionTarget" && on) pod.disruption = text_at(condition, "/reason");
}

}  // namespace

std::optional<Time> parse_time(const std::string& text) {
  std::tm utc{};
  int length = 0;
  if (std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d%n", &utc.tm_year, &utc.tm_mon,
                  &utc.tm_mday, &utc.tm_hour, &utc.tm_min, &utc.tm_sec, &length) != 6)
    return std::nullopt;
  utc.tm_year -= 1900;
  utc.tm_mon -= 1;
  Time time = std::chrono::system_clock::from_time_t(::timegm(&utc));
  std::string rest = text.substr(std::size_t(length));
  if (rest.empty() || rest.back() != 'Z') return std::nullopt;
  rest.pop_back();
  if (rest.empty()) return time;
  const auto fraction = parse_number("0" + rest);
  if (rest.front() != '.' || !fraction) return std::nullopt;
  return time + std::chrono::duration_cast<Time::duration>(Seconds{*fraction});
}

PodView pod_view(const Json& object) {
  PodView pod;
  pod.name = text_at(object, "/metadata/name");
  pod.uid = text_at(object, "/metadata/uid");
  pod.created = time_at(object, "/metadata/creationTimestamp");
  pod.deleting = object.contains("/metadata/deletionTimestamp"_json_pointer);
  pod.attempt = integer_text(mapped_text(object, "/metadata/labels", "reckon/attempt")).value_or(0);
  const auto first =
      integer_text(mapped_text(object, "/metadata/annotations", "reckon/first-rank"));
  const auto index = integer_text(
      mapped_text(object, "/metadata/annotations", "batch.kubernetes.io/job-completion-index"));
  pod.order = parse_order(mapped_text(object, "/metadata/annotations", kStartAnnotation));
  if (first) pod.rank = int(*first + index.value_or(0));
  pod.node = text_at(object, "/spec/nodeName");
  pod.address = text_at(object, "/status/podIP");
  const std::string host = text_at(object, "/spec/hostname");
  if (pod.address.empty() && !host.empty())
    pod.address = host + '.' + text_at(object, "/spec/subdomain");
  for (const Json& port : list_at(object, "/spec/containers/0/ports"))
    if (port.value("name", "") == "reckon") pod.port = port.value("containerPort", 0);
  pod.phase = text_at(object, "/status/phase");
  pod.reason = text_at(object, "/status/reason");
  pod.message = text_at(object, "/status/message");
  for (const Json& condition : list_at(object, "/status/conditions"))
    read_condition(pod, condition);
  for (const Json& status : list_at(object, "/status/containerStatuses"))
    read_container(pod, status);
  return pod;
}

EventView event_view(const Json& object) {
  EventView event;
  event.kind = text_at(object, "/involvedObject/kind");
  event.name = text_at(object, "/involvedObject/name");
  event.reason = text_at(object, "/reason");
  event.message = text_at(object, "/message");
  event.at = time_at(object, "/lastTimestamp");
  if (!event.at) event.at = time_at(object, "/eventTime");
  return event;
}

NodeView node_view(const Json& object) {
  NodeView node;
  node.name = text_at(object, "/metadata/name");
  node.created = time_at(object, "/metadata/creationTimestamp");
  for (const Json& condition : list_at(object, "/status/conditions"))
    if (condition.value("type", "") == "Ready")
      node.ready = condition.value("status", "") == "True";
  const Json::json_pointer unschedulable("/spec/unschedulable");
  node.cordoned = object.contains(unschedulable) && object.at(unschedulable) == true;
  for (const Json& taint : list_at(object, "/spec/taints"))
    node.taints.push_back(taint.value("key", ""));
  return node;
}

}  // namespace reckon::kubernetes
