#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <system_error>
#include <tuple>

#include "sim/base/check.h"
#include "sim/catalog/build/build.h"
#include "sim/catalog/catalog.h"

namespace reckon {
namespace {

using namespace catalog_text;

constexpr std::uintmax_t kFileSizeMax = 64 << 20;

/// Every file that a catalog directory may have, in the order in which they are understood.
const std::vector<FileKind>& file_kinds() {
  static const std::vector<FileKind> kKinds{
      {"sources.yaml", "source", {}, {}},
      {"links.yaml", "link", {}, {}},
      {"services.yaml", "service", {}, {}},
      {"providers.yaml", "provider", {}, {}},
      {"accelerators.yaml", "accelerator", {}, {}},
      {"machines.csv",
       "machine",
       {"provider", "machine", "vcpus", "memory_gib", "network_gbps", "accelerator", "accelerators",
        "peer_fabric", "network_link", "minimum_rental", "services", "source", "network_source",
        "notes"},
       {"provider", "machine"},
       {},
       {},
       "network_gbps"},
      {"tpu_slices.csv",
       "TPU slice",
       {"slice", "accelerator", "chips", "torus", "wraps", "hosts", "machine", "source", "notes"},
       {"slice"}},
      {"attachments.csv",
       "attachment",
       {"services", "machine", "accelerator", "counts", "source", "notes"},
       {"services", "machine", "accelerator"},
       "services",
       "service"},
      {"attachment_limits.csv",
       "attachment limit",
       {"services", "accelerator", "count", "zones", "vcpus", "memory_gib", "source", "notes"},
       {"services", "accelerator", "count", "zones"},
       "services",
       "service"},
      {"custom_machines.yaml", "custom family", {}, {}},
      {"scale_tiers.csv",
       "part of a scale tier",
       {"service", "tier", "role", "machine", "count", "accelerator", "accelerators", "slice",
        "source", "notes"},
       {"service", "tier", "role"}},
      {"labels.yaml", "group of names", {}, {}},
      {"efficiencies.csv",
       "efficiency",
       {"accelerator", "precision", "stack", "convolution", "winograd", "matmul", "attention",
        "memory", "half_size_gflop", "launch_us", "host_us", "step_spread", "runs",
        "standard_errors", "source", "notes"},
       {"accelerator", "precision", "stack"}},
      {"stacks.csv",
       "software stack",
       {"stack", "speed", "host_us", "runs", "standard_errors", "source", "notes"},
       {"stack"}},
      {"stack_classes.csv", "class of stacks", {"stacks", "class", "source", "notes"}, {"stacks"}},
      {"stack_memory.csv",
       "memory of a stack",
       {"stacks", "reserve_gb", "buffer_bytes_per_parameter", "keeps_scores", "source", "notes"},
       {"stacks"}},
      {"models.csv",
       "model",
       {"model", "parameters", "active_parameters", "forward_gmacs", "source", "notes"},
       {"model"}},
      {"datasets.yaml", "dataset", {}, {}},
      {"convergence.csv",
       "point",
       {"model", "dataset", "accuracy", "starts_from", "sequence_length", "global_batch", "samples",
        "runs", "source", "notes"},
       {"model", "dataset", "accuracy", "starts_from", "sequence_length", "global_batch"},
       "",
       "",
       "",
       {"starts_from", kFromScratch}},
      {"storages.yaml", "storage", {}, {}},
      {"operations.yaml", "group", {}, {}},
      {"locations.csv",
       "location",
       {"provider", "items", "region", "zones", "elsewhere", "source", "notes"},
       {"provider", "items", "region"},
       "items",
       "item"},
      {"regions.csv",
       "region",
       {"provider", "region", "jurisdictions", "carbon_free", "grid_gco2_per_kwh", "source",
        "grid_source", "notes"},
       {"provider", "region"},
       "",
       "",
       "grid_gco2_per_kwh"},
      {"prices.csv",
       "price",
       {"provider", "region", "zones", "item", "covers", "count", "on_demand_usd_per_hour",
        "spot_usd_per_hour", "date", "flag", "source", "notes"},
       {"provider", "region", "zones", "item", "covers", "count", "date"}},
      {"storage_prices.csv",
       "storage price",
       {"provider", "region", "storage", "usd_per_gb_month", "date", "source", "notes"},
       {"provider", "region", "storage", "date"}},
  };
  return kKinds;
}

/// Entries of one kind over all layers: a later layer's fields replace those of the same entry.
class Merged {
 public:
  explicit Merged(const FileKind& kind) : kind_(kind) {}

  void add_layer(Texts& texts, std::vector<Entry> entries) {
    const std::size_t old = entries_.size();
    std::vector<bool> touched(old, false);
    for (Entry& entry : entries) {
      const auto [place, fresh] = places_.try_emplace(entry.key, entries_.size());
      if (fresh) {
        entries_.push_back(std::move(entry));
        continue;
      }
      const std::size_t i = place->second;
      if (i >= old || touched[i]) {
        texts.error(entry.at, fmt::format("{} is there twice", entry.name),
                    fmt::format("first in line {}", i >= old ? entries_[i].at.line : lines_[i]));
        continue;
      }
      touched[i] = true;
      lines_[i] = entry.at.line;
      overlay(entries_[i], entry);
    }
    lines_.resize(entries_.size());
  }
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  /// What names the entry stays as it was: names that differ in case only are the same.
  bool is_key(std::string_view field) const {
    return field == kind_.singular || std::ranges::find(kind_.key, field) != kind_.key.end();
  }
  void overlay(Entry& base, const Entry& over) const {
    for (const Field& field : over.fields) {
      if (is_key(field.name)) continue;
      const auto same = std::ranges::find(base.fields, field.name, &Field::name);
      if (same == base.fields.end()) {
        base.fields.push_back(field);
      } else {
        same->cell = field.cell;
      }
    }
  }

  const FileKind& kind_;
  std::vector<Entry> entries_;
  std::vector<int> lines_;  // where the current layer has it
  std::map<std::string, std::size_t, std::less<>> places_;
};

class Loader {
 public:
  Expected<Catalog> load(std::span<const std::filesystem::path> layers) {
    for (const FileKind& kind : file_kinds()) merged_.emplace_back(kind);
    for (const auto& layer : layers) {
      read_layer(layer, layers_read_ == 0);
      ++layers_read_;
    }
    build();
    if (has_errors(texts_.problems)) return tl::unexpected(std::move(texts_.problems));
    catalog_.digest = digest();
    return std::move(catalog_);
  }

 private:
  void read_layer(const std::filesystem::path& directory, bool first) {
    std::error_code error;
    std::vector<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(directory, error)) {
      const std::string extension = file.path().extension();
      if (extension == ".csv" || extension == ".yaml" || extension == ".yml")
        names.push_back(file.path().filename());
    }
    if (error) {
      texts_.problems.push_back(
          {Severity::error,
           {directory.string()},
           fmt::format("cannot read the catalog directory: {}", error.message()),
           ""});
      return;
    }
    std::ranges::sort(names);
    for (const std::string& name : names) read_file(directory / name, name, first);
    if (names.empty()) {
      texts_.problems.push_back({Severity::error,
                                 {directory.string()},
                                 "the directory has no catalog files",
                                 files_hint()});
    }
  }

  void read_file(const std::filesystem::path& path, const std::string& name, bool first) {
    const auto& kinds = file_kinds();
    const auto kind = std::ranges::find(kinds, name, &FileKind::file);
    Cell whole;
    whole.file = static_cast<int>(texts_.files.size());
    texts_.files.push_back(path.string());
    layer_of_file_.push_back(layers_read_);
    if (kind == kinds.end()) {
      std::vector<std::string> known;
      for (const FileKind& k : kinds) known.emplace_back(k.file);
      texts_.error(whole,
                   fmt::format("unknown catalog file '{}'{}", name, did_you_mean(name, known)),
                   files_hint());
      return;
    }
    std::error_code failed;
    const auto size = std::filesystem::file_size(path, failed);
    if (!failed && size > kFileSizeMax) {
      texts_.error(whole, fmt::format("the file has {} bytes, more than any catalog", size));
      return;
    }
    std::string& bytes = texts_.strings.emplace_back(failed ? 0 : size, ' ');
    std::ifstream stream(path, std::ios::binary);
    if (failed || !stream.read(bytes.data(), static_cast<std::streamsize>(size))) {
      texts_.error(whole, "cannot read the file");
      return;
    }
    if (bytes.find('\0') != std::string::npos) {
      texts_.error(whole, "the file is binary, not text");
      return;
    }
    // What a user's layer says without a source is the user's own word; ours always names one.
    const std::string_view source = first ? "" : "user";
    const bool csv = name.ends_with(".csv");
    std::vector<Entry> entries = csv ? read_csv(texts_, *kind, whole.file, bytes, source)
                                     : read_yaml(texts_, *kind, whole.file, bytes, source);
    merged_[static_cast<std::size_t>(kind - kinds.begin())].add_layer(texts_, std::move(entries));
  }

  void build() {
    using Build = void (Builder::*)(std::span<const Entry>);
    constexpr std::pair<std::string_view, Build> kBuilders[] = {
        {"sources.yaml", &Builder::sources},
        {"links.yaml", &Builder::links},
        {"services.yaml", &Builder::services},
        {"providers.yaml", &Builder::providers},
        {"accelerators.yaml", &Builder::accelerators},
        {"machines.csv", &Builder::machines},
        {"tpu_slices.csv", &Builder::slices},
        {"attachments.csv", &Builder::attachments},
        {"attachment_limits.csv", &Builder::limits},
        {"custom_machines.yaml", &Builder::custom_families},
        {"scale_tiers.csv", &Builder::tiers},
        {"labels.yaml", &Builder::cluster_names},
        {"efficiencies.csv", &Builder::efficiencies},
        {"stacks.csv", &Builder::stacks},
        {"stack_classes.csv", &Builder::stack_classes},
        {"stack_memory.csv", &Builder::stack_memories},
        {"models.csv", &Builder::published_models},
        {"datasets.yaml", &Builder::datasets},
        {"convergence.csv", &Builder::convergence},
        {"storages.yaml", &Builder::storages},
        {"operations.yaml", &Builder::operations},
        {"locations.csv", &Builder::locations},
        {"regions.csv", &Builder::regions},
        {"prices.csv", &Builder::prices},
        {"storage_prices.csv", &Builder::storage_prices}};
    Builder builder{texts_, catalog_};
    const auto& kinds = file_kinds();
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const auto found =
          std::ranges::find(kBuilders, kinds[i].file, &std::pair<std::string_view, Build>::first);
      RECKON_CHECK(found != std::end(kBuilders));
      (builder.*found->second)(merged_[i].entries());
    }
    sort_rows(catalog_);
  }

  /// Of what the layers say together, not of how it is written: neither the order of rows and keys
  /// nor a comment changes it.
  std::string digest() const {
    std::string text;
    const auto add = [&](std::string_view word) { (text += word) += '\0'; };
    for (std::size_t k = 0; k < merged_.size(); ++k) {
      add(file_kinds()[k].file);
      std::vector<const Entry*> entries;
      for (const Entry& entry : merged_[k].entries()) entries.push_back(&entry);
      std::ranges::sort(entries, {}, &Entry::key);
      for (const Entry* entry : entries) {
        std::vector<Field> fields = entry->fields;
        std::ranges::sort(fields, {}, &Field::name);
        add(entry->key);
        for (const Field& field : fields) {
          for (const std::string_view word :
               {field.name, field.cell.text, field.cell.low, field.cell.high, field.cell.source})
            add(word);
          // Of two prices of one day that of the later layer counts.
          text += static_cast<char>(layer_of_file_[static_cast<std::size_t>(field.cell.file)]);
        }
      }
    }
    return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
  }

  static std::string files_hint() {
    std::string names;
    for (const FileKind& kind : file_kinds())
      names += fmt::format("{}{}", names.empty() ? "" : ", ", kind.file);
    return "catalog files: " + names;
  }

  Texts texts_;
  Catalog catalog_;
  std::vector<Merged> merged_;      // in the order of file_kinds()
  std::vector<int> layer_of_file_;  // as texts_.files
  int layers_read_ = 0;
};

}  // namespace

Expected<Catalog> load_catalog(std::span<const std::filesystem::path> layers) {
  return Loader().load(layers);
}

Expected<std::vector<Region>> load_regions(std::span<const std::filesystem::path> layers) {
  auto catalog = Loader().load(layers);
  if (!catalog) return tl::unexpected(catalog.error());
  return std::move(catalog->regions);
}

const Region* find_region(const std::vector<Region>& regions, const Provider& provider,
                          std::string_view name) {
  const auto found = std::ranges::find_if(
      regions, [&](const Region& r) { return r.provider == provider && r.name == name; });
  return found == regions.end() ? nullptr : &*found;
}

std::filesystem::path default_catalog_directory() {
  if (const char* given = std::getenv("RECKON_CATALOGS"); given && *given) return given;
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    const std::filesystem::path installed =
        program.parent_path().parent_path() / "share/reckon/catalogs";
    if (std::filesystem::is_directory(installed, error)) return installed;
  }
#ifdef RECKON_SOURCE_CATALOGS
  if (std::filesystem::is_directory(RECKON_SOURCE_CATALOGS, error)) return RECKON_SOURCE_CATALOGS;
#endif
  return {};
}

}  // namespace reckon
