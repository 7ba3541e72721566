#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/options/option.h"
#include "sim/base/words.h"

// What several commands take alike, in groups that functions behind the command line take too. A
// command's options derive from the groups that it has, and put their declarations where its help
// shows them.
namespace reckon::cli {

enum class OutputFormat { table, json };
constexpr auto words_of(OutputFormat) {
  return std::array{Word<OutputFormat>{"table", OutputFormat::table},
                    Word<OutputFormat>{"json", OutputFormat::json}};
}
struct AnswerFormat {
  OutputFormat format = OutputFormat::table;
  Option format_option();
};

/// Changes of a scenario: --set path=value, and layers, files whose keys override its own.
struct ScenarioChanges {
  std::vector<std::string> overrides;
  std::vector<std::filesystem::path> layers;
  Option set_option();
  Option layer_option();
};

/// Overlays of the catalog that ships with reckon, and which evidence counts.
struct CatalogChoice {
  std::vector<std::filesystem::path> catalogs, calibrations;
  std::vector<std::string> evidence, without_evidence;  // files; ids or sources
  Option catalog_option();
  Option calibration_option();
  Option evidence_option();
  Option without_evidence_option();
};

/// How often a run is simulated, and with which luck; nullopt: the scenario's.
struct Sampling {
  std::optional<std::uint64_t> seed;
  std::optional<int> replications;
  int threads = 0;  // 0: one a core
  Option seed_option();
  Option replications_option();
  Option threads_option();
};

enum class NetworkEngine { fluid, closed_forms, simgrid };
constexpr auto words_of(NetworkEngine) {
  return std::array{Word<NetworkEngine>{"fluid", NetworkEngine::fluid},
                    Word<NetworkEngine>{"closed-forms", NetworkEngine::closed_forms},
                    Word<NetworkEngine>{"simgrid", NetworkEngine::simgrid}};
}
struct NetworkChoice {
  std::optional<NetworkEngine> engine;  // nullopt: fluid, and closed forms for collectives
  Option engine_option();
};

struct Sweeps {
  std::vector<std::string> sweeps;  // path=values
  Option sweep_option();
};

/// Of commands that write one answer, where to; "": the command's default.
struct OutPath {
  std::string out;
  Option out_option();
};

/// A cluster as kubectl knows it.
struct KubectlChoice {
  std::string context, name_space;  // "": kubectl's current one; the command's default
  Option context_option();
  Option namespace_option();
};

/// What is trained, as several commands take it.
OptionText model_text();
OptionText tokens_text();
OptionText epochs_text();
OptionText dataset_text();
OptionText accelerator_text();
OptionText machine_text();
OptionText count_text();
OptionText provider_text();
OptionText region_text();
OptionText pricing_text();
OptionText precision_text();
OptionText batch_text();
OptionText sequence_length_text();
OptionText steps_text();
OptionText deadline_text();

/// Rows with the largest errors to list.
Option worst_option(int& rows);

// Files that several commands write.
Option plot_option(std::string& file);
Option html_option(std::string& file);
Option memo_option(std::string& file);

/// Files that one command writes, by option: throws UsageError where two are one.
void refuse_same_file(std::initializer_list<std::pair<const char*, const std::string*>> files);

}  // namespace reckon::cli
