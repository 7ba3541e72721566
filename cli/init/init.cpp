#include <fmt/format.h>
#include <unistd.h>

#include <iostream>

#include "cli/command.h"
#include "cli/errors.h"
#include "cli/init/init_scenario.h"
#include "cli/load/load.h"
#include "cli/options/shared.h"
#include "cli/options/usage_error.h"
#include "cli/options/values.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "sim/base/text/printable.h"
#include "sim/base/text/shell_word.h"
#include "sim/model/zoo/zoo.h"

namespace reckon::cli {
namespace {

struct InitOptions : Files, OutPath, CatalogChoice {
  WrittenAnswers answers;

  std::vector<Option> declared() {
    return {{model_text(), text(answers.model)},
            {tokens_text(), text(answers.tokens)},
            {epochs_text(), text(answers.epochs)},
            {dataset_text(), text(answers.dataset)},
            {accelerator_text(), text(answers.accelerator)},
            {count_text(), text(answers.count)},
            {provider_text(), text(answers.provider)},
            {region_text(), text(answers.region)},
            {pricing_text(), text(answers.pricing)},
            out_option(),
            catalog_option()};
  }
  void check() const {
    if (!files.empty())
      throw UsageError(fmt::format("init takes no file '{}'; write to it with --out {}",
                                   files.front(), shell_word(files.front())));
  }
};

struct Question {
  std::string option, text, standard;  // standard "": an answer is needed
};

std::vector<Question> questions(const WrittenAnswers& answers) {
  const bool tokens = answers.model && zoo_takes_sequence_length(*answers.model);
  return {{"model", "Which model? (resnet50, gpt2_small, ...)", ""},
          tokens ? Question{"tokens", "How many tokens?", "10B"}
                 : Question{"epochs", "How many epochs?", "90"},
          {"accelerator", "On which accelerator? (T4, H100-SXM5-80, ..., none: processors)", ""},
          {"count", "How many of them?", "1"},
          {"pricing", "on_demand or spot?", "on_demand"}};
}

/// Asks until the answer is one. Throws when the input ends.
void ask(const Question& question, WrittenAnswers& answers, const Catalog& catalog) {
  while (true) {
    print_error(fmt::format("{}{} ", question.text,
                            question.standard.empty() ? "" : " [" + question.standard + "]"));
    std::string line;
    if (!std::getline(std::cin, line)) throw UsageError("the answers end before the questions");
    if (line.empty()) line = question.standard;
    if (line.empty()) continue;
    const auto problem = judge_answer(question.option, line, catalog);
    if (!problem) {
      answers.of(question.option) = line;
      return;
    }
    report({*problem});
  }
}

void ask_what_is_missing(WrittenAnswers& answers, const Catalog& catalog) {
  for (std::size_t k = 0; k < questions(answers).size(); ++k) {
    const Question question = questions(answers)[k];  // the second depends on the model
    const bool length = question.option == "tokens" || question.option == "epochs";
    const bool has_length = answers.tokens || answers.epochs;
    if (answers.of(question.option) || (length && has_length)) continue;
    ask(question, answers, catalog);
  }
}

void refuse_what_is_missing(const WrittenAnswers& answers) {
  std::string missing;
  if (!answers.model) missing += " --model";
  if (!answers.accelerator) missing += " --accelerator (none: it trains on processors)";
  if (!missing.empty())
    throw UsageErrorWithHint(
        fmt::format("without a terminal to ask on, init needs{}", missing),
        "example: reckon init --model resnet50 --epochs 90 --accelerator T4 --count 4");
}

}  // namespace

std::vector<OptionText> init_options() { return shown_options<InitOptions>(); }

int run_init(const Command& self, std::span<const std::string> arguments) {
  auto options = parse<InitOptions>(self, arguments);
  if (!options) return kDone;
  WrittenAnswers& answers = options->answers;
  const std::string out = options->out.empty() ? "-" : options->out;
  if (out != "-" && std::filesystem::exists(out))
    throw UsageError(fmt::format("'{}' exists; init overwrites nothing", out));
  const auto catalog = checked(load_catalogs(*options));
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
