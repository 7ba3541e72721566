#include "cli/run/run_resume.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "cli/output.h"
#include "executor/train/checkpoint/checkpoint_set.h"
#include "executor/train/checkpoint/node_directory.h"
#include "executor/train/recipe/training_recipe.h"
#include "sim/base/text/shell_word.h"

namespace reckon::cli {
namespace {

namespace fs = std::filesystem;

/// Sets on this machine's nodes that the storage has nothing as new as.
std::optional<SetOnNodes> newer_on_nodes(const Plan& plan, const RunDirectory& directory) {
  auto on_nodes = newest_set_on_nodes(plan, directory.root);
  for (const CheckpointSet& set : list_sets(directory.checkpoints()))
    if (on_nodes && set.complete && set.step >= on_nodes->step) return std::nullopt;
  return on_nodes;
}

/// Without an option and its value.
std::vector<std::string> without(const std::string& option,
                                 std::span<const std::string> arguments) {
  std::vector<std::string> words;
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    if (arguments[k] == option)
      ++k;
    else if (!arguments[k].starts_with(option + '='))
      words.push_back(arguments[k]);
  }
  return words;
}

/// The same into a directory that is not there yet.
std::string command_elsewhere(std::span<const std::string> arguments, const fs::path& taken) {
  fs::path free;
  for (int n = 2; free.empty() || fs::exists(free); ++n)
    free = fmt::format("{}-{}", taken.string(), n);
  return command_with(without("--out", arguments),
                      std::vector<std::string>{"--out", free.string()});
}

}  // namespace

std::string budget_for(const RunEnd& end) {
  const double needs = end.status.estimate.cost_usd->p95;
  const double digit = std::pow(10, std::floor(std::log10(needs)) - 1);
  return fmt::format("{:.12g}USD", std::ceil(needs / digit) * digit);
}

std::string command_with(std::span<const std::string> arguments,
                         std::span<const std::string> words) {
  std::string command = "reckon run";
  for (const std::string& word : arguments)
    if (word != "--resume" && word != "--accept-changes") command += ' ' + shell_word(word);
  for (const std::string& word : words) command += ' ' + shell_word(word);
  return command;
}

bool may_go_on(const Plan& plan, const RunDirectory& directory, bool accepted,
               std::span<const std::string> arguments) {
  try {
    const CheckpointIdentity ours = identity_of_job(plan, plan.only_job().data);
    auto changes = changes_since(directory.checkpoints(), ours);
    const auto on_nodes = newer_on_nodes(plan, directory);
    if (on_nodes) {
      const auto since = changes_between(on_nodes->identity.recipe, ours.recipe);
      if (!since.empty()) changes = since;
      const auto& restart = plan.only_job().restart;
      const bool may_shrink = restart && restart->kind == RestartKind::elastic;
      const bool other_ranks = !may_shrink && on_nodes->identity.ranks != ours.ranks;
      if (since.empty() ? other_ranks : accepted)
        print_error(fmt::format(
            "reckon: warning: the nodes' checkpoint of step {} is of other settings or another "
            "layout: the run goes on from the newest in {}, and the nodes' go\n",
            on_nodes->step, directory.checkpoints().string()));
    }
    if (changes.empty() || accepted) return true;
    print_error(fmt::format(
        "reckon: error: {} was trained under other settings:\n{}"
        "go on under those, or take the new ones with: {}\n",
        directory.root.string(), to_text(changes),
        command_with(arguments, std::vector<std::string>{"--resume", "--accept-changes"})));
  } catch (const ForeignCheckpoint& e) {
    print_error(fmt::format("reckon: error: {}\nbegin anew with: {}\n", e.what(),
                            command_elsewhere(arguments, directory.root)));
  }
  return false;
}

std::string finished_already(const RunDirectory& directory, std::int64_t steps) {
  return fmt::format(
      "the run in {} has finished its {} steps: nothing is run and no record is added; more steps "
      "go on with it (--set workload.train.steps=N --resume --accept-changes), --out names a "
      "directory for another run",
      directory.root.string(), steps);
}

std::string how_to_go_on(const Plan& plan, const RunDirectory& directory, const RunEnd& end,
                         bool foreign, std::span<const std::string> arguments) {
  std::vector<std::string> words(arguments.begin(), arguments.end());
  if (end.budget_spent && end.status.estimate.cost_usd) {
    words = without("--budget", arguments);
    words.insert(words.end(), {"--budget", budget_for(end)});
  }
  // A run that was not started left nothing to be resumed.
  const bool begun = end.ran || end.checkpoint;
  const std::string again = begun ? command_with(words, std::vector<std::string>{"--resume"})
                                  : command_with(words, std::vector<std::string>{});
  if (!begun) return "nothing was started; begin with: " + again;
  if (foreign && !end.checkpoint) return "go on with: " + again;
  if (!end.checkpoint)
    return "there is no checkpoint that a run could go on from; begin anew with: " + again;
  const std::string where = fmt::format("checkpoint at step {}; go on with: ", *end.checkpoint);
  if (foreign) return where + again;
  try {
    // What was accepted and not saved since has to be accepted again.
    const bool changed =
        !changes_since(directory.checkpoints(), identity_of_job(plan, plan.only_job().data))
             .empty();
    return where +
           (changed ? command_with(words, std::vector<std::string>{"--resume", "--accept-changes"})
                    : again);
  } catch (const ForeignCheckpoint& e) {
    return fmt::format("{}\nbegin anew with: {}", e.what(),
                       command_elsewhere(arguments, directory.root));
  }
}

}  // namespace reckon::cli
