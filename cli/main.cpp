#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/errors.h"
#include "cli/load/load.h"
#include "cli/options/usage_error.h"
#include "cli/output.h"
#include "cli/version.h"
#include "sim/base/diagnostic.h"
#include "sim/base/text/printable.h"

namespace reckon::cli {
namespace {

std::vector<std::string> names_of_commands() {
  std::vector<std::string> names{"help"};
  for (const Command& c : commands()) names.emplace_back(c.name);
  return names;
}

const Command& command_named(const std::string& name) {
  if (const Command* command = find_command(name)) return *command;
  throw UsageError(
      fmt::format("unknown command '{}'{}", name, did_you_mean(name, names_of_commands())));
}

int help(const std::vector<std::string>& arguments) {
  print(arguments.empty() ? help_text() : help_text(command_named(arguments.front())));
  return kDone;
}

/// The newest day on which a source of the catalog was read; "" where no catalog can be read.
std::string catalog_date() {
  if (default_catalog_directory().empty()) return "";
  const auto catalog = load_catalogs({});
  if (!catalog) return "";
  return std::ranges::max_element(catalog->sources, {}, &Source::retrieved)->retrieved;
}

int dispatch(std::vector<std::string> arguments) {
  if (arguments.empty()) {
    print(questions_text());
    return kDone;
  }
  const std::string name = arguments.front();
  arguments.erase(arguments.begin());
  if (name == "--help" || name == "-h" || name == "help") return help(arguments);
  if (name == "--version") {
    print(version_line("reckon", catalog_date()) + "\n");
    return kDone;
  }
  if (name.starts_with("-"))
    throw UsageError(
        fmt::format("unknown option '{}'{}", name,
                    did_you_mean(name, std::vector<std::string>{"--help", "--version"})));
  const Command& command = command_named(name);
  return command.run(command, arguments);
}

int refuse_usage(const UsageError& e, std::string hint, const std::string& name) {
  const Command* command = find_command(name);
  if (!hint.empty()) hint += '\n';
  hint += fmt::format("Try 'reckon {}--help'.",
                      command != nullptr ? fmt::format("{} ", command->name) : "");
  report(ErrorCode::usage, e.what(), hint,
         fmt::format("reckon: {}\n{}\n", printable(e.what()), hint));
  return kInputIsWrong;
}

int refuse_question(const Diagnostic& d) {
  report(ErrorCode::limit, d.what, d.hint, format(d) + '\n');
  return kInputIsWrong;
}

}  // namespace
}  // namespace reckon::cli

int main(int argc, char** argv) {
  using namespace reckon::cli;
  std::signal(SIGPIPE, SIG_IGN);  // `reckon ... | head` ends quietly: print() sees EPIPE
  std::vector<std::string> words(argv + 1, argv + argc);
  try {
    take_error_format(words);
    return dispatch(words);
  } catch (const UsageErrorWithHint& e) {
    return refuse_usage(e, e.hint, words.empty() ? "" : words.front());
  } catch (const UsageError& e) {
    return refuse_usage(e, "", words.empty() ? "" : words.front());
  } catch (const WrongInput& e) {
    report(e.diagnostics);
    return kInputIsWrong;
  } catch (const reckon::TooMuchWork& e) {
    return refuse_question(mistake_of("reckon", e));
  } catch (const reckon::Overflow& e) {
    return refuse_question(mistake_of("reckon", e));
  } catch (const std::exception& e) {
    report(ErrorCode::environment, e.what(), "", fmt::format("reckon: error: {}\n", e.what()));
    return kEnvironmentFailed;
  }
}
