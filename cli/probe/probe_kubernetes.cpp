#include "cli/probe/probe_kubernetes.h"
#include "cli/exit_code.h"
#include "cli/options/usage_error.h"

#include <fmt/format.h>

#include "cli/load/load.h"
#include "cli/output.h"
#include "cli/run/cluster_options.h"
#include "cli/run/run_parts.h"
#include "executor/kubernetes/pods/node_fit.h"
#include "executor/kubernetes/pods/node_probe.h"
#include "executor/kubernetes/preflight.h"
#include "executor/train/stop_signal.h"
#include "report/explain/node_ranking.h"
#include "sim/base/unit_text.h"

namespace reckon::cli {
namespace {

using namespace kubernetes;

/// The workers of the plan as the server's defaults leave them.
kubernetes::Json worker_job(const Kubectl& kubectl, const std::string& manifests) {
  const std::string made = kubectl.run(
      {"apply", "--filename", "-", "--dry-run=client", "--output=json"}, manifests, kManyObjects);
  const kubernetes::Json list = kubernetes::Json::parse(made);
  for (const kubernetes::Json& item : list.value("items", kubernetes::Json::array()))
    if (item.value("kind", "") == "Job") return item;
  throw std::runtime_error("the plan has no workers that a Job makes");
}

}  // namespace

int probe_cluster(const ProbeOptions& options) {
  constexpr std::int64_t kSteps = 50;
  if (options.files.size() != 1)
    throw UsageError("probe --on kubernetes takes the plan whose workers the nodes are to hold");
  if (options.image.empty()) throw UsageError("--image is missing: the image with reckon-worker");
  const std::string& file = options.files.front();
  const auto catalog = checked(load_catalogs(options));
  auto loaded = checked(load_plan(file, options, catalog));
  const Places places = loaded.file.places;
  const RunArtifact artifact = for_cluster(artifact_of(std::move(loaded), file, options), catalog);
  const std::string run = kubernetes_name(artifact.plan.name);
  const std::string& space = options.name_space;
  const Kubectl kubectl = Kubectl::of_user(options.context, space.empty() ? run : space);
  const ClusterFacts facts = cluster_facts(kubectl);
  KubernetesExport how = kubernetes_options(options);
  how.minor = facts.minor;
  how.name_space = kubectl.name_space();
  how.make_namespace = false;
  how.watched = true;
  how.claim = "none";  // no pod of a probe has one
  const auto manifests = checked(kubernetes_manifests(artifact, how, places));
  const kubernetes::Json worker = worker_job(kubectl, manifests);
  NodeProbeOptions probe{
      .name = run + "-probe",
      .worker = worker.dump(),
      .plan = write_artifact(artifact),
      .arguments = {},
      .nodes = nodes_for(demands_of({worker}).front(), kubectl.json({"get", "nodes"}))};
  for (const std::string& word :
       {std::string("--alone"), std::string("--steps"),
        std::to_string(options.steps.value_or(kSteps)), std::string("--log-records"),
        std::string("--out"), std::string("/checkpoints/probe")})
    probe.arguments.push_back(word);
  probe.pending_deadline = options.pending.value_or(probe.pending_deadline);
  if (probe.nodes.empty()) {
    print_error(
        "reckon: no node has room for a worker of the plan, were it empty; `reckon run "
        "--on kubernetes --dry-run` says why\n");
    return kAnswerIsNo;
  }
  if (!facts.namespace_exists) kubectl.run({"create", "namespace", kubectl.name_space()});
  watch_stop_signals();
  const auto nodes = ranked(probe_nodes(
      kubectl, probe, [](const std::string& text) { print_error(text + '\n'); },
      requested_by_signals));
  const std::string& out = options.out;
  if (!out.empty()) write_file(out, node_json(nodes));
  if (out != "-")
    print(options.format == OutputFormat::json ? node_json(nodes) : node_table(nodes));
  const bool all =
      std::ranges::none_of(nodes, [](const RankedNode& n) { return n.step_seconds == 0; });
  return all ? kDone : kAnswerIsNo;
}

}  // namespace reckon::cli
