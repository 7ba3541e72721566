#include "sim/measurement/profiles/dcgm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>
#include <string>

#include "sim/base/text/metric_line.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

enum class Field { active, multiprocessors, occupancy, tensor, memory, watts, used, none };

struct FieldName {
  std::string_view name;
  Field field;
  double most;
};
constexpr std::array kFields{FieldName{"GRACT", Field::active, 1},
                             FieldName{"DCGM_FI_PROF_GR_ENGINE_ACTIVE", Field::active, 1},
                             FieldName{"SMACT", Field::multiprocessors, 1},
                             FieldName{"DCGM_FI_PROF_SM_ACTIVE", Field::multiprocessors, 1},
                             FieldName{"SMOCC", Field::occupancy, 1},
                             FieldName{"DCGM_FI_PROF_SM_OCCUPANCY", Field::occupancy, 1},
                             FieldName{"TENSO", Field::tensor, 1},
                             FieldName{"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", Field::tensor, 1},
                             FieldName{"DRAMA", Field::memory, 1},
                             FieldName{"DCGM_FI_PROF_DRAM_ACTIVE", Field::memory, 1},
                             FieldName{"POWER", Field::watts, 1e5},
                             FieldName{"DCGM_FI_DEV_POWER_USAGE", Field::watts, 1e5},
                             FieldName{"FBUSD", Field::used, 1e8},  // MiB
                             FieldName{"DCGM_FI_DEV_FB_USED", Field::used, 1e8}};
constexpr std::size_t kFieldCount = std::size_t(Field::none);

const FieldName* field_named(std::string_view name) {
  const auto* found = std::ranges::find(kFields, name, &FieldName::name);
  return found == kFields.end() ? nullptr : found;
}

bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

/// By commas where the line has some, else by blanks; "GPU 0" is one word.
std::vector<std::string_view> words_in(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
  const bool commas = line.find(',') != line.npos;
  const auto ends = [&](char c) { return commas ? c == ',' : is_blank(c); };
  std::size_t at = 0;
  while (at < line.size()) {
    while (!commas && at < line.size() && is_blank(line[at])) ++at;
    if (at == line.size()) break;
    std::size_t end = at;
    while (end < line.size() && !ends(line[end])) ++end;
    std::string_view word = line.substr(at, end - at);
    while (!word.empty() && is_blank(word.front())) word.remove_prefix(1);
    while (!word.empty() && is_blank(word.back())) word.remove_suffix(1);
    const bool number_of_gpu = !commas && words.size() == 1 && words.front() == "GPU";
    if (number_of_gpu)
      words.front() = line.substr(std::size_t(words.front().data() - line.data()),
                                  std::size_t(word.data() + word.size() - words.front().data()));
    else
      words.push_back(word);
    at = end + 1;
  }
  if (commas && line.ends_with(',')) words.emplace_back();  // the last value is missing
  return words;
}

std::string_view next_line_of(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

/// The columns of a header; none: the line is none.
struct Header {
  std::vector<const FieldName*> columns;
  std::size_t entity = 0;  // which column names the GPU
};
Header header_in(std::string_view line) {
  Header header;
  int known = 0;
  bool names_gpu = false;
  for (std::string_view word : words_in(line)) {
    if (word.starts_with('#')) word.remove_prefix(1);
    if (word == "Entity" || word == "gpu") {
      header.entity = header.columns.size();
      names_gpu = true;
    }
    header.columns.push_back(field_named(word));
    known += header.columns.back() != nullptr ? 1 : 0;
  }
  // A table of steps may have a column POWER too.
  return known > 1 || (known == 1 && names_gpu) ? header : Header{};
}

using FieldValues = std::array<std::optional<double>, kFieldCount>;

/// DCGM writes a value that it does not have as a number from 2^47 (of a real) or near 2^63 (of an
/// integer) on [DCGM_FP64_BLANK and DCGM_INT64_BLANK of its API].
bool is_no_value(std::string_view word) {
  if (word.empty() || word == "N/A" || word == "NaN") return true;
  constexpr double kBlank = 140737488355328.0;
  const auto value = parse_number(word);
  return value && *value >= kBlank;
}

/// Sums of what was sampled.
class ActivitySums {
 public:
  /// One line; the fields that it has.
  void add(std::string_view gpu, const FieldValues& values) {
    gpus_.emplace(gpu);
    if (const auto used = values[std::size_t(Field::used)])
      most_used_ = std::max(most_used_, *used);
    if (const auto watts = values[std::size_t(Field::watts)])
      most_watts_ = std::max(most_watts_, *watts);
    constexpr double kWorks = 0.01;  // of the time that an engine is active, 0..1
    const auto work =
        std::max(values[std::size_t(Field::active)], values[std::size_t(Field::multiprocessors)]);
    // The first samples of the profiling fields are N/A until their module runs.
    if (std::ranges::none_of(values, [](const auto& v) { return v.has_value(); })) return;
    ++(work && *work < kWorks ? idle_ : working_);
    if (work && *work < kWorks) return;
    for (std::size_t k = 0; k < kFieldCount; ++k) {
      if (!values[k]) continue;
      sums_[k] += *values[k];
      ++counts_[k];
    }
  }

  DeviceActivity activity() const {
    const auto mean = [this](Field field) -> std::optional<double> {
      const auto k = std::size_t(field);
      return counts_[k] == 0 ? std::nullopt : std::optional(sums_[k] / counts_[k]);
    };
    DeviceActivity a;
    a.gpus = static_cast<int>(gpus_.size());
    a.samples = working_;
    a.idle_samples = idle_;
    a.active = mean(Field::active);
    a.multiprocessors = mean(Field::multiprocessors);
    a.occupancy = mean(Field::occupancy);
    a.tensor = mean(Field::tensor);
    a.memory = mean(Field::memory);
    a.watts = mean(Field::watts);
    if (most_watts_ > 0) a.watts_most = most_watts_;
    constexpr double kMiB = 1048576;
    if (most_used_ > 0) a.memory_used = Bytes{most_used_ * kMiB};
    return a;
  }

 private:
  std::set<std::string, std::less<>> gpus_;
  std::array<double, kFieldCount> sums_{};
  std::array<int, kFieldCount> counts_{};
  int working_ = 0, idle_ = 0;
  double most_used_ = 0, most_watts_ = 0;
};

/// What is wrong with a file, at most twenty of it.
class Problems {
 public:
  explicit Problems(std::string_view file) : file_(file) {}
  void add(int line, std::string what, std::string hint = "") {
    constexpr std::size_t kMost = 20;
    if (found_.size() < kMost)
      found_.push_back({Severity::error, {file_, line, 0}, std::move(what), std::move(hint)});
  }
  /// A value of a field; none: there is none, or it is wrong.
  std::optional<double> value_in(std::string_view word, const FieldName& field, int line) {
    if (is_no_value(word)) return std::nullopt;
    const auto value = parse_number(word);
    if (value && *value >= 0 && *value <= field.most) return *value;
    add(line, fmt::format("{}: '{}' is no number from 0 to {:g}", field.name, word, field.most));
    return std::nullopt;
  }
  bool empty() const { return found_.empty(); }
  Diagnostics take() { return std::move(found_); }

 private:
  std::string file_;
  Diagnostics found_;
};

std::string_view gpu_of(const MetricLine& line) {
  const std::string_view uuid = line.label("UUID");
  return uuid.empty() ? line.label("gpu") : uuid;
}

/// GPUs whose own activity a page has beside that of their MIG instances.
std::set<std::string, std::less<>> whole_gpus_in(std::string_view text) {
  std::set<std::string, std::less<>> gpus;
  while (!text.empty()) {
    const auto line = metric_line_in(next_line_of(text));
    const FieldName* field = line ? field_named(line->name) : nullptr;
    const bool busy = field != nullptr &&
                      (field->field == Field::active || field->field == Field::multiprocessors);
    if (busy && line->label("GPU_I_ID").empty()) gpus.emplace(gpu_of(*line));
  }
  return gpus;
}

/// Pages of dcgm-exporter, one after another: a field that a device has already begins its next
/// sample. A MIG instance is a device where its GPU says nothing.
void add_pages(std::string_view text, ActivitySums& samples, Problems& problems) {
  const auto whole = whole_gpus_in(text);
  std::map<std::string, FieldValues> pending;
  for (int number = 1; !text.empty(); ++number) {
    const auto line = metric_line_in(next_line_of(text));
    const FieldName* field = line ? field_named(line->name) : nullptr;
    if (field == nullptr) continue;
    const std::string_view gpu = gpu_of(*line), instance = line->label("GPU_I_ID");
    if (!instance.empty() && whole.contains(gpu)) continue;
    const auto value = problems.value_in(line->value, *field, number);
    if (!value) continue;
    auto [at, is_new] = pending.try_emplace(fmt::format("{} {}", gpu, instance));
    auto& held = at->second[std::size_t(field->field)];
    if (held) {
      samples.add(at->first, at->second);
      at->second = {};
    }
    held = value;
  }
  for (const auto& [device, values] : pending) samples.add(device, values);
}

/// What dmon prints, or the same as CSV.
void add_table(std::string_view text, ActivitySums& samples, Problems& problems) {
  Header current;
  const auto& columns = current.columns;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = next_line_of(text);
    // dmon prints its header again and again.
    if (Header header = header_in(line); !header.columns.empty()) {
      current = std::move(header);
      continue;
    }
    const auto words = words_in(line);
    if (columns.empty() || words.empty() || words.front() == "ID") continue;
    if (words.size() != columns.size()) {
      problems.add(number,
                   fmt::format("{} values, the header has {}", words.size(), columns.size()));
      continue;
    }
    FieldValues values{};
    for (std::size_t k = 0; k < words.size(); ++k)
      if (columns[k] != nullptr)
        values[std::size_t(columns[k]->field)] = problems.value_in(words[k], *columns[k], number);
    samples.add(words[current.entity], values);
  }
}

bool is_exporter_line(std::string_view line) {
  return line.starts_with("# HELP DCGM_FI_") ||
         (line.starts_with("DCGM_FI_") && line.find('{') != std::string_view::npos);
}

/// Of the first lines of `text` one is as `is_such` says.
template <class Is>
bool begins_with(std::string_view text, Is is_such) {
  constexpr int kMostLines = 20;
  for (int line = 0; line < kMostLines && !text.empty(); ++line)
    if (is_such(next_line_of(text))) return true;
  return false;
}

}  // namespace

bool is_dcgm(std::string_view text) {
  return begins_with(text, [](std::string_view line) {
    return is_exporter_line(line) || !header_in(line).columns.empty();
  });
}

Expected<DeviceActivity> parse_dcgm(std::string_view file, std::string_view text) {
  Problems problems(file);
  ActivitySums samples;
  if (begins_with(text, is_exporter_line))
    add_pages(text, samples, problems);
  else
    add_table(text, samples, problems);
  const DeviceActivity activity = samples.activity();
  if (problems.empty() && activity.samples + activity.idle_samples == 0)
    problems.add(0, "no sample of DCGM has a value",
                 "dcgmi dmon -e 1001,1002,1003,1004,1005,155,252 > FILE, as root: the profiling "
                 "fields are N/A otherwise");
  if (!problems.empty()) return tl::unexpected(problems.take());
  return activity;
}

}  // namespace reckon
