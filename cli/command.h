#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/exit_code.h"
#include "cli/options/option.h"

// A command is one thin file: options -> load -> call -> print. This is what they share.
namespace reckon::cli {

struct Command {
  std::string_view name;
  std::string_view summary;  // one line for `reckon --help`
  std::string_view usage;    // "reckon simulate FILE [options]"
  std::string_view details;  // behind the options: examples, exit codes
  int (*run)(const Command& self, std::span<const std::string> arguments);
  std::vector<OptionText> (*options)();
  bool needs_file = true;
};

/// All commands, in the order in which `reckon --help` shows them.
std::span<const Command> commands();
const Command* find_command(std::string_view name);

int run_simulate(const Command& self, std::span<const std::string> arguments);
std::vector<OptionText> simulate_options();
int run_explore(const Command& self, std::span<const std::string> arguments);
std::vector<OptionText> explore_options();
int run_accuracy(const Command& self, std::span<const std::string> arguments);
std::vector<OptionText> accuracy_options();
int run_self_check(const Command& self, std::span<const std::string> arguments);
std::vector<OptionText> self_check_options();
int run_explain(const Command& self, std::span<const std::string> arguments);
std::vector<OptionText> explain_options();
int run_compare(const Command& self, std::span<const std::string> arguments);
std::vector<OptionText> compare_options();
int run_plan(const Command& self, std::span<const std::string> arguments);
std::vector<OptionText> plan_options();
int run_check(const Command& self, std::span<const std::string> arguments);
std::vector<OptionText> check_options();
int run_init(const Command& self, std::span<const std::string> arguments);
std::vector<OptionText> init_options();
int run_schema(const Command& self, std::span<const std::string> arguments);
std::vector<OptionText> schema_options();
int run_doctor(const Command& self, std::span<const std::string> arguments);
std::vector<OptionText> doctor_options();
int run_completion(const Command& self, std::span<const std::string> arguments);
std::vector<OptionText> completion_options();
int run_catalog(const Command& self, std::span<const std::string> arguments);
std::vector<OptionText> catalog_options();
int run_model(const Command& self, std::span<const std::string> arguments);
std::vector<OptionText> model_options();
int run_run(const Command& self, std::span<const std::string> arguments);
std::vector<OptionText> run_options_text();
int run_status_command(const Command& self, std::span<const std::string> arguments);
std::vector<OptionText> status_options();
int run_stop(const Command& self, std::span<const std::string> arguments);
std::vector<OptionText> cluster_run_options();  // of stop
int run_delete(const Command& self, std::span<const std::string> arguments);
std::vector<OptionText> delete_options();
int run_probe(const Command& self, std::span<const std::string> arguments);
std::vector<OptionText> probe_options();
int run_trial_command(const Command& self, std::span<const std::string> arguments);
std::vector<OptionText> trial_options();
int run_diff(const Command& self, std::span<const std::string> arguments);
std::vector<OptionText> diff_options();
int run_export(const Command& self, std::span<const std::string> arguments);
std::vector<OptionText> export_options();
int run_import(const Command& self, std::span<const std::string> arguments);
std::vector<OptionText> import_options();
int run_calibrate(const Command& self, std::span<const std::string> arguments);
std::vector<OptionText> calibrate_options();
int run_history(const Command& self, std::span<const std::string> arguments);
std::vector<OptionText> history_options();

std::string help_text();
/// What `reckon` alone prints: the questions that it answers, each with a command.
std::string questions_text();
std::string help_text(const Command& command);

}  // namespace reckon::cli
