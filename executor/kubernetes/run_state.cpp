#include "executor/kubernetes/run_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "executor/comm/rendezvous/job_secret.h"
#include "executor/kubernetes/plan_state.h"
#include "executor/kubernetes/pods/cluster_gang.h"
#include "executor/train/records/pod_orders.h"
#include "sim/base/text/base64.h"
#include "sim/base/unit_text.h"

namespace reckon::kubernetes {
namespace {

constexpr const char* kPlan = "plan.reckon";
constexpr const char* kPhase = "reckon/phase";
constexpr const char* kReason = "reckon/reason";
constexpr const char* kExitCode = "reckon/exit-code";
constexpr const char* kCountedFrom = "reckon/counted-from";
constexpr const char* kCordonedIn = "reckon/cordoned-in";
constexpr const char* kInterruptions = "interruptions";

std::string text_of(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : "";
}

RunPhase phase_of(const std::string& text) {
  return from_text<RunPhase>(text).value_or(RunPhase::running);
}

/// Records of an older or newer reckon that this one cannot read are left out.
std::vector<KeptInterruption> interruptions_of(const std::string& text) {
  std::vector<KeptInterruption> kept;
  const Json list = Json::parse(text, nullptr, false);
  if (!list.is_array()) return kept;
  for (const Json& item : list) {
    if (!item.is_object() || !item.contains("record")) continue;
    const auto read = parse_measurements("interruptions", item.at("record").dump() + '\n');
    if (!read || read->interruptions.size() != 1) continue;
    kept.push_back({.record = read->interruptions.front(),
                    .open = item.value("open", false),
                    .done = item.value("done", std::int64_t{0}),
                    .step = Seconds{item.value("step_seconds", 0.0)},
                    .checkpoint = {},
                    .futile = item.value("futile", false),
                    .fruitless = item.value("fruitless", false)});
    if (item.contains("checkpoint"))
      kept.back().checkpoint = item.value("checkpoint", std::int64_t{0});
  }
  return kept;
}

/// Deletes objects of the run that who may not delete them could not make.
std::string delete_if_allowed(const Kubectl& kubectl, const std::string& run, const char* kind) {
  try {
    return kubectl.run(
        {"delete", kind, "--selector", selector_of(run), "--ignore-not-found", "--wait=false"});
  } catch (const KubectlError& error) {
    if (error.failure() != KubectlFailure::forbidden) throw;
    return "";
  }
}

}  // namespace

std::string state_object_of(const std::string& run) { return run + "-run"; }

Json labels_of_run(const std::string& run) {
  return {{"app.kubernetes.io/name", "reckon"},
          {"app.kubernetes.io/instance", run},
          {"app.kubernetes.io/managed-by", "reckon"}};
}

Words phase_question(const std::string& run) {
  return {"get", "configmap", state_object_of(run),
          fmt::format("--output=jsonpath={{.metadata.annotations.{}}}", kPhase)};
}

void create_state(const Kubectl& kubectl, const RunState& state) {
  const Json labels = labels_of_run(state.run);
  Json data = {{"words", Json(state.words).dump()}, {"started", state.started}};
  data.update(plan_data(state));
  const Json map = {{"apiVersion", "v1"},
                    {"kind", "ConfigMap"},
                    {"metadata",
                     {{"name", state_object_of(state.run)},
                      {"labels", labels},
                      {"annotations", {{kPhase, to_text(state.phase)}, {kReason, state.reason}}}}},
                    {"binaryData", {{kPlan, to_base64(state.plan)}}},
                    {"data", std::move(data)}};
  kubectl.run({"create", "--filename", "-"}, map.dump());
}

/// It goes to kubectl by its standard input: no command line and no file shows it.
void renew_secret(const Kubectl& kubectl, const std::string& run, const SecretName& name) {
  const Json secret = {{"apiVersion", "v1"},
                       {"kind", "Secret"},
                       {"type", "Opaque"},
                       {"metadata", {{"name", name.object}, {"labels", labels_of_run(run)}}},
                       {"stringData", {{name.key, JobSecret::random().text()}}}};
  kubectl.run({"delete", "secret", name.object, "--ignore-not-found"});
  kubectl.run({"create", "--filename", "-"}, secret.dump());
}

std::optional<RunState> read_state(const Kubectl& kubectl, const std::string& run) {
  Json map;
  try {
    map = kubectl.json({"get", "configmap", state_object_of(run)});
  } catch (const KubectlError& error) {
    if (error.failure() == KubectlFailure::missing) return std::nullopt;
    throw;
  }
  const Json data = map.value("data", Json::object());
  const Json binary = map.value("binaryData", Json::object());
  const Json notes = map.value(Json::json_pointer("/metadata/annotations"), Json::object());
  RunState state{.run = run,
                 .plan = from_base64(text_of(binary, kPlan)).value_or(""),
                 .words = {},
                 .started = text_of(data, "started"),
                 .phase = phase_of(text_of(notes, kPhase)),
                 .reason = text_of(notes, kReason),
                 .exit_code = {},
                 .interruptions = interruptions_of(text_of(data, kInterruptions)),
                 .counted_from = parse_integer(text_of(notes, kCountedFrom)).value_or(0)};
  if (const auto code = parse_integer(text_of(notes, kExitCode))) state.exit_code = int(*code);
  if (const auto attempt = parse_integer(text_of(notes, kCordonedIn))) state.cordoned_in = *attempt;
  read_plan_data(data, state);
  state.version = map.value(Json::json_pointer("/metadata/resourceVersion"), std::string());
  const Json words = Json::parse(text_of(data, "words"), nullptr, false);
  if (words.is_array())
    for (const Json& word : words)
      if (word.is_string()) state.words.push_back(word);
  return state;
}

void set_phase(const Kubectl& kubectl, const std::string& run, RunPhase phase,
               const std::string& reason, std::optional<int> exit_code,
               const std::string& version) {
  Words words{"annotate",
              "configmap",
              state_object_of(run),
              "--overwrite",
              fmt::format("{}={}", kPhase, to_text(phase)),
              fmt::format("{}={}", kReason, reason),
              fmt::format("{}={}", kExitCode, exit_code ? std::to_string(*exit_code) : "")};
  if (!version.empty()) words.push_back("--resource-version=" + version);
  kubectl.run(words);
}

void count_from(const Kubectl& kubectl, const std::string& run, std::int64_t attempt) {
  kubectl.run({"annotate", "configmap", state_object_of(run), "--overwrite",
               fmt::format("{}={}", kCountedFrom, attempt)});
}

void resume_state(const Kubectl& kubectl, const std::string& run, std::int64_t attempt) {
  kubectl.run({"annotate", "configmap", state_object_of(run), "--overwrite",
               fmt::format("{}={}", kPhase, to_text(RunPhase::running)),
               fmt::format("{}=", kReason), fmt::format("{}={}", kCountedFrom, attempt)});
}

void note_cordon(const Kubectl& kubectl, const std::string& run, std::int64_t attempt) {
  kubectl.run({"annotate", "configmap", state_object_of(run), "--overwrite",
               fmt::format("{}={}", kCordonedIn, attempt)});
}

void set_interruptions(const Kubectl& kubectl, const std::string& run,
                       const std::vector<KeptInterruption>& interruptions) {
  Json list = Json::array();
  for (const KeptInterruption& kept : interruptions) {
    list.push_back({{"record", Json::parse(to_json(kept.record))},
                    {"open", kept.open},
                    {"done", kept.done},
                    {"step_seconds", kept.step.count()},
                    {"futile", kept.futile},
                    {"fruitless", kept.fruitless}});
    if (kept.checkpoint) list.back()["checkpoint"] = *kept.checkpoint;
  }
  const Json patch = {{"data", {{kInterruptions, list.dump()}}}};
  kubectl.run(
      {"patch", "configmap", state_object_of(run), "--type", "merge", "--patch", patch.dump()});
}

std::optional<NewestAttempt> newest_attempt(const Kubectl& kubectl, const std::string& run) {
  const Json jobs = kubectl.json({"get", "jobs", "--selector", selector_of(run)});
  std::optional<NewestAttempt> newest;
  for (const Json& job : jobs.at("items")) {
    const Json labels = job.value(Json::json_pointer("/metadata/labels"), Json::object());
    const auto number = parse_integer(text_of(labels, "reckon/attempt"));
    if (!number) continue;
    if (!newest || *number > newest->objects) newest = NewestAttempt{*number, *number, 0};
    if (*number != newest->objects) continue;
    const Json notes = job.value(Json::json_pointer("/metadata/annotations"), Json::object());
    if (const auto start = parse_integer(text_of(notes, kStartAnnotation)))
      newest->number = std::max<std::int64_t>(newest->number, *start);
    newest->pods_wanted += job.value(Json::json_pointer("/spec/parallelism"), 1);
  }
  return newest;
}

std::string delete_run(const Kubectl& kubectl, const std::string& run, bool with_claim) {
  const std::string kinds = std::string(
                                "jobs,pods,services,configmaps,serviceaccounts,"
                                "networkpolicies.networking.k8s.io") +
                            (with_claim ? ",persistentvolumeclaims" : "");
  return kubectl.run({"delete", kinds, "--selector", selector_of(run), "--ignore-not-found",
                      "--wait=false"}) +
         delete_if_allowed(kubectl, run, "secrets");
}

std::string delete_lease(const Kubectl& kubectl, const std::string& run) {
  return delete_if_allowed(kubectl, run, "leases.coordination.k8s.io");
}

}  // namespace reckon::kubernetes
