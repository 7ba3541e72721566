#include "cli/run/run_resume.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/output.h"
#include "executor/train/checkpoint/checkpoint_set.h"
#include "sim/base/shell_word.h"

namespace reckon::cli {
namespace {

namespace fs = std::filesystem;

/// The user's command with these words in place of --resume and --accept-changes; whoever types it
/// gets what it says, whatever is in the names.
std::string command_with(std::span<const std::string> arguments,
                         std::initializer_list<std::string> words) {
  std::string command = "reckon run";
  for (const std::string& word : arguments)
    if (word != "--resume" && word != "--accept-changes") command += ' ' + shell_word(word);
  for (const std::string& word : words) command += ' ' + shell_word(word);
  return command;
}

/// The same into a directory that is not there yet.
std::string command_elsewhere(std::span<const std::string> arguments, const fs::path& taken) {
  std::vector<std::string> words;
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    if (arguments[k] == "--out")
      ++k;
    else if (!arguments[k].starts_with("--out="))
      words.push_back(arguments[k]);
  }
  fs::path free;
  for (int n = 2; free.empty() || fs::exists(free); ++n)
    free = fmt::format("{}-{}", taken.string(), n);
  return command_with(words, {"--out", free.string()});
}

}  // namespace

bool may_go_on(const Plan& plan, const RunDirectory& directory, bool accepted,
               std::span<const std::string> arguments) {
  try {
    const auto changes =
        changes_since(directory.checkpoints(), identity_of_job(plan, plan.only_job().data));
    if (changes.empty() || accepted) return true;
    print_error(
        fmt::format("reckon: error: {} was trained under other settings:\n{}"
                    "go on under those, or take the new ones with: {}\n",
                    directory.root.string(), to_text(changes),
                    command_with(arguments, {"--resume", "--accept-changes"})));
  } catch (const ForeignCheckpoint& e) {
    print_error(fmt::format("reckon: error: {}\nbegin anew with: {}\n", e.what(),
                            command_elsewhere(arguments, directory.root)));
  }
  return false;
}

std::string finished_already(const RunDirectory& directory, std::int64_t steps) {
  return fmt::format(
      "the run in {} has finished its {} steps: nothing is run and no record is added; more steps "
      "go on with it (--set workload.train.steps=N), --out names a directory for another run",
      directory.root.string(), steps);
}

std::string how_to_go_on(const Plan& plan, const RunDirectory& directory,
                         std::optional<std::int64_t> checkpoint, bool foreign,
                         std::span<const std::string> arguments) {
  const std::string again = command_with(arguments, {"--resume"});
  if (foreign && !checkpoint) return "go on with: " + again;
  if (!checkpoint)
    return "there is no checkpoint that a run could go on from; begin anew with: " + again;
  const std::string where = fmt::format("checkpoint at step {}; go on with: ", *checkpoint);
  if (foreign) return where + again;
  try {
    // What was accepted and not saved since has to be accepted again.
    const bool changed =
        !changes_since(directory.checkpoints(), identity_of_job(plan, plan.only_job().data))
             .empty();
    return where + (changed ? command_with(arguments, {"--resume", "--accept-changes"}) : again);
  } catch (const ForeignCheckpoint& e) {
    return fmt::format("{}\nbegin anew with: {}", e.what(),
                       command_elsewhere(arguments, directory.root));
  }
}

}  // namespace reckon::cli
