#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "cli/command.h"
#include "cli/load/load.h"
#include "cli/options/shared.h"
#include "cli/options/usage_error.h"
#include "cli/options/values.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "exchange/graphs/fx_json.h"
#include "exchange/graphs/onnx_file.h"
#include "exchange/huggingface/huggingface.h"
#include "exchange/model_files.h"
#include "report/catalog/model_view.h"
#include "sim/base/unit_text.h"
#include "sim/catalog/operations_keys.h"
#include "sim/model/finetune.h"
#include "sim/model/zoo/zoo.h"
#include "sim/scenario/resolve/one_job.h"
#include "sim/scenario/yaml/scenario_yaml.h"

namespace reckon::cli {
namespace {

struct AddedAdapters {
  AdapterKind kind = AdapterKind::lora;
  std::int64_t rank = 8;
};

struct ModelOptions : Files, AnswerFormat, CatalogChoice {
  /// What is not said is as the scenario does, else the model's own.
  std::optional<int> batch;
  std::optional<std::int64_t> sequence_length;
  std::optional<Precision> precision;
  std::optional<AddedAdapters> adapters;
  std::optional<Optimizer> optimizer;
  std::string accelerator;  // "": none
  int over = 8;             // accelerators

  std::vector<Option> declared();
};

Read precision_word(std::optional<Precision>& to) {
  return [&to](const std::string& name, const std::string& text) {
    to = from_text<Precision>(text);
    if (to) return;
    std::vector<std::string> words;
    for (const Precision p : kPrecisions) words.emplace_back(to_text(p));
    throw UsageError(fmt::format("--{} takes {}, not '{}'{}", name, fmt::join(words, " "), text,
                                 did_you_mean(text, words)));
  };
}

Read adapters_word(std::optional<AddedAdapters>& to) {
  return [&to](const std::string& name, const std::string& text) {
    const std::string method = text.substr(0, text.find(':'));
    const auto kind = from_text<AdapterKind>(method);
    if (!kind)
      throw UsageError(fmt::format(
          "--{} takes lora:RANK such as lora:16, qlora:RANK, dora:RANK or adapters:WIDTH, not '{}'",
          name, text));
    to.emplace().kind = *kind;
    if (method.size() < text.size())
      whole(to->rank, 1, 4096)(fmt::format("{} {}:", name, method), text.substr(method.size() + 1));
  };
}

Read optimizer_word(std::optional<Optimizer>& to) {
  return [&to](const std::string& name, const std::string& text) {
    to = from_text<Optimizer>(text);
    if (to) return;
    const std::vector<std::string> words = texts_of<Optimizer>();
    throw UsageError(fmt::format("--{} takes {}, not '{}'{}", name, fmt::join(words, " "), text,
                                 did_you_mean(text, words)));
  };
}

std::vector<Option> ModelOptions::declared() {
  constexpr std::int64_t kLargestBatch = 100'000'000, kLongest = 1 << 20;
  return {
      format_option(),
      {batch_text(), whole(batch, 1, kLargestBatch)},
      {sequence_length_text(), whole(sequence_length, 1, kLongest)},
      {precision_text(), precision_word(precision)},
      {{"finetune", "METHOD:RANK", "fine-tuning method and rank: lora, qlora, dora or adapters"},
       adapters_word(adapters)},
      {{"optimizer", "NAME",
        fmt::format("optimizer: {} (the usual one for the model)",
                    fmt::join(texts_of<Optimizer>(), ", "))},
       optimizer_word(optimizer)},
      {accelerator_text(), text(accelerator)},
      {{"over", "N", "number of accelerators that share the state or the model, as under ZeRO (8)"},
       whole(over, 1, kLongest)},
      catalog_option()};
}

const Accelerator* accelerator_of(const std::string& text, const Catalog& catalog) {
  if (const Accelerator* found = catalog.find_accelerator(text)) return found;
  std::vector<std::string> names;
  for (const Accelerator& a : catalog.accelerators) names.push_back(a.name);
  throw UsageErrorWithHint(
      fmt::format("unknown accelerator '{}'{}", text, did_you_mean(text, names)),
      "reckon catalog list accelerators");
}

ModelGraph named_model(const std::string& name, const ModelOptions& wishes) {
  const std::vector<std::string> names = zoo_names();
  if (std::ranges::find(names, name) == names.end())
    throw UsageErrorWithHint(
        fmt::format("no model is named '{}'{}", name, did_you_mean(name, names)),
        "reckon model list shows them; or give a Hugging Face config.json, an ONNX file, a graph "
        "of PyTorch FX as JSON, or a scenario.yaml");
  if (wishes.sequence_length && !zoo_takes_sequence_length(name))
    throw UsageError(fmt::format("model {} has no sequence length", name));
  if (wishes.sequence_length && *wishes.sequence_length > zoo_longest_sequence(name))
    throw UsageError(fmt::format("model {} takes sequences of 1 to {} tokens, not {}", name,
                                 zoo_longest_sequence(name), *wishes.sequence_length));
  return zoo_model(name, wishes.sequence_length).value();
}

Expected<ModelGraph> huggingface_model(const std::filesystem::path& file, const std::string& text,
                                       const ModelOptions& wishes,
                                       std::vector<std::string>& notes) {
  const auto config = read_huggingface_config(text, file.string());
  if (!config) return tl::unexpected(config.error());
  std::optional<std::int64_t> length = wishes.sequence_length;
  // A file without a position table does not say on which lengths it is trained: the longest.
  if (!length && config->sequence_length == 0 && config->longest_sequence > 0)
    length = config->longest_sequence;
  notes = config->notes;
  return make_model(*config, length);
}

/// A network that another tool wrote as a graph.
Expected<ModelGraph> graph_model(const std::filesystem::path& file, const std::string& text,
                                 const ModelOptions& wishes, std::vector<std::string>& notes) {
  const bool onnx = file.extension() == ".onnx";
  const auto graph = onnx ? read_onnx_graph(text, file.string(), wishes.sequence_length)
                          : read_fx_graph(text, file.string());
  if (!graph) return tl::unexpected(graph.error());
  if (!onnx && wishes.sequence_length)
    throw UsageError("a graph of PyTorch FX has the length of its sample");
  auto imported = make_graph_model(*graph);
  if (!imported) return tl::unexpected(std::move(imported.error()));
  notes = notes_of(*imported);
  return std::move(imported->model);
}

/// Published weights of as many parameters: what confirms the count of a file.
std::optional<PublishedModel> published_of(const ModelGraph& model, const Catalog& catalog) {
  const auto same = [&](const PublishedModel& p) {
    return p.parameters && p.parameters->value == double(model.parameters());
  };
  const auto found = std::ranges::find_if(catalog.published_models, same);
  if (found == catalog.published_models.end()) return std::nullopt;
  PublishedModel published;
  published.model = found->model;
  published.parameters = found->parameters;
  published.notes = found->notes.empty() ? found->model : found->notes;
  return published;
}

/// The scenario's model, fine-tuned as there, and what else it says of its memory.
Expected<ModelSheet> scenario_sheet(const std::string& file, const LoadedCatalog& catalog) {
  auto loaded = read_plan(file, {}, catalog);
  if (!loaded) return tl::unexpected(std::move(loaded.error()));
  const Plan& plan = loaded->plan;
  if (auto several = why_not_one_job(plan, loaded->file.places, "a model sheet"))
    return tl::unexpected(Diagnostics{std::move(*several)});
  const PlannedWorkload& job = plan.only_job();
  ModelSheet sheet;
  sheet.model = job.model;
  sheet.precision = job.precision;
  sheet.optimizer = job.optimizer;
  sheet.batch = job.strategy.layout.micro_batch;
  sheet.accelerator = computing_pools(plan).back()->accelerator;
  sheet.memory.push_back({"as in the scenario", estimate_memory(plan, job)});
  return sheet;
}

Expected<ModelSheet> sheet_of(const std::string& what, const ModelOptions& wishes,
                              const LoadedCatalog& catalog) {
  std::filesystem::path path = what;
  if (std::filesystem::exists(path / "config.json")) path /= "config.json";
  const std::string extension = path.extension();
  if (extension == ".yaml" || extension == ".yml") return scenario_sheet(what, catalog);
  ModelSheet sheet;
  if (extension == ".json" || extension == ".onnx") {
    const std::string text = read_text(path);
    auto model = extension == ".onnx" || is_fx_graph(text)
                     ? graph_model(path, text, wishes, sheet.notes)
                     : huggingface_model(path, text, wishes, sheet.notes);
    if (!model) return tl::unexpected(std::move(model.error()));
    sheet.model = std::move(*model);
    sheet.published = published_of(sheet.model, catalog);
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

int show(const ModelOptions& options, const LoadedCatalog& catalog) {
  if (options.files.size() != 2)
    throw UsageError(
        "model show takes one model: a name, a config.json, a graph (.onnx, .json) or a "
        "scenario.yaml");
  const Accelerator* accelerator =
      options.accelerator.empty() ? nullptr : accelerator_of(options.accelerator, catalog);
  auto sheet = checked(sheet_of(options.files[1], options, catalog));
  if (options.adapters) {
    auto adapted =
        checked(with_adapters(sheet.model, options.adapters->kind, options.adapters->rank));
    sheet.model = std::move(adapted);
    sheet.published.reset();
  }
  if (accelerator != nullptr) sheet.accelerator = *accelerator;
  if (accelerator != nullptr && sheet.memory.empty())
    sheet.precision = accelerator->training_precision();
  if (options.precision) sheet.precision = *options.precision;
  if (options.batch) sheet.batch = *options.batch;
  if (options.optimizer) sheet.optimizer = *options.optimizer;
  if (sheet.accelerator && !sheet.accelerator->peak_for(sheet.precision))
    throw UsageError(
        fmt::format("{} has no {}", sheet.accelerator->name, to_text(sheet.precision)));
  const std::vector<MemoryCase> ways =
      memory_by_strategy({&sheet.model, sheet.precision, sheet.optimizer, sheet.batch, options.over,
                          framework_of(catalog), sheet.accelerator});
  sheet.memory.insert(sheet.memory.end(), ways.begin(), ways.end());
  sheet.groups = layer_group_counts(sheet.model, bytes_per_element(sheet.precision));
  print(options.format == OutputFormat::json ? model_json(sheet, catalog)
                                             : model_table(sheet, catalog));
  return kDone;
}

int list(const ModelOptions& options, const Catalog& catalog) {
  const std::array table{list_models(catalog, std::span(options.files).subspan(1))};
  print(options.format == OutputFormat::json ? print_catalog_json("model list", table)
                                             : print_catalog_text(table));
  return kDone;
}

}  // namespace

std::vector<OptionText> model_options() { return shown_options<ModelOptions>(); }

int run_model(const Command& self, std::span<const std::string> arguments) {
  const auto options = parse<ModelOptions>(self, arguments);
  if (!options) return kDone;
  if (options->files.empty()) throw UsageError(fmt::format("say what to do: {}", self.usage));
  const std::array<std::string, 2> kActions{"list", "show"};
  const std::string& action = options->files.front();
  if (std::ranges::find(kActions, action) == kActions.end())
    throw UsageError(fmt::format("model does list and show, not '{}'{}", action,
                                 did_you_mean(action, kActions)));
  const auto catalog = checked(load_catalogs(*options));
  return action == "list" ? list(*options, catalog) : show(*options, catalog);
}

}  // namespace reckon::cli
