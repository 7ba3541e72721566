#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/base/quantity.h"

// Progress out of the log of any program.
namespace reckon {

/// What one line says; at least `step`, `seconds`, `samples_per_second`, `checkpoint` or `resumed`.
struct LogProgress {
  std::optional<std::int64_t> step;
  std::optional<std::int64_t> bar;  // the step is of a progress bar of so many: of which, is open
  std::optional<Seconds> seconds;   // of one step
  std::optional<double> samples_per_second, loss;  // as the program prints them
  std::optional<std::int64_t> checkpoint;          // a checkpoint was saved behind so many steps
  /// It speaks of going on, restoring or loading behind so many steps. Where `step` is the same
  /// number it may be a step's line for all that: "step 12, loading data took 0.1 s".
  std::optional<std::int64_t> resumed;

  bool tells_pace() const { return step || seconds || samples_per_second; }
  bool any() const { return tells_pace() || checkpoint || resumed; }
};

/// Keeps the number that stands for the named one of kProgressNames, where it has one.
void keep_progress(LogProgress& found, const std::string& name, const std::string& number);

class ProgressPattern {
 public:
  /// What common programs print: "step 12 loss 0.53", "Iteration [12/100]", tqdm's "12/100
  /// [00:03<00:21, 4.1it/s, loss=0.53]", Keras' "12/100 [==>...] - 12ms/step - loss: 0.53", "512
  /// images/s", "Saving model checkpoint to out/checkpoint-100", and the logs of torchtitan,
  /// Megatron-LM, DeepSpeed, accelerate and MaxText. Case and colors do not count. A number of
  /// steps that is none of them ("Total optimization steps = 500") is left out, as are bars that
  /// say what else they count ("Map: 40/40 [") and checkpoints that are deleted or read.
  ProgressPattern();
  /// A regular expression (ECMAScript) with named groups, (?<step>...) or (?P<step>...): step,
  /// seconds, milliseconds, steps_per_second, samples_per_second, loss, checkpoint; at least one of
  /// the first five. The error says what is wrong with it.
  static tl::expected<ProgressPattern, std::string> from(const std::string& expression);

  /// nullopt: the line says nothing of progress. Of a line longer than 2,000 characters the last
  /// 2,000 are looked at.
  std::optional<LogProgress> match(std::string_view line) const;

 private:
  struct Rule {
    std::regex expression;
    std::vector<std::string> groups;  // by number - 1; "": no name
  };
  std::optional<LogProgress> match_common(const std::string& text) const;

  std::vector<Rule> rules_;  // the first that finds a value keeps it
  bool common_ = true;
};

}  // namespace reckon
