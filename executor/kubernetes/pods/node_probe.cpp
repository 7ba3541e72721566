#include "executor/kubernetes/pods/node_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "sim/base/text/base64.h"
#include "sim/measurement/measurements.h"

namespace reckon::kubernetes {
namespace {

/// Deletes what a probe made, however it ends; where that cannot be done, tells what is to be done,
/// as what was measured is worth more.
class CleanUp {
 public:
  CleanUp(const Kubectl& kubectl, const std::string& name,
          const std::function<void(const std::string&)>& message)
      : kubectl_(kubectl), name_(name), message_(message) {}
  ~CleanUp() {
    const std::string selector = selector_of(name_);
    try {
      kubectl_.run(
          {"delete", kKinds, "--selector", selector, "--ignore-not-found", "--wait=false"});
    } catch (const std::exception& error) {
      if (message_)
        message_(
            fmt::format("the probe's pods may be there still ({}): kubectl --namespace {} "
                        "delete {} --selector {}",
                        error.what(), kubectl_.name_space(), kKinds, selector));
    }
  }
  CleanUp(const CleanUp&) = delete;
  CleanUp& operator=(const CleanUp&) = delete;

 private:
  static constexpr const char* kKinds = "jobs,pods,configmaps";
  const Kubectl& kubectl_;
  const std::string& name_;
  const std::function<void(const std::string&)>& message_;
};

/// Of its own, so that pods of an earlier probe that are being deleted are none of this one; short
/// enough for a label with what is put behind it.
std::string name_of_its_own(const NodeProbeOptions& options) {
  constexpr std::size_t kLongest = 40;
  std::string name = options.name.substr(0, kLongest);
  while (name.ends_with('-')) name.pop_back();
  return fmt::format("{}-{:05x}", name, std::random_device{}() & 0xfffffU);
}

/// As many pods at once as logs are followed of.
constexpr std::size_t kAtOnce = 32;

Json probe_labels(const NodeProbeOptions& options) {
  return {{"app.kubernetes.io/name", "reckon"},
          {"app.kubernetes.io/instance", options.name},
          {"app.kubernetes.io/managed-by", "reckon"},
          {"reckon/attempt", "0"}};
}

/// Processes that meet have a secret; this one is alone.
void drop_secret(Json& list) {
  Json kept = Json::array();
  for (Json& item : list)
    if (item.value("name", "") != "secret") kept.push_back(std::move(item));
  list = std::move(kept);
}

/// A pod by itself: no rendezvous, and its checkpoints go where it goes.
void set_alone(Json& pod, const NodeProbeOptions& options) {
  for (const char* key : {"hostname", "subdomain", "serviceAccountName"}) pod.erase(key);
  Json& container = pod.at("containers").at(0);
  Json arguments = {"/plan/plan.reckon"};
  for (const std::string& word : options.arguments) arguments.push_back(word);
  container["args"] = std::move(arguments);
  container["env"] = Json::array();
  if (container.contains("volumeMounts")) drop_secret(container.at("volumeMounts"));
  drop_secret(pod.at("volumes"));
  for (Json& volume : pod.at("volumes")) {
    const std::string name = volume.value("name", "");
    if (name == "checkpoints") volume = {{"name", name}, {"emptyDir", {{"sizeLimit", "32Gi"}}}};
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
    gang.foreign = gang.independent = true;
    gang.pending_deadline = options_.pending_deadline;
    ClusterGangEvents events;
    events.output = [this](int rank, Time, std::string_view line) { on_line(rank, line); };
    events.message = message_;
    const GangEnd end = watch_cluster_gang(kubectl_, gang, events, stop);
    for (std::size_t k = 0; k < nodes_.size(); ++k) judge(nodes_[k], end.ends[k], end.reasons[k]);
  }

  std::vector<ProbedNode> nodes() && { return std::move(nodes_); }

 private:
  void on_line(int rank, std::string_view line) {
    if (!line.starts_with("{\"record\":")) {
      std::string& said = nodes_[std::size_t(rank)].problem;  // the last
      said = line;
      std::ranges::replace_if(
          said, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
      return;
    }
    const auto parsed = parse_measurements("log", std::string(line) + '\n');
    if (!parsed) return;
    for (const StepRecord& step : parsed->steps)
      nodes_[std::size_t(rank)].seconds.push_back(step.seconds.count());
  }

  static void judge(ProbedNode& node, const ProcessEnd& end, const std::string& reason) {
    const std::string said = std::exchange(node.problem, "");
    if (end.good() && !node.seconds.empty()) return;
    node.problem = (reason.empty() ? to_text(end) : reason) + (said.empty() ? "" : ": " + said);
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
          {"metadata", {{"name", options.name + "-plan"}, {"labels", probe_labels(options)}}},
          {"binaryData", {{"plan.reckon", to_base64(options.plan)}}}};
}

Json probe_job(const NodeProbeOptions& options, int rank) {
  const Json worker = Json::parse(options.worker);
  Json pod = worker.at("spec").at("template").at("spec");
  set_alone(pod, options);
  pod.erase("nodeSelector");
  // By its object's name: the label of the host's name may be another, and two nodes may share it.
  pod["affinity"] = {
      {"nodeAffinity",
       {{"requiredDuringSchedulingIgnoredDuringExecution",
         {{"nodeSelectorTerms",
           Json::array(
               {{{"matchFields", Json::array({{{"key", "metadata.name"},
                                               {"operator", "In"},
                                               {"values", Json::array({options.nodes.at(
                                                              std::size_t(rank))})}}})}}})}}}}}};
  return {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"metadata",
           {{"name", fmt::format("{}-{}", options.name, rank)}, {"labels", probe_labels(options)}}},
          {"spec",
           {{"completions", 1},
            {"parallelism", 1},
            {"backoffLimit", 0},
            {"template",
             {{"metadata",
               {{"labels", probe_labels(options)},
                {"annotations", {{"reckon/first-rank", std::to_string(rank)}}}}},
              {"spec", std::move(pod)}}}}}};
}

std::vector<ProbedNode> probe_nodes(const Kubectl& kubectl, const NodeProbeOptions& options,
                                    const std::function<void(const std::string&)>& message,
                                    const std::function<StopRequest()>& stop) {
  std::vector<ProbedNode> all;
  const std::string name = name_of_its_own(options);
  for (std::size_t at = 0; at < options.nodes.size(); at += kAtOnce) {
    NodeProbeOptions part = options;
    const std::size_t end = std::min(at + kAtOnce, options.nodes.size());
    part.nodes.assign(options.nodes.begin() + std::ptrdiff_t(at),
                      options.nodes.begin() + std::ptrdiff_t(end));
    part.name = fmt::format("{}-{}", name, at / kAtOnce);
    Probe probe(kubectl, part, message);
    {
      const CleanUp clean_up(kubectl, part.name, message);
      probe.run(stop);
    }
    for (ProbedNode& node : std::move(probe).nodes()) all.push_back(std::move(node));
    if (stop && stop() != StopRequest::none) break;
  }
  return all;
}

}  // namespace reckon::kubernetes
