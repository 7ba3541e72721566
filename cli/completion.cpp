#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "cli/command.h"
#include "cli/options/shared.h"
#include "cli/options/values.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "sim/base/diagnostic.h"

// Completion scripts, made from the declarations of the commands' options.
namespace reckon::cli {
namespace {

struct CompletionOptions : Files {
  std::vector<Option> declared() { return {}; }
};

/// "table|json" -> "table json"; "" where the value is free.
std::string words_of_option(const std::string& value) {
  const bool choice = std::none_of(value.begin(), value.end(),
                                   [](unsigned char c) { return std::isupper(c) != 0; });
  std::string out = choice ? value : "";
  std::replace(out.begin(), out.end(), '|', ' ');
  return out;
}

std::string bash() {
  std::string names = "help", cases;
  for (const Command& command : commands()) {
    names += fmt::format(" {}", command.name);
    std::string options, values;
    for (const OptionText& option : command.options()) {
      options += (options.empty() ? "--" : " --") + option.name;
      if (const std::string words = words_of_option(option.value); !words.empty())
        values += fmt::format("        --{}) words=\"{}\" ;;\n", option.name, words);
      else if (option.value == "DIR")
        values += fmt::format("        --{}) kind=\"directory\" ;;\n", option.name);
      else if (option.value == "FILE")
        values += fmt::format("        --{}) kind=\"file\" ;;\n", option.name);
      else if (!option.value.empty())
        values += fmt::format("        --{}) ;;\n", option.name);  // what only the user knows
    }
    const std::string_view shells = command.name == "completion" ? " bash zsh" : "";
    cases += fmt::format(
        "    {})\n"
        "      case $previous in\n"
        "{}"
        "        *) words=\"{}{}\"{} ;;\n"
        "      esac ;;\n",
        command.name, values, options, shells, command.needs_file ? " kind=\"file\"" : "");
  }
  return fmt::format(
      "# bash completion for reckon: source <(reckon completion bash)\n"
      "_reckon() {{\n"
      "  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}\n"
      "  local words=\"\" kind=\"\"\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"{} --help --version\" -- \"$current\")\n"
      "    return\n"
      "  fi\n"
      "  case ${{COMP_WORDS[1]}} in\n"
      "    help) words=\"{}\" ;;\n"
      "{}"
      "  esac\n"
      "  if [ \"$kind\" = directory ]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -d -- \"$current\")\n"
      "  elif [ \"$kind\" = file ] && [ \"${{current#-}}\" = \"$current\" ]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
      "  elif [ -n \"$words\" ]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
      "  fi\n"
      "}}\n"
      "complete -o filenames -F _reckon reckon\n",
      names, names, cases);
}

/// Inside '...[...]' of zsh's _arguments.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh() {
  std::string names, cases;
  for (const Command& command : commands()) {
    names += fmt::format("    '{}:{}'\n", command.name, zsh_text(command.summary));
    std::string arguments;
    for (const OptionText& option : command.options()) {
      arguments += fmt::format(" \\\n        '--{}[{}]", option.name, zsh_text(option.help));
      if (const std::string words = words_of_option(option.value); !words.empty())
        arguments += fmt::format(":value:({})", words);
      else if (option.value == "DIR")
        arguments += ":directory:_files -/";
      else if (option.value == "FILE")
        arguments += ":file:_files";
      else if (!option.value.empty())
        arguments += fmt::format(":{}: ", option.value);
      arguments += "'";
    }
    if (command.name == "completion") arguments += " \\\n        '1:shell:(bash zsh)'";
    if (command.needs_file) arguments += " \\\n        '*:scenario:_files'";
    cases += fmt::format("    {})\n      _arguments{} ;;\n", command.name, arguments);
  }
  return fmt::format(
      "#compdef reckon\n"
      "# zsh completion for reckon: reckon completion zsh > a directory of $fpath, as _reckon\n"
      "_reckon() {{\n"
      "  local -a commands=(\n"
      "{}"
      "    'help:what a command does'\n"
      "  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  local command=$words[2]\n"
      "  shift words; (( CURRENT-- ))\n"
      "  case $command in\n"
      "    help) _describe command commands ;;\n"
      "{}"
      "  esac\n"
      "}}\n"
      "compdef _reckon reckon\n",
      names, cases);
}

}  // namespace

std::vector<OptionText> completion_options() { return shown_options<CompletionOptions>(); }

int run_completion(const Command& self, std::span<const std::string> arguments) {
  const auto options = parse<CompletionOptions>(self, arguments);
  if (!options) return kDone;
  if (options->files.size() != 1)
    throw UsageError("completion takes the shell: reckon completion bash");
  const std::string& shell = options->files.front();
  const std::vector<std::string> shells{"bash", "zsh"};
  if (shell != "bash" && shell != "zsh")
    throw UsageError(fmt::format("no completion for the shell '{}'{} (bash, zsh)", shell,
                                 did_you_mean(shell, shells)));
  print(shell == "bash" ? bash() : zsh());
  return kDone;
}

}  // namespace reckon::cli
