#include <fmt/format.h>

#include <vector>

#include "cli/command.h"
#include "cli/commands/groups.h"

namespace reckon::cli {

std::span<const Command> commands() {
  static const std::vector<Command> all = [] {
    std::vector<Command> joined;
    for (const auto group : {commands_that_forecast(), commands_of_runs(), commands_of_files(),
                             commands_of_installation()})
      joined.insert(joined.end(), group.begin(), group.end());
    return joined;
  }();
  return all;
}

const Command* find_command(std::string_view name) {
  for (const Command& c : commands())
    if (c.name == name) return &c;
  return nullptr;
}

std::string help_text() {
  std::string out =
      "reckon: time, cost and cluster of machine-learning training runs\n"
      "\n"
      "Usage: reckon COMMAND [arguments]\n"
      "\n"
      "Commands:\n";
  for (const Command& c : commands()) out += fmt::format("  {:<10} {}\n", c.name, c.summary);
  out += fmt::format("  {:<10} {}\n", "help", "show the help of a command: reckon help simulate");
  out +=
      "\n"
      "Options:\n"
      "  --help     show this help\n"
      "  --version  show the version, its commit and the catalog's date\n"
      "  --errors   error format on standard error: text|json, one object per line "
      "(text)\n"
      "\n"
      "Example:\n"
      "  reckon simulate scenarios/gke-p100-autoscaling.yaml\n";
  return out;
}

std::string questions_text() {
  return "reckon answers four questions about a training run before anyone pays for it.\n"
         "\n"
         "What to run, for a deadline and a budget?\n"
         "  reckon plan --model llama3_8b --finetune lora:16 --tokens 200M --deadline 72h@95% "
         "--budget 500USD\n"
         "How long will it take, what will it cost, and how sure is that?\n"
         "  reckon init --model resnet50 --epochs 90 --accelerator T4 --out job.yaml\n"
         "  reckon simulate job.yaml\n"
         "Where does the time go, and what would help?\n"
         "  reckon explain job.yaml\n"
         "Was the forecast right, and how is the next one better?\n"
         "  reckon run job.yaml --out runs/first\n"
         "  reckon diff runs/first/forecast.json runs/first\n"
         "  reckon calibrate runs/first --out mine.yaml\n"
         "\n"
         "All commands: reckon --help. Their options: reckon help plan.\n";
}

std::string help_text(const Command& command) {
  constexpr int kWidth = 24;
  return fmt::format("Usage: {}\n\n{}\n\nOptions:\n{}\n{}", command.usage, command.summary,
                     describe(command.options(), kWidth), command.details);
}

}  // namespace reckon::cli
