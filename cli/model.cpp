#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "cli/command.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/usage_hint.h"
#include "exchange/huggingface.h"
#include "exchange/model_files.h"
#include "report/catalog/model_view.h"
#include "sim/base/unit_text.h"
#include "sim/catalog/operations_keys.h"
#include "sim/model/finetune.h"
#include "sim/model/zoo/zoo.h"
#include "sim/scenario/yaml/scenario_yaml.h"

namespace reckon::cli {
namespace {

constexpr std::array<std::string_view, 9> kModelNames{"format",    "batch",    "sequence-length",
                                                      "precision", "finetune", "accelerator",
                                                      "over",      "catalog",  "help"};

/// What the options say; where they say nothing, what the scenario does, else the model's own.
struct Wishes {
  std::optional<int> batch;
  std::optional<std::int64_t> sequence_length;
  std::optional<Precision> precision;
  std::optional<LoraAdapters> lora;
  int accelerators = 8;
  const Accelerator* accelerator = nullptr;
};

int whole(const std::string& option, const std::string& text, std::int64_t high) {
  const auto value = parse_integer(text);
  if (!value || *value < 1 || *value > high)
    throw UsageError(
        fmt::format("--{} takes a whole number from 1 to {}, not '{}'", option, high, text));
  return static_cast<int>(*value);
}

Precision precision_of(const std::string& text) {
  if (const auto precision = from_text<Precision>(text)) return *precision;
  std::vector<std::string> words;
  for (const Precision p : kPrecisions) words.emplace_back(to_text(p));
  throw UsageError(fmt::format("--precision takes {}, not '{}'{}", fmt::join(words, " "), text,
                               did_you_mean(text, words)));
}

LoraAdapters lora_of(const std::string& text) {
  const std::string method = text.substr(0, text.find(':'));
  const bool ranked = method.size() < text.size();
  if (method != "lora")
    throw UsageError(fmt::format("--finetune takes lora:RANK such as lora:16, not '{}'", text));
  LoraAdapters adapters;
  if (ranked) adapters.rank = whole("finetune lora:", text.substr(method.size() + 1), 4096);
  return adapters;
}

const Accelerator* accelerator_of(const std::string& text, const Catalog& catalog) {
  if (const Accelerator* found = catalog.find_accelerator(text)) return found;
  std::vector<std::string> names;
  for (const Accelerator& a : catalog.accelerators) names.push_back(a.name);
  throw UsageErrorWithHint(
      fmt::format("unknown accelerator '{}'{}", text, did_you_mean(text, names)),
      "reckon catalog list accelerators");
}

Wishes wishes_of(const Options& options, const Catalog& catalog) {
  constexpr std::int64_t kLargestBatch = 100'000'000, kLongest = 1 << 20;
  Wishes w;
  for (const auto& [option, text] : options.answers) {
    if (option == "batch") w.batch = whole(option, text, kLargestBatch);
    if (option == "sequence-length") w.sequence_length = whole(option, text, kLongest);
    if (option == "precision") w.precision = precision_of(text);
    if (option == "finetune") w.lora = lora_of(text);
    if (option == "over") w.accelerators = whole(option, text, 1 << 20);
    if (option == "accelerator") w.accelerator = accelerator_of(text, catalog);
  }
  return w;
}

ModelGraph named_model(const std::string& name, const Wishes& wishes) {
  const std::vector<std::string> names = zoo_names();
  if (std::ranges::find(names, name) == names.end())
    throw UsageErrorWithHint(
        fmt::format("no model is named '{}'{}", name, did_you_mean(name, names)),
        "reckon model list shows them; or give a Hugging Face config.json, or a "
        "scenario.yaml");
  if (wishes.sequence_length && !zoo_takes_sequence_length(name))
    throw UsageError(fmt::format("model {} has no sequence length", name));
  if (wishes.sequence_length && *wishes.sequence_length > zoo_longest_sequence(name))
    throw UsageError(fmt::format("model {} takes sequences of 1 to {} tokens, not {}", name,
                                 zoo_longest_sequence(name), *wishes.sequence_length));
  return zoo_model(name, wishes.sequence_length).value();
}

Expected<ModelGraph> huggingface_model(const std::filesystem::path& file, const Wishes& wishes) {
  const auto config = read_huggingface_config(read_text(file), file.string());
  if (!config) return tl::unexpected(config.error());
  std::optional<std::int64_t> length = wishes.sequence_length;
  // A file without a position table does not say on which lengths it is trained: the longest.
  if (!length && config->longest_sequence > 0) length = config->longest_sequence;
  return make_model(*config, length);
}

/// The scenario's model, fine-tuned as there, and what else it says of its memory.
Expected<ModelSheet> scenario_sheet(const std::string& file, const Options& options,
                                    const LoadedCatalog& catalog) {
  auto loaded = read_plan(file, options, catalog);
  if (!loaded) return tl::unexpected(std::move(loaded.error()));
  const Plan& plan = loaded->plan;
  const PlannedWorkload& job = plan.jobs.front();
  ModelSheet sheet;
  sheet.model = job.model;
  sheet.precision = job.precision;
  sheet.optimizer = job.optimizer;
  sheet.batch = job.batch_per_accelerator;
  sheet.accelerator = computing_pools(plan).back()->accelerator;
  sheet.memory.push_back({"as in the scenario", estimate_memory(plan, job)});
  return sheet;
}

Expected<ModelSheet> sheet_of(const std::string& what, const Options& options, const Wishes& wishes,
                              const LoadedCatalog& catalog) {
  std::filesystem::path path = what;
  if (std::filesystem::exists(path / "config.json")) path /= "config.json";
  const std::string extension = path.extension();
  if (extension == ".yaml" || extension == ".yml") return scenario_sheet(what, options, catalog);
  ModelSheet sheet;
  if (extension == ".json") {
    auto model = huggingface_model(path, wishes);
    if (!model) return tl::unexpected(std::move(model.error()));
    sheet.model = std::move(*model);
  } else {
    sheet.model = named_model(what, wishes);
    if (const PublishedModel* published = catalog.find_published(what))
      sheet.published = *published;
  }
  sheet.optimizer = default_optimizer(sheet.model.sample_unit());
  return sheet;
}

FrameworkRules framework_of(const Catalog& catalog) {
  const Fact<double>& reserve = catalog.operations.at(keys::kFrameworkReserve);
  FrameworkRules rules;
  rules.reserve = Fact<Bytes>{Bytes{reserve.value}, reserve.source};
  rules.expert_imbalance = catalog.operations.at(keys::kExpertImbalance);
  return rules;
}

int show(const Options& options, const LoadedCatalog& catalog) {
  if (options.files.size() != 2)
    throw UsageError("model show takes one model: a name, a config.json or a scenario.yaml");
  const Wishes wishes = wishes_of(options, catalog);
  auto sheet = checked(sheet_of(options.files[1], options, wishes, catalog));
  if (wishes.lora) {
    auto adapted = checked(with_lora(sheet.model, *wishes.lora));
    sheet.model = std::move(adapted);
    sheet.published.reset();
  }
  if (wishes.accelerator) sheet.accelerator = *wishes.accelerator;
  if (wishes.accelerator && sheet.memory.empty())
    sheet.precision = wishes.accelerator->training_precision();
  if (wishes.precision) sheet.precision = *wishes.precision;
  if (wishes.batch) sheet.batch = *wishes.batch;
  if (sheet.accelerator && !sheet.accelerator->peak_for(sheet.precision))
    throw UsageError(
        fmt::format("{} has no {}", sheet.accelerator->name, to_text(sheet.precision)));
  const std::vector<MemoryCase> ways =
      memory_by_strategy({&sheet.model, sheet.precision, sheet.optimizer, sheet.batch,
                          wishes.accelerators, framework_of(catalog), sheet.accelerator});
  sheet.memory.insert(sheet.memory.end(), ways.begin(), ways.end());
  sheet.groups = layer_group_counts(sheet.model, bytes_per_element(sheet.precision));
  print(options.format == OutputFormat::json ? model_json(sheet, catalog)
                                             : model_table(sheet, catalog));
  return kDone;
}

int list(const Options& options, const Catalog& catalog) {
  const std::array table{list_models(catalog, std::span(options.files).subspan(1))};
  print(options.format == OutputFormat::json ? print_catalog_json("model list", table)
                                             : print_catalog_text(table));
  return kDone;
}

}  // namespace

std::string model_options() { return describe_options(kModelNames); }

int run_model(const Command& self, std::span<const std::string> arguments) {
  const Options options = parse_options(self, kModelNames, arguments);
  if (options.help) {
    print(help_text(self));
    return kDone;
  }
  if (options.files.empty()) throw UsageError(fmt::format("say what to do: {}", self.usage));
  const std::array<std::string, 2> kActions{"list", "show"};
  const std::string& action = options.files.front();
  if (std::ranges::find(kActions, action) == kActions.end())
    throw UsageError(fmt::format("model does list and show, not '{}'{}", action,
                                 did_you_mean(action, kActions)));
  const auto catalog = checked(load_catalogs(options));
  return action == "list" ? list(options, catalog) : show(options, catalog);
}

}  // namespace reckon::cli
