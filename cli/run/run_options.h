#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/run/cluster_options.h"
#include "executor/http/listen_address.h"
#include "sim/base/unit_text.h"
#include "sim/base/words.h"

namespace reckon::cli {

/// What is done for a run that will miss its deadline or budget: nothing, a line that says what
/// helps, or that.
enum class ReplanMode { off, ask, automatic };
constexpr auto words_of(ReplanMode) {
  return std::array{Word<ReplanMode>{"off", ReplanMode::off},
                    Word<ReplanMode>{"ask", ReplanMode::ask},
                    Word<ReplanMode>{"auto", ReplanMode::automatic}};
}

struct RunOptions : Files,
                    KubernetesObjects,
                    OutPath,
                    AnswerFormat,
                    ScenarioChanges,
                    Sampling,
                    CatalogChoice {
  std::optional<RunPlace> on;
  // On Kubernetes.
  bool dry_run = false;
  std::string attach;  // a run that is there; "": a new one
  bool unattended = false;
  std::optional<Seconds> pending;
  bool cordon_slow = false;
  // Wherever.
  std::optional<std::int64_t> checkpoint_steps;
  bool resume = false, accept_changes = false;
  std::optional<Seconds> deadline, hang, retry_delay;
  std::optional<MoneyText> budget;
  std::optional<ReplanMode> replan;  // nullopt: ask
  Seconds notice{30};
  std::optional<int> retries;
  std::optional<ListenAddress> metrics;
  std::string token_file;  // "": whoever asks --metrics is answered

  std::vector<Option> declared();
  ReplanMode replan_mode() const { return replan.value_or(ReplanMode::ask); }
  /// Is anything given that makes another plan of the scenario?
  bool changes_plan() const { return !overrides.empty() || !layers.empty(); }
  bool file_is_elsewhere() const { return !attach.empty(); }
  /// Throws UsageError where options contradict each other.
  void check() const;
};

/// The words behind the job of a run in a cluster, beside its plan, that whoever takes it up is
/// told again; what a launcher is told besides is its own.
std::vector<std::string> words_of_job(const RunOptions& options,
                                      std::span<const std::string> arguments);
/// The run as it was started by those words, with what this launcher was told besides.
RunOptions taken_up(std::span<const std::string> words, const RunOptions& asked);

/// What the workers' program is told behind the plan.
std::vector<std::string> worker_words(const RunOptions& options);

}  // namespace reckon::cli
