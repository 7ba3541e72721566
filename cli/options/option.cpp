#include "cli/options/option.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <map>

#include "cli/options/usage_error.h"
#include "sim/base/diagnostic.h"
#include "sim/base/text/printable.h"

namespace reckon::cli {
namespace {

namespace po = boost::program_options;

constexpr const char* kWithoutName = "<files>";  // nobody types --<files>

using Values = std::map<std::string, std::vector<std::string>>;

po::parsed_options taken_apart(std::span<const Option> options,
                               std::span<const std::string> words) {
  po::options_description described;
  const auto takes_value = [] { return po::value<std::vector<std::string>>(); };
  for (const Option& option : options)
    if (option.text.value.empty())
      described.add_options()(option.text.name.c_str(), "");
    else
      described.add_options()(option.text.name.c_str(), takes_value(), "");
  described.add_options()("help,h", "")(kWithoutName, takes_value(), "");
  po::positional_options_description places;
  places.add(kWithoutName, -1);
  using namespace po::command_line_style;
  // No abbreviations: a new option would change their meaning.
  return po::command_line_parser(std::vector<std::string>(words.begin(), words.end()))
      .options(described)
      .positional(places)
      .style(unix_style & ~allow_guessing)
      .allow_unregistered()
      .run();
}

Values values_of(const po::parsed_options& parsed) {
  Values values;
  for (const auto& option : parsed.options) {
    if (option.unregistered) continue;
    auto& given = values[option.string_key];
    if (option.value.empty()) given.emplace_back();  // a switch
    given.insert(given.end(), option.value.begin(), option.value.end());
  }
  return values;
}

/// What is wrong, all of it; a line of each, and hints below it.
class Problems {
 public:
  void add(const std::string& what, const std::string& hint = "") {
    lines_.push_back(printable(what));
    if (!hint.empty()) lines_.push_back(hint);
  }
  /// What `read` finds wrong.
  template <class Function>
  void of(Function read) {
    try {
      read();
    } catch (const UsageErrorWithHint& e) {
      add(e.what(), e.hint);
    } catch (const UsageError& e) {
      add(e.what());
    }
  }
  void refuse() const {
    if (lines_.empty()) return;
    throw UsageErrorWithHint(lines_.front(),
                             fmt::format("{}", fmt::join(lines_.begin() + 1, lines_.end(), "\n")));
  }

 private:
  std::vector<std::string> lines_;
};

void find_unknown(const po::parsed_options& parsed, std::span<const Option> options,
                  Problems& problems) {
  std::vector<std::string> known{"--help"};
  for (const Option& option : options) known.push_back("--" + option.text.name);
  for (const auto& option : parsed.options) {
    if (!option.unregistered) continue;
    const std::string given =
        option.original_tokens.empty() ? "--" + option.string_key : option.original_tokens.front();
    const std::string name = given.substr(0, given.find('='));
    problems.add(fmt::format("unknown option '{}'{}", name, did_you_mean(name, known)));
  }
}

void read_option(const Option& option, const std::vector<std::string>& given, Problems& problems) {
  const std::string& name = option.text.name;
  const bool once = !option.repeatable && !option.text.value.empty();
  if (once && given.size() > 1)
    return problems.add(fmt::format("--{} is given {} times", name, given.size()));
  for (const std::string& text : given) problems.of([&] { option.read(name, text); });
}

}  // namespace

bool read_words(std::span<const Option> options, std::vector<std::string>& files,
                std::span<const std::string> words) {
  try {
    const po::parsed_options parsed = taken_apart(options, words);
    Problems problems;
    find_unknown(parsed, options, problems);
    Values values = values_of(parsed);
    const bool help = values.contains("help");
    for (const Option& option : options)
      if (const auto given = values.find(option.text.name); !help && given != values.end())
        read_option(option, given->second, problems);
    problems.refuse();
    if (help) return false;
    std::ranges::move(values[kWithoutName], std::back_inserter(files));
    return true;
  } catch (const po::error& e) {
    throw UsageError(e.what());
  }
}

std::vector<std::string> words_that_give(std::span<const std::string> names,
                                         std::span<const Option> options,
                                         std::span<const std::string> words) {
  const Values values = values_of(taken_apart(options, words));
  std::vector<std::string> out;
  for (const std::string& name : names) {
    const auto given = values.find(name);
    if (given == values.end()) continue;
    for (const std::string& text : given->second) {
      out.push_back("--" + name);
      if (!text.empty()) out.push_back(text);
    }
  }
  return out;
}

std::string describe(std::span<const OptionText> texts, int width) {
  std::string out;
  for (const OptionText& t : texts)
    out += fmt::format("  {:<{}} {}\n", fmt::format("--{} {}", t.name, t.value), width, t.help);
  return out;
}

std::vector<OptionText> option_texts(std::span<const Option> options) {
  std::vector<OptionText> out;
  for (const Option& option : options) out.push_back(option.text);
  return out;
}

}  // namespace reckon::cli
