#include "sim/measurement/profiles/kineto.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/base/reading_iterator.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

using Json = nlohmann::json;

double bytes_of(std::string_view dtype) {
  constexpr std::array<std::pair<std::string_view, double>, 16> kSizes{{{"Double", 8},
                                                                        {"Long", 8},
                                                                        {"Int64", 8},
                                                                        {"Float32", 4},
                                                                        {"Int", 4},
                                                                        {"Half", 2},
                                                                        {"Float16", 2},
                                                                        {"BFloat16", 2},
                                                                        {"Short", 2},
                                                                        {"Byte", 1},
                                                                        {"Char", 1},
                                                                        {"Bool", 1},
                                                                        {"Float8_e4m3fn", 1},
                                                                        {"Float8_e5m2", 1},
                                                                        {"UnsignedChar", 1},
                                                                        {"Float", 4}}};
  const auto* found = std::ranges::find(kSizes, dtype, &std::pair<std::string_view, double>::first);
  return found == kSizes.end() ? 0 : found->second;
}

/// One event, as far as it is of use.
struct Event {
  std::string name, phase, category, collective, dtype;
  std::optional<double> at, took;  // microseconds
  double elements = 0;
  int device = 0;
};

class TraceReader : public nlohmann::json_sax<Json> {
 public:
  TraceReader(std::string_view file, std::string_view bytes) : file_(file), bytes_(bytes) {}

  const char* now = nullptr;
  Diagnostics problems;
  Profile profile;
  std::vector<ProfiledKernel> kernels;
  std::vector<ProfiledWindow> steps;
  CollectiveCounts collectives;
  bool has_events = false;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t v) override { return number(double(v)); }
  bool number_unsigned(number_unsigned_t v) override { return number(double(v)); }
  bool number_float(number_float_t v, const string_t&) override { return number(v); }
  bool binary(binary_t&) override { return true; }
  bool string(string_t& v) override {
    text(v);
    return true;
  }
  bool key(string_t& v) override {
    levels_.back().key = v;
    return true;
  }
  bool start_object(std::size_t) override { return open(false); }
  bool start_array(std::size_t) override { return open(true); }
  bool end_array() override { return close(); }
  bool end_object() override {
    if (in_events(2)) finish();
    return close();
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception& e) override {
    const std::string_view what = e.what();
    const std::size_t from = what.find("syntax error");
    problem(fmt::format("no JSON: {}", from == what.npos ? what : what.substr(from)), "");
    return false;
  }

  void problem(std::string what, std::string hint) {
    constexpr std::size_t kMost = 20;
    if (problems.size() == kMost) return;
    const std::string_view read(bytes_.data(), std::size_t(now - bytes_.data()));
    const int line = 1 + int(std::ranges::count(read, '\n'));
    const std::size_t begin = read.rfind('\n') + 1;  // npos + 1 is 0
    problems.push_back({Severity::error,
                        {std::string(file_), line, int(read.size() - begin)},
                        std::move(what),
                        std::move(hint)});
  }

 private:
  struct Level {
    bool is_array = false;
    std::string key;
  };

  bool open(bool array) {
    constexpr std::size_t kDeepest = 64;
    if (levels_.size() == kDeepest) {
      problem(fmt::format("lists and objects more than {} deep", kDeepest), "");
      return false;
    }
    levels_.push_back({array, {}});
    if (!array && in_events(2)) event_ = {};
    if (array && in_events(1)) has_events = true;
    return true;
  }
  bool close() {
    levels_.pop_back();
    return true;
  }

  /// Are `more` levels open at and below the list of events? It is the document, or "traceEvents".
  bool in_events(std::size_t more) const {
    if (levels_.empty()) return false;
    const std::size_t root = levels_.front().is_array ? 0 : 1;
    return levels_.size() == root + more && levels_[root].is_array &&
           (root == 0 || levels_.front().key == "traceEvents");
  }
  /// The key below the event's arguments, or "".
  std::string_view argument() const {
    if (levels_.size() < 2 || levels_[levels_.size() - 2].key != "args") return "";
    return in_events(3) ? std::string_view(levels_.back().key) : "";
  }
  bool below(std::string_view root, std::size_t depth) const {
    return levels_.size() == depth && !levels_.front().is_array && levels_.front().key == root;
  }

  bool number(double v) {
    if (in_events(2)) {
      if (levels_.back().key == "ts") event_.at = v;
      if (levels_.back().key == "dur") event_.took = v;
    } else if (argument() == "device") {
      constexpr double kMost = 1e6;
      event_.device = v >= 0 && v < kMost ? int(v) : 0;
    } else if (argument() == "In msg nelems") {
      event_.elements = v;
    } else if (below("distributedInfo", 2) && levels_.back().key == "world_size" && v >= 1 &&
               v < 1e7) {
      profile.ranks = int(v);
    }
    return true;
  }

  void text(const std::string& v) {
    if (in_events(2)) {
      const std::string& key = levels_.back().key;
      if (key == "name") event_.name = v;
      if (key == "ph") event_.phase = v;
      if (key == "cat") event_.category = v;
      // Perfetto and older exports write numbers as texts.
      if (key == "ts") event_.at = number_of(v);
      if (key == "dur") event_.took = number_of(v);
    } else if (argument() == "Collective name") {
      event_.collective = v;
    } else if (argument() == "dtype") {
      event_.dtype = v;
    } else if (below("deviceProperties", 3) && levels_.back().key == "name" &&
               profile.device.empty()) {
      profile.device = v;
    }
  }
  static std::optional<double> number_of(const std::string& v) {
    const auto number = parse_number(v);
    return number ? std::optional(*number) : std::nullopt;
  }

  void finish() {
    if (event_.phase != "X") return;
    const std::string& c = event_.category;
    const bool kernel = c == "kernel" || c == "gpu_memcpy" || c == "gpu_memset";
    const bool step = event_.name.starts_with("ProfilerStep#") && !c.starts_with("gpu_");
    if (!kernel && !step) return;
    constexpr double kLatest = 9e15, kLongest = 1e12;  // microseconds: in nanoseconds no overflow
    if (!event_.at || !event_.took || !(*event_.at >= 0) || !(*event_.at < kLatest) ||
        !(*event_.took >= 0) || !(*event_.took < kLongest))
      return problem(fmt::format("the event '{}' has no ts and dur in microseconds",
                                 event_.name.substr(0, 80)),
                     "export it again: profiler.export_chrome_trace(FILE)");
    const auto begin = std::int64_t(std::llround(*event_.at * 1000));
    const auto end = begin + std::int64_t(std::llround(*event_.took * 1000));
    if (step) return steps.push_back({begin, end});
    const KernelKind kind = c == "kernel" ? kernel_kind(event_.name) : KernelKind::memory;
    kernels.push_back({begin, end, event_.device, kind});
    const double size = event_.elements * bytes_of(event_.dtype);
    if (!event_.collective.empty() && size > 0 && size < 1e18)
      collectives.add(event_.collective, Bytes{size}, Seconds{*event_.took * 1e-6});
  }

  std::string_view file_, bytes_;
  std::vector<Level> levels_;
  Event event_;
};

}  // namespace

bool is_kineto(std::string_view bytes) {
  constexpr std::size_t kBegin = 64 * 1024;
  const std::size_t at = bytes.find_first_not_of(" \t\r\n");
  if (at == std::string_view::npos || (bytes[at] != '{' && bytes[at] != '[')) return false;
  const std::string_view head = bytes.substr(at, kBegin);
  return head.find("\"traceEvents\"") != head.npos ||
         head.find("\"deviceProperties\"") != head.npos ||
         (head.front() == '[' && head.find("\"ph\"") != head.npos);
}

Expected<Profile> parse_kineto(std::string_view file, std::string_view bytes) {
  TraceReader reader(file, bytes);
  reader.now = bytes.data();
  const char* const end = bytes.data() + bytes.size();
  const bool read = Json::sax_parse(ReadingIterator(bytes.data(), &reader.now),
                                    ReadingIterator(end, &reader.now), &reader);
  if (read && reader.problems.empty()) {
    reader.now = bytes.data();
    if (!reader.has_events)
      reader.problem("it has no list 'traceEvents'",
                     "torch.profiler's export_chrome_trace has one");
    else if (reader.steps.empty())
      reader.problem("it has no span 'ProfilerStep#N': how long a step took is not known",
                     "call profiler.step() after each optimizer step");
    else if (reader.kernels.empty())
      reader.problem("it has no kernel of a GPU",
                     "profile with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]");
  }
  if (!reader.problems.empty()) return tl::unexpected(std::move(reader.problems));
  Profile profile = std::move(reader.profile);
  profile.tool = "PyTorch (Kineto)";
  const auto windows = joined_windows(std::move(reader.steps));
  if (windows.empty()) {
    reader.now = bytes.data();
    reader.problem("its spans 'ProfilerStep#N' take no time", "");
    return tl::unexpected(std::move(reader.problems));
  }
  set_steps(profile, std::move(reader.kernels), windows);
  profile.collectives =
      reader.collectives.per_step(double(windows.size()) * std::max(1, profile.devices));
  return profile;
}

}  // namespace reckon
