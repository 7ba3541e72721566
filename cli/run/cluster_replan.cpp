#include "cli/run/cluster_replan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "cli/errors.h"
#include "executor/kubernetes/plan_state.h"
#include "executor/kubernetes/pods/free_room.h"
#include "executor/train/trainable.h"
#include "planner/nodes_in_room.h"
#include "planner/question.h"
#include "planner/remedies.h"
#include "sim/base/text/shell_word.h"

namespace reckon::cli {
namespace {

using namespace kubernetes;

/// What went wrong with the input, in one line for each.
std::string mistakes_text(const WrongInput& error) {
  std::string text;
  for (const Diagnostic& d : error.diagnostics) text += (text.empty() ? "" : "; ") + d.what;
  return text;
}

}  // namespace

std::string attach_command(const RunOptions& options, const std::string& run,
                           const std::string& name_space) {
  std::string command = "reckon run --on kubernetes --attach " + shell_word(run);
  if (!options.context.empty()) command += " --context " + shell_word(options.context);
  if (name_space != run) command += " --namespace " + shell_word(name_space);
  if (!options.out.empty()) command += " --out " + shell_word(options.out);
  return command;
}

RunsAt runs_in_cluster(const RunOptions& options, const std::string& run, const Kubectl& kubectl) {
  RunsAt at;
  at.this_machine = false;
  at.has_nodes = [](const Plan& now, const Plan& next) {
    const PlannedPool *had = now.pool_with(Role::worker), *wants = next.pool_with(Role::worker);
    if (had == nullptr || wants == nullptr) return true;
    return !wants->autoscaling || wants->nodes_initial <= had->nodes_initial;
  };
  at.trains = [directory = options.node_directory](const Plan& plan) {
    return trains_in_watched_pods(plan, !directory.empty());
  };
  at.nodes = [run, &kubectl](const Scenario& scenario, const Plan& now) {
    std::vector<int> nodes = planner::nodes_of_run(scenario);
    const PlannedPool* pool = now.pool_with(Role::worker);
    if (nodes.empty() || (pool != nullptr && pool->autoscaling)) return nodes;
    const int workers = now.only_job().strategy.workers;
    const int nodes_now = std::max(1, planner::worker_pool(scenario).nodes.initial);
    const int most = workers * *std::ranges::max_element(nodes) / nodes_now;
    return planner::nodes_in_room(std::move(nodes), workers, nodes_now,
                                  workers_with_room(kubectl, run, most).value_or(0));
  };
  at.command = [command = attach_command(options, run, kubectl.name_space())](
                   std::span<const std::string> changes) {
    std::string text = command + " --resume";
    for (const std::string& change : changes) text += " --set " + shell_word(change);
    return text;
  };
  return at;
}

DecidedPlan::DecidedPlan(Make make, const Kubectl& kubectl, Display& display)
    : make_(std::move(make)), kubectl_(kubectl), display_(display) {}

DecidedPlan::~DecidedPlan() {
  cancelled_ = true;
  if (made_.valid()) made_.wait();
}

void DecidedPlan::look(const DecisionRecord& decision, const RunState& state,
                       std::int64_t attempt) {
  if (part_ || failed_) return;
  if (!made_.valid()) {
    made_ = std::async(std::launch::async, [this, decision, state, attempt] {
      ClusterPart part = make_(decision.changes);
      RunState next = state;
      next.plan = write_artifact(part.artifact);
      next.plan_from = attempt + 1;
      next.decisions.push_back(decision);
      patiently(
          [&] {
            write_plan_state(kubectl_, next);
            return 0;
          },
          [this](const KubectlError&, Seconds delay) {
            const auto until = std::chrono::steady_clock::now() + delay;
            while (!cancelled_ && std::chrono::steady_clock::now() < until)
              std::this_thread::sleep_for(std::chrono::milliseconds(100));
            return !cancelled_;
          });
      return part;
    });
    return;
  }
  if (made_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
  std::string why;
  try {
    part_ = made_.get();
    return;
  } catch (const WrongInput& error) {
    why = mistakes_text(error);
  } catch (const std::runtime_error& error) {
    why = error.what();
  }
  failed_ = true;
  display_.line(fmt::format("the run stays under its plan, the other could not be made: {}", why));
}

ClusterPart DecidedPlan::take() { return std::exchange(part_, std::nullopt).value(); }

}  // namespace reckon::cli
