#include "executor/kubernetes/pods/silent_nodes.h"

#include "executor/kubernetes/pods/pod_view.h"

namespace reckon::kubernetes {

void SilentNodes::look() {
  if (refused_ || Seconds(Clock::now() - last_) < between_) return;
  last_ = Clock::now();
  const KubectlResult result = kubectl_.attempt({"get", "nodes", "--output=json"}, {}, Seconds{20});
  if (!result.good()) {
    refused_ = !passes(failure_of(result.err));
    return;
  }
  const Json all = Json::parse(result.out, nullptr, false);
  if (!all.is_object()) return;
  seen_ = Clock::now();
  std::map<std::string, Clock::time_point> since;
  for (const Json& item : all.value("items", Json::array())) {
    const NodeView node = node_view(item);
    if (node.ready) continue;
    const auto before = since_.find(node.name);
    since[node.name] = before != since_.end() ? before->second : seen_;
  }
  since_ = std::move(since);
}

bool SilentNodes::lost(const std::string& node) const {
  const auto at = since_.find(node);
  return at != since_.end() && Seconds(seen_ - at->second) >= patience_;
}

}  // namespace reckon::kubernetes
