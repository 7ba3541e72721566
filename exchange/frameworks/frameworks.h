#pragma once
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "exchange/frameworks/launch_layout.h"
#include "sim/base/words.h"

// A plan's layout as the configuration of the launcher that runs it. Each writer says in its own
// file from which version's source it has the names of arguments and their allowed values.
namespace reckon {

enum class Framework { torchtitan, megatron, deepspeed, accelerate, maxtext };
constexpr auto words_of(Framework) {
  return std::array{Word<Framework>{"torchtitan", Framework::torchtitan},
                    Word<Framework>{"megatron", Framework::megatron},
                    Word<Framework>{"deepspeed", Framework::deepspeed},
                    Word<Framework>{"accelerate", Framework::accelerate},
                    Word<Framework>{"maxtext", Framework::maxtext}};
}

/// Who starts the processes of a node.
enum class Launcher { torchrun, accelerate, python };

struct LauncherFile {
  std::string name;  // "torchtitan.toml"
  std::string text;
  Launcher launcher = Launcher::torchrun;
  /// The program and its arguments, as words of bash with `$CONFIG` (the file's path),
  /// `$CHECKPOINTS` (a directory) and, where the program is the user's, `$TRAIN_PROGRAM`.
  std::string program;
  bool sourced = false;  // `text` is bash, read before `program` is started
  std::vector<std::pair<std::string, std::string>> environment;  // of all processes
  /// What the launcher leaves to the training program, and what the plan says of it: "a checkpoint
  /// every 120 steps".
  std::vector<std::string> left_to_program;
};

/// The file, or everything that the framework has no counterpart for, at its place in the scenario.
Expected<LauncherFile> launcher_file(Framework framework, const LaunchLayout& layout,
                                     const Places& places);

}  // namespace reckon
