#include <fmt/format.h>

#include <csignal>
#include <exception>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/load.h"
#include "cli/options/usage_error.h"
#include "cli/output.h"
#include "sim/base/diagnostic.h"
#include "sim/base/printable.h"

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

int dispatch(std::vector<std::string> arguments) {
  if (arguments.empty()) throw UsageError("a command is missing");
  const std::string name = arguments.front();
  arguments.erase(arguments.begin());
  if (name == "--help" || name == "-h" || name == "help") return help(arguments);
  if (name == "--version") {
    print("reckon " RECKON_VERSION "\n");
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
  print_error(fmt::format("reckon: {}\n{}Try 'reckon {}--help'.\n", printable(e.what()), hint,
                          command != nullptr ? fmt::format("{} ", command->name) : ""));
  return kInputIsWrong;
}

}  // namespace
}  // namespace reckon::cli

int main(int argc, char** argv) {
  using namespace reckon::cli;
  std::signal(SIGPIPE, SIG_IGN);  // `reckon ... | head` ends quietly: print() sees EPIPE
  try {
    return dispatch({argv + 1, argv + argc});
  } catch (const UsageErrorWithHint& e) {
    return refuse_usage(e, e.hint, argc > 1 ? argv[1] : "");
  } catch (const UsageError& e) {
    return refuse_usage(e, "", argc > 1 ? argv[1] : "");
  } catch (const WrongInput& e) {
    report(e.diagnostics);
    return kInputIsWrong;
  } catch (const reckon::TooMuchWork& e) {
    report({mistake_of("reckon", e)});
    return kInputIsWrong;
  } catch (const reckon::Overflow& e) {
    report({mistake_of("reckon", e)});
    return kInputIsWrong;
  } catch (const std::exception& e) {
    print_error(fmt::format("reckon: error: {}\n", e.what()));
    return kEnvironmentFailed;
  }
}
