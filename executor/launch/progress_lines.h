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

/// What one line says; at least `step`, `seconds`, `samples_per_second` or `checkpoint`.
struct LogProgress {
  std::optional<std::int64_t> step;
  std::optional<Seconds> seconds;  // of one step
  std::optional<double> samples_per_second, loss;
  std::optional<std::int64_t> checkpoint;  // a checkpoint was saved behind so many steps

  bool tells_pace() const { return step || seconds || samples_per_second; }
  bool any() const { return tells_pace() || checkpoint; }
};

/// Keeps the number that stands for the named one of kProgressNames, where it has one.
void keep_progress(LogProgress& found, const std::string& name, const std::string& number);

class ProgressPattern {
 public:
  /// What common programs print: "step 12 loss 0.53", "Iteration [12/100]", tqdm's "12/100
  /// [00:03<00:21, 4.1it/s, loss=0.53]", Keras' "12/100 [==>...] - 12ms/step - loss: 0.53", "512
  /// images/s". Case does not count.
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
  std::vector<Rule> rules_;  // the first that finds a value keeps it
};

}  // namespace reckon
