#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

// The options of a command: declared once, each bound to a field of the command's own struct.
// Help, completion, parsing and errors come from that declaration. Boost.Program_options stays
// behind this header: it is slow to compile and its messages are not ours.
//
//   struct ProbeOptions : Files {
//     std::int64_t batch = 1;  // the default
//     std::vector<Option> declared() {
//       return {{{"batch", "N", "samples of one step (1)"}, whole(batch, 1, 1 << 20)}};
//     }
//   };
namespace reckon::cli {

/// What people see of an option.
struct OptionText {
  std::string name;   // "batch" of --batch
  std::string value;  // its word in the help text, or "table|json"; "": a switch
  std::string help;
};

/// Puts what was written into the field of an option; of a switch, "". Throws UsageError where that
/// is no value of it. `name` is the option's.
using Read = std::function<void(const std::string& name, const std::string& text)>;

struct Option {
  OptionText text;
  Read read;
  bool repeatable = false;
};

/// Words without a name: files, and what a command does with them.
struct Files {
  std::vector<std::string> files;
};

/// Reads `words` into the fields and `files`. False: help was asked for (--help, -h), and nothing
/// was read. Throws UsageError with everything that is wrong: unknown options, with the one that
/// was probably meant, values that are none, options that are given twice.
bool read_words(std::span<const Option> options, std::vector<std::string>& files,
                std::span<const std::string> words);

/// Of `words`, those that give one of these options (`names`), each as "--name" and its value, in
/// the order of `names`. The words have been read without an error.
std::vector<std::string> words_that_give(std::span<const std::string> names,
                                         std::span<const Option> options,
                                         std::span<const std::string> words);

/// A line for each, names and values in `width` columns.
std::string describe(std::span<const OptionText> texts, int width);
std::vector<OptionText> option_texts(std::span<const Option> options);

}  // namespace reckon::cli
