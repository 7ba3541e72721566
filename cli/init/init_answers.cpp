#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cli/init/init_scenario.h"
#include "sim/base/check.h"
#include "sim/base/unit_text.h"
#include "sim/model/names.h"
#include "sim/model/zoo/zoo.h"

namespace reckon::cli {
namespace {

constexpr int kMostAccelerators = 100'000;

Diagnostic wrong(std::string_view option, std::string what, std::string hint = "") {
  return {Severity::error, {fmt::format("--{}", option), 0, 0}, std::move(what), std::move(hint)};
}

std::optional<Diagnostic> judge_name(std::string_view option, const std::string& written,
                                     bool known, const std::vector<std::string>& near,
                                     const std::vector<std::string>& listed) {
  if (known) return std::nullopt;
  return wrong(option,
               fmt::format("unknown {} '{}'{}", option, written, did_you_mean(written, near)),
               fmt::format("known: {}", fmt::join(listed, ", ")));
}

std::optional<Diagnostic> judge_accelerator(const std::string& written, const Catalog& catalog) {
  std::vector<std::string> names, all;
  for (const Accelerator& a : catalog.accelerators) {
    names.push_back(a.name);
    all.push_back(a.name);
    all.insert(all.end(), a.aliases.begin(), a.aliases.end());
  }
  return judge_name("accelerator", written, catalog.find_accelerator(written) != nullptr, all,
                    names);
}

std::optional<Diagnostic> judge_region(const std::string& written, const Catalog& catalog) {
  std::vector<std::string> regions;
  for (const Location& l : catalog.locations) regions.push_back(l.region);
  std::sort(regions.begin(), regions.end());
  regions.erase(std::unique(regions.begin(), regions.end()), regions.end());
  const bool known = std::binary_search(regions.begin(), regions.end(), written);
  return judge_name("region", written, known, regions, regions);
}

std::optional<Diagnostic> judge_amount(std::string_view option, const std::string& written) {
  const auto amount = option == "tokens" ? parse_count(written) : parse_number(written);
  if (!amount) return wrong(option, amount.error());
  const double most = option == "tokens" ? 1e18 : 1e6;  // the reader's limits
  if (*amount <= 0 || *amount > most)
    return wrong(option, fmt::format("'{}' is not above 0 and at most {:g}", written, most));
  return std::nullopt;
}

bool takes_tokens(const std::string& model) { return zoo_takes_sequence_length(model); }

void judge_length(const WrittenAnswers& written, InitAnswers& answers, Diagnostics& problems) {
  const bool tokens = written.tokens.has_value(), epochs = written.epochs.has_value();
  if (tokens && epochs)
    problems.push_back(wrong("epochs", "tokens and epochs are two lengths", "give one of them"));
  else if (tokens && !takes_tokens(answers.model))
    problems.push_back(wrong("tokens", fmt::format("model {} reads no tokens", answers.model),
                             "example: --epochs 90"));
  else if (tokens)
    answers.length = fmt::format("tokens: {}", *written.tokens);
  else if (epochs)
    answers.length = fmt::format("epochs: {}", *written.epochs);
}

using Answer = std::optional<std::string> WrittenAnswers::*;
/// By the name of the option, in the order in which mistakes are told.
constexpr std::array<std::pair<std::string_view, Answer>, 9> kAnswers{
    {{"accelerator", &WrittenAnswers::accelerator},
     {"count", &WrittenAnswers::count},
     {"dataset", &WrittenAnswers::dataset},
     {"epochs", &WrittenAnswers::epochs},
     {"model", &WrittenAnswers::model},
     {"pricing", &WrittenAnswers::pricing},
     {"provider", &WrittenAnswers::provider},
     {"region", &WrittenAnswers::region},
     {"tokens", &WrittenAnswers::tokens}}};

}  // namespace

std::optional<std::string>& WrittenAnswers::of(std::string_view option) {
  const auto found = std::ranges::find(kAnswers, option, &decltype(kAnswers)::value_type::first);
  RECKON_CHECK(found != kAnswers.end());
  return this->*found->second;
}

std::string default_dataset(const std::string& model, const Catalog& catalog) {
  const auto graph = zoo_model(model);
  const Dataset* largest = nullptr;
  for (const Dataset& dataset : catalog.datasets)
    if (graph && dataset.unit == graph->sample_unit() &&
        (largest == nullptr || dataset.samples.value > largest->samples.value))
      largest = &dataset;
  return largest == nullptr ? "" : largest->name;
}

std::optional<Diagnostic> judge_answer(std::string_view option, const std::string& written,
                                       const Catalog& catalog) {
  if (option == "model") {
    if (zoo_model(written)) return std::nullopt;
    return wrong(option,
                 fmt::format("unknown model '{}'{}", written, did_you_mean(written, zoo_names())),
                 models_like(written));
  }
  if (option == "dataset") {
    std::vector<std::string> names;
    for (const Dataset& d : catalog.datasets) names.push_back(d.name);
    return judge_name(option, written, catalog.find_dataset(written) != nullptr, names, names);
  }
  if (option == "accelerator")
    return written == kNoAccelerator ? std::nullopt : judge_accelerator(written, catalog);
  if (option == "region") return judge_region(written, catalog);
  if (option == "tokens" || option == "epochs") return judge_amount(option, written);
  if (option == "count") {
    const auto count = parse_integer(written);
    if (!count || *count < 1 || *count > kMostAccelerators)
      return wrong(option,
                   fmt::format("'{}' is no whole number from 1 to {}", written, kMostAccelerators));
  }
  if (option == "provider") {
    std::vector<std::string> names;
    for (const ProviderRules& p : catalog.providers) names.push_back(p.id.name);
    const bool known = std::find(names.begin(), names.end(), written) != names.end();
    return judge_name(option, written, known, names, names);
  }
  if (option == "pricing") {
    const std::vector<std::string> names{"on_demand", "spot"};
    const bool known = std::find(names.begin(), names.end(), written) != names.end();
    return judge_name(option, written, known, names, names);
  }
  return std::nullopt;
}

Expected<InitAnswers> judge_answers(const WrittenAnswers& written, const Catalog& catalog) {
  Diagnostics problems;
  for (const auto& [option, member] : kAnswers)
    if (const auto& answer = written.*member)
      if (auto problem = judge_answer(option, *answer, catalog))
        problems.push_back(std::move(*problem));
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  InitAnswers answers;
  answers.model = written.model.value_or("");
  if (const Accelerator* found = catalog.find_accelerator(written.accelerator.value_or("")))
    answers.accelerator = found->name;
  if (written.count) answers.count = int(*parse_integer(*written.count));
  answers.region = written.region.value_or("");
  if (const ProviderRules* p = catalog.find_provider(written.provider.value_or("")))
    answers.provider = p->id;
  answers.pricing = written.pricing == "spot" ? CapacityType::spot : CapacityType::on_demand;
  answers.dataset = written.dataset.value_or("");
  const auto assume = [&](std::string sentence) { answers.assumed.push_back(std::move(sentence)); };
  if (answers.dataset.empty()) {
    answers.dataset = default_dataset(answers.model, catalog);
    assume(fmt::format("dataset {}: the largest of the catalog that {} reads", answers.dataset,
                       answers.model));
  }
  if (answers.dataset.empty())
    problems.push_back(wrong("dataset",
                             fmt::format("no dataset of the catalog is read by {}", answers.model),
                             "give one and describe it in a catalog of your own: --catalog DIR"));
  answers.length = takes_tokens(answers.model) ? "tokens: 10B" : "epochs: 90";
  judge_length(written, answers, problems);
  if (!written.tokens && !written.epochs) assume("length " + answers.length);
  if (!written.accelerator) assume("no accelerator: it trains on processors");
  if (!written.count) assume(answers.accelerator.empty() ? "1 node" : "1 accelerator");
  if (!written.pricing) assume("pricing on_demand");
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return answers;
}

}  // namespace reckon::cli
