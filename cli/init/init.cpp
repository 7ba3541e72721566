#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <iostream>

#include "cli/command.h"
#include "cli/init/init_scenario.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/options/usage_error.h"
#include "cli/output.h"
#include "sim/base/printable.h"
#include "sim/base/shell_word.h"
#include "sim/model/zoo/zoo.h"

namespace reckon::cli {
namespace {

constexpr std::array<std::string_view, 12> kInitNames{
    "model",    "tokens", "epochs",  "dataset", "accelerator", "count",
    "provider", "region", "pricing", "out",     "catalog",     "help"};

struct Question {
  std::string option, text, standard;  // standard "": an answer is needed
};

std::vector<Question> questions(const std::map<std::string, std::string>& answers) {
  const auto model = answers.find("model");
  const bool tokens = model != answers.end() && zoo_takes_sequence_length(model->second);
  return {{"model", "Which model? (resnet50, gpt2_small, ...)", ""},
          tokens ? Question{"tokens", "How many tokens?", "10B"}
                 : Question{"epochs", "How many epochs?", "90"},
          {"accelerator", "On which accelerator? (T4, H100-SXM5-80, ...)", ""},
          {"count", "How many of them?", "1"},
          {"pricing", "on_demand or spot?", "on_demand"}};
}

/// Asks until the answer is one. Throws when the input ends.
void ask(const Question& question, std::map<std::string, std::string>& answers,
         const Catalog& catalog) {
  while (true) {
    print_error(fmt::format("{}{} ", question.text,
                            question.standard.empty() ? "" : " [" + question.standard + "]"));
    std::string line;
    if (!std::getline(std::cin, line)) throw UsageError("the answers end before the questions");
    if (line.empty()) line = question.standard;
    if (line.empty()) continue;
    const auto problem = judge_answer(question.option, line, catalog);
    if (!problem) {
      answers[question.option] = line;
      return;
    }
    report({*problem});
  }
}

bool has_length(const std::map<std::string, std::string>& answers) {
  return answers.contains("tokens") || answers.contains("epochs");
}

void ask_what_is_missing(std::map<std::string, std::string>& answers, const Catalog& catalog) {
  for (std::size_t k = 0; k < questions(answers).size(); ++k) {
    const Question question = questions(answers)[k];  // the second depends on the model
    const bool length = question.option == "tokens" || question.option == "epochs";
    if (answers.contains(question.option) || (length && has_length(answers))) continue;
    ask(question, answers, catalog);
  }
}

void refuse_what_is_missing(const std::map<std::string, std::string>& answers) {
  std::string missing;
  for (const char* option : {"model", "accelerator"})
    if (!answers.contains(option)) missing += fmt::format(" --{}", option);
  if (!missing.empty())
    throw UsageErrorWithHint(
        fmt::format("without a terminal to ask on, init needs{}", missing),
        "example: reckon init --model resnet50 --epochs 90 --accelerator T4 --count 4");
}

}  // namespace

std::vector<OptionText> init_options() { return describe_options(kInitNames); }

int run_init(const Command& self, std::span<const std::string> arguments) {
  Options options = parse_options(self, kInitNames, arguments);
  if (options.help) {
    print(help_text(self));
    return kDone;
  }
  if (!options.files.empty())
    throw UsageError(fmt::format("init takes no file '{}'; write to it with --out {}",
                                 options.files.front(), shell_word(options.files.front())));
  auto& answers = options.answers;
  const std::string out = answers.contains("out") ? answers.at("out") : "-";
  answers.erase("out");
  if (out != "-" && std::filesystem::exists(out))
    throw UsageError(fmt::format("'{}' exists; init overwrites nothing", out));
  const auto catalog = checked(load_catalogs(options));
  if (::isatty(STDIN_FILENO) == 1)
    ask_what_is_missing(answers, catalog);
  else
    refuse_what_is_missing(answers);
  const auto judged = checked(judge_answers(answers, catalog));
  write_file(out, checked(scenario_for(judged, catalog)));
  if (out != "-") print_error(fmt::format("{} is written\n", printable_file(out)));
  return kDone;
}

}  // namespace reckon::cli
