#include "cli/worker/arguments.h"

#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <stdexcept>

#include "sim/base/diagnostic.h"
#include "sim/base/unit_text.h"

namespace reckon::worker {
namespace po = boost::program_options;

std::string describe(std::span<const OptionRow> rows, int width) {
  std::string text;
  for (const OptionRow& row : rows)
    text +=
        fmt::format("  {:<{}} {}\n", fmt::format("--{} {}", row.name, row.value), width, row.help);
  return text;
}

Arguments::Arguments(std::span<const OptionRow> rows, const char* positional,
                     std::span<const std::string> words, std::span<const char* const> flags) {
  po::options_description described;
  std::vector<std::string> names{"help"};
  described.add_options()("help,h", "");
  for (const char* flag : flags) {
    names.emplace_back(flag);
    described.add_options()(flag, "");
  }
  bool listed = false;
  for (const OptionRow& row : rows) {
    names.emplace_back(row.name);
    listed = listed || std::string_view(row.name) == positional;
    if (*row.value == '\0')
      described.add_options()(row.name, "");
    else
      described.add_options()(row.name, po::value<std::vector<std::string>>());
  }
  if (!listed) described.add_options()(positional, po::value<std::vector<std::string>>());
  po::positional_options_description places;
  places.add(positional, -1);
  namespace style = po::command_line_style;
  constexpr int kStyle = style::default_style & ~style::allow_guessing;
  try {
    const std::vector<std::string> given(words.begin(), words.end());
    const auto parsed =
        po::command_line_parser(given).options(described).positional(places).style(kStyle).run();
    for (const po::option& option : parsed.options) {
      auto& values = values_[option.string_key];
      values.insert(values.end(), option.value.begin(), option.value.end());
    }
  } catch (const po::unknown_option& e) {
    const std::string option = e.get_option_name();
    const auto bare = option.substr(std::min(option.find_first_not_of('-'), option.size()));
    throw std::invalid_argument(
        fmt::format("unknown option '{}'{}", option, did_you_mean(bare, names)));
  } catch (const po::error& e) {
    throw std::invalid_argument(e.what());
  }
}

std::vector<std::string> Arguments::all(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::vector<std::string>{} : found->second;
}

std::optional<std::string> Arguments::one(const std::string& name) const {
  const auto values = all(name);
  if (values.size() > 1) throw std::invalid_argument(fmt::format("--{} is given twice", name));
  return values.empty() ? std::nullopt : std::optional(values.front());
}

std::optional<std::int64_t> Arguments::integer(const std::string& name, std::int64_t least,
                                               std::int64_t most) const {
  const auto text = one(name);
  if (!text) return std::nullopt;
  const auto value = parse_integer(*text);
  if (!value || *value < least || *value > most) {
    const bool bounded = most < std::numeric_limits<int>::max();
    throw std::invalid_argument(fmt::format("--{}: '{}' is no whole number from {} {}", name, *text,
                                            least, bounded ? fmt::format("to {}", most) : "on"));
  }
  return *value;
}

std::optional<Seconds> Arguments::duration(const std::string& name) const {
  const auto text = one(name);
  if (!text) return std::nullopt;
  const auto value = parse_duration(*text);
  if (!value) throw std::invalid_argument(fmt::format("--{}: {}", name, value.error()));
  if (value->count() < 0)
    throw std::invalid_argument(fmt::format("--{}: '{}' is negative", name, *text));
  return *value;
}

}  // namespace reckon::worker
