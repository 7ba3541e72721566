#include "executor/kubernetes/node_probe.h"

#include <fmt/format.h>

#include <algorithm>

#include "executor/kubernetes/run_state.h"
#include "sim/calibration/measurements.h"

namespace reckon::kubernetes {
namespace {

/// As many pods at once as logs are followed of.
constexpr std::size_t kAtOnce = 32;

Json labels_of(const NodeProbeOptions& options) {
  return {{"app.kubernetes.io/name", "reckon"},
          {"app.kubernetes.io/instance", options.name},
          {"app.kubernetes.io/managed-by", "reckon"},
          {"reckon/attempt", "0"}};
}

/// A pod by itself: no rendezvous, and its checkpoints go where it goes.
void set_alone(Json& pod, const NodeProbeOptions& options) {
  for (const char* key : {"hostname", "subdomain", "serviceAccountName"}) pod.erase(key);
  Json& container = pod.at("containers").at(0);
  Json arguments = {"/plan/plan.yaml"};
  for (const std::string& word : options.arguments) arguments.push_back(word);
  container["args"] = std::move(arguments);
  container["env"] = Json::array();
  for (Json& volume : pod.at("volumes")) {
    const std::string name = volume.value("name", "");
    if (name == "checkpoints") volume = {{"name", name}, {"emptyDir", Json::object()}};
    if (name == "plan") volume["configMap"] = {{"name", options.name + "-plan"}};
  }
}

class Probe {
 public:
  Probe(const Kubectl& kubectl, const NodeProbeOptions& options,
        const std::function<void(const std::string&)>& message)
      : kubectl_(kubectl), options_(options), message_(message) {
    for (const std::string& node : options.nodes) nodes_.push_back({node, {}, ""});
  }

  void run(const std::function<StopRequest()>& stop) {
    Json list = {{"apiVersion", "v1"}, {"kind", "List"}, {"items", Json::array()}};
    list["items"].push_back(probe_plan(options_));
    for (std::size_t k = 0; k < nodes_.size(); ++k)
      list["items"].push_back(probe_job(options_, int(k)));
    kubectl_.run({"apply", "--filename", "-"}, list.dump(), kManyObjects);
    ClusterGangOptions gang;
    gang.run = options_.name;
    for (const ProbedNode& n : nodes_) gang.names.push_back(n.node);
    gang.foreign = true;         // what one of them ends with says nothing of the others
    gang.grace = Seconds{3600};  // and they go on
    gang.pending_deadline = options_.pending_deadline;
    ClusterGangEvents events;
    events.output = [this](int rank, Time, std::string_view line) { on_line(rank, line); };
    events.message = message_;
    const GangEnd end = watch_cluster_gang(kubectl_, gang, events, stop);
    for (std::size_t k = 0; k < nodes_.size(); ++k) judge(nodes_[k], end.ends[k]);
    if (end.culprit && nodes_[std::size_t(*end.culprit)].seconds.empty())
      nodes_[std::size_t(*end.culprit)].problem = end.reason;
  }

  std::vector<ProbedNode> nodes() && { return std::move(nodes_); }

 private:
  void on_line(int rank, std::string_view line) {
    if (!line.starts_with("{\"record\":")) {
      nodes_[std::size_t(rank)].problem = line;  // the last that it said
      return;
    }
    const auto parsed = parse_measurements("log", std::string(line) + '\n');
    if (!parsed) return;
    for (const StepRecord& step : parsed->steps)
      nodes_[std::size_t(rank)].seconds.push_back(step.seconds.count());
  }

  static void judge(ProbedNode& node, const ProcessEnd& end) {
    const std::string said = std::exchange(node.problem, "");
    if (end.good() && !node.seconds.empty()) return;
    node.problem = to_text(end) + (said.empty() ? "" : ": " + said);
    node.seconds.clear();
  }

  const Kubectl& kubectl_;
  const NodeProbeOptions& options_;
  const std::function<void(const std::string&)>& message_;
  std::vector<ProbedNode> nodes_;
};

}  // namespace

Json probe_plan(const NodeProbeOptions& options) {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", {{"name", options.name + "-plan"}, {"labels", labels_of(options)}}},
          {"data", {{"plan.yaml", options.plan}}}};
}

Json probe_job(const NodeProbeOptions& options, int rank) {
  const Json worker = Json::parse(options.worker);
  Json pod = worker.at("spec").at("template").at("spec");
  set_alone(pod, options);
  pod["nodeSelector"] = {{"kubernetes.io/hostname", options.nodes.at(std::size_t(rank))}};
  return {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"metadata",
           {{"name", fmt::format("{}-{}", options.name, rank)}, {"labels", labels_of(options)}}},
          {"spec",
           {{"completions", 1},
            {"parallelism", 1},
            {"backoffLimit", 0},
            {"template",
             {{"metadata",
               {{"labels", labels_of(options)},
                {"annotations", {{"reckon/first-rank", std::to_string(rank)}}}}},
              {"spec", std::move(pod)}}}}}};
}

std::vector<ProbedNode> probe_nodes(const Kubectl& kubectl, const NodeProbeOptions& options,
                                    const std::function<void(const std::string&)>& message,
                                    const std::function<StopRequest()>& stop) {
  std::vector<ProbedNode> all;
  for (std::size_t at = 0; at < options.nodes.size(); at += kAtOnce) {
    NodeProbeOptions part = options;
    const std::size_t end = std::min(at + kAtOnce, options.nodes.size());
    part.nodes.assign(options.nodes.begin() + std::ptrdiff_t(at),
                      options.nodes.begin() + std::ptrdiff_t(end));
    part.name = fmt::format("{}-{}", options.name, at / kAtOnce);
    Probe probe(kubectl, part, message);
    try {
      probe.run(stop);
    } catch (const KubectlError&) {
      delete_run(kubectl, part.name, false);
      throw;
    }
    delete_run(kubectl, part.name, false);
    for (ProbedNode& node : std::move(probe).nodes()) all.push_back(std::move(node));
    if (stop && stop() != StopRequest::none) break;
  }
  return all;
}

}  // namespace reckon::kubernetes
