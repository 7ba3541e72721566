#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

// A command is one thin file: options -> load -> call -> print. This is what they share.
namespace reckon::cli {

/// Exit codes of every command; of several files the highest wins.
enum ExitCode { kDone = 0, kAnswerIsNo = 1, kInputIsWrong = 2, kEnvironmentFailed = 3 };

struct Command {
  std::string_view name;
  std::string_view summary;  // one line for `reckon --help`
  std::string_view usage;    // "reckon simulate FILE [options]"
  std::string_view details;  // behind the options: examples, exit codes
  int (*run)(const Command& self, std::span<const std::string> arguments);
  std::string (*options)();  // the options' help text
  bool needs_file = true;
};

/// All commands, in the order in which `reckon --help` shows them.
std::span<const Command> commands();
const Command* find_command(std::string_view name);

int run_simulate(const Command& self, std::span<const std::string> arguments);
std::string simulate_options();
int run_accuracy(const Command& self, std::span<const std::string> arguments);
std::string accuracy_options();
int run_self_check(const Command& self, std::span<const std::string> arguments);
std::string self_check_options();
int run_explain(const Command& self, std::span<const std::string> arguments);
std::string explain_options();
int run_compare(const Command& self, std::span<const std::string> arguments);
std::string compare_options();
int run_plan(const Command& self, std::span<const std::string> arguments);
std::string plan_options();
int run_check(const Command& self, std::span<const std::string> arguments);
std::string check_options();
int run_init(const Command& self, std::span<const std::string> arguments);
std::string init_options();
int run_schema(const Command& self, std::span<const std::string> arguments);
std::string schema_options();
int run_doctor(const Command& self, std::span<const std::string> arguments);
std::string doctor_options();
int run_completion(const Command& self, std::span<const std::string> arguments);
std::string completion_options();
int run_catalog(const Command& self, std::span<const std::string> arguments);
std::string catalog_options();
int run_model(const Command& self, std::span<const std::string> arguments);
std::string model_options();
int run_run(const Command& self, std::span<const std::string> arguments);
std::string run_options_text();
int run_status_command(const Command& self, std::span<const std::string> arguments);
int run_stop(const Command& self, std::span<const std::string> arguments);
std::string cluster_run_options();  // of status and stop
int run_delete(const Command& self, std::span<const std::string> arguments);
std::string delete_options();
int run_probe(const Command& self, std::span<const std::string> arguments);
std::string probe_options();
int run_trial_command(const Command& self, std::span<const std::string> arguments);
std::string trial_options();
int run_diff(const Command& self, std::span<const std::string> arguments);
std::string diff_options();
int run_export(const Command& self, std::span<const std::string> arguments);
std::string export_options();
int run_import(const Command& self, std::span<const std::string> arguments);
std::string import_options();
int run_calibrate(const Command& self, std::span<const std::string> arguments);
std::string calibrate_options();
int run_history(const Command& self, std::span<const std::string> arguments);
std::string history_options();

std::string help_text();
std::string help_text(const Command& command);

}  // namespace reckon::cli
