#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <cmath>
#include <set>

#include "sim/base/text/yaml_writer.h"
#include "sim/measurement/calibration/calibration.h"

// The overlay's file. Every struct lists its keys once, for writing and for reading.
namespace reckon {
namespace {

template <class F>
void for_each_key(ParameterValue& v, F&& f) {
  f("value", v.value);
  f("low", v.low);
  f("high", v.high);
}
template <class F>
void for_each_key(Correction& c, F&& f) {
  f("parameter", c.parameter);
  f("unit", c.unit);
  f("catalog", c.catalog);
  f("calibrated", c.calibrated);
  f("standard_error_of_log", c.standard_error);
  f("rows", c.rows);
}
template <class F>
void for_each_key(FamilyFit& x, F&& f) {
  f("family", x.family);
  f("scale", x.scale);
  f("shape", x.shape);
  f("aic", x.aic);
  f("bic", x.bic);
}
template <class F>
void for_each_key(WaitingTimes& w, F&& f) {
  f("what", w.what);
  f("observed", w.observed);
  f("censored", w.censored);
  f("mean_seconds", w.mean);
  f("p5_seconds", w.p5);
  f("p50_seconds", w.p50);
  f("p95_seconds", w.p95);
  f("families", w.families);
}
template <class F>
void for_each_key(CalibratedRow& r, F&& f) {
  f("name", r.name);
  f("unit", r.unit);
  f("measured", r.measured);
  f("before", r.before);
  f("after", r.after);
  f("values", r.values);
}
template <class F>
void for_each_key(OwnRow& r, F&& f) {
  f("id", r.id);
  f("accelerator", r.accelerator);
  f("precision", r.precision);
  f("network", r.network);
  f("domain", r.domain);
  f("parameters", r.parameters);
  f("stack", r.stack);
  f("link", r.link);
  f("accelerators", r.accelerators);
  f("many_nodes", r.many_nodes);
  f("samples_per_step", r.samples);
  f("step_seconds", r.step_seconds);
  f("modelled_step_seconds", r.modelled_seconds);
  f("device_share", r.device_share);
  f("standard_error_of_log", r.noise);
  f("steps", r.steps);
}
template <class F>
void for_each_key(OwnData& d, F&& f) {
  f("name", d.name);
  f("samples", d.samples);
  f("bytes_per_sample", d.bytes);
  f("decode_cpu_seconds", d.decode_seconds);
}
template <class F>
void for_each_key(HeldOut& h, F&& f) {
  f("how", h.how);
  f("rows", h.rows);
  f("error_before", h.error_before);
  f("error_after", h.error_after);
  f("worse", h.worse);
}
struct Document : Calibration {
  int version = kCalibrationVersion;
};
template <class F>
void for_each_key(Document& c, F&& f) {
  f("schema_version", c.version);
  f("created", c.created);
  f("catalog_digest", c.catalog_digest);
  f("measurements", c.measurements);
  f("warnings", c.warnings);
  f("held_out", c.held_out);
  f("corrections", c.corrections);
  f("covariance_of_logs", c.covariance);
  f("waiting_times", c.waiting_times);
  f("rows", c.rows);
  f("own_runs", c.own_runs);
  f("own_data", c.own_data);
}
/// A file of before there were such rows has no list of them.
template <class T>
constexpr bool kMayBeAbsent =
    std::is_same_v<T, std::vector<OwnRow>> || std::is_same_v<T, std::vector<OwnData>>;

// ---- writing

void emit(YamlWriter& out, std::string& v) { out.text(v); }
void emit(YamlWriter& out, int& v) { out.word(std::to_string(v)); }
void emit(YamlWriter& out, bool& v) { out.word(v ? "true" : "false"); }
void emit(YamlWriter& out, double& v) { out.word(fmt::format("{:.6g}", v)); }
template <class T>
void emit(YamlWriter& out, std::vector<T>& list);
template <class T>
requires std::is_class_v<T>
void emit(YamlWriter& out, T& record) {
  constexpr bool kShort = std::is_same_v<T, ParameterValue> || std::is_same_v<T, FamilyFit>;
  out.begin_map(kShort ? YamlWriter::Style::flow : YamlWriter::Style::block);
  for_each_key(record, [&](const char* key, auto& value) {
    if constexpr (kMayBeAbsent<std::decay_t<decltype(value)>>)
      if (value.empty()) return;
    out.key(key);
    emit(out, value);
  });
  out.end_map();
}
template <class T>
void emit(YamlWriter& out, std::vector<T>& list) {
  const bool flow = !std::is_class_v<T> || std::is_same_v<T, FamilyFit> || list.empty();
  out.begin_list(flow ? YamlWriter::Style::flow : YamlWriter::Style::block);
  for (auto& item : list) emit(out, item);
  out.end_list();
}

// ---- reading

class CalibrationReader {
 public:
  explicit CalibrationReader(std::string_view file) : file_(file) {}
  Diagnostics problems;

  template <class T>
  requires std::is_class_v<T>
  void read(const YAML::Node& node, const std::string& path, T& record) {
    if (!node.IsMap()) return problem(node, path, "is a mapping");
    std::set<std::string> keys;
    for_each_key(record, [&](const char* key, auto& value) {
      keys.insert(key);
      const YAML::Node child = node[key];
      const std::string inside = path.empty() ? key : path + "." + key;
      if (child)
        read(child, inside, value);
      else if (!kMayBeAbsent<std::decay_t<decltype(value)>>)
        problem(node, inside, "is missing");
    });
    const std::vector<std::string> known(keys.begin(), keys.end());
    for (const auto& item : node)
      if (const auto key = item.first.as<std::string>(""); !keys.contains(key))
        problem(item.first, path.empty() ? key : path + "." + key,
                "is not known" + did_you_mean(key, known));
  }
  template <class T>
  void read(const YAML::Node& node, const std::string& path, std::vector<T>& list) {
    if (!node.IsSequence()) return problem(node, path, "is a list");
    for (std::size_t k = 0; k < node.size(); ++k)
      read(node[k], fmt::format("{}[{}]", path, k), list.emplace_back());
  }
  void read(const YAML::Node& node, const std::string& path, std::string& v) {
    if (!node.IsScalar()) return problem(node, path, "is a text");
    v = node.Scalar();
  }
  void read(const YAML::Node& node, const std::string& path, double& v) {
    if (!node.IsScalar() || !YAML::convert<double>::decode(node, v) || !std::isfinite(v))
      problem(node, path, "is a number");
  }
  void read(const YAML::Node& node, const std::string& path, int& v) {
    if (!node.IsScalar() || !YAML::convert<int>::decode(node, v))
      problem(node, path, "is a whole number");
  }
  void read(const YAML::Node& node, const std::string& path, bool& v) {
    if (!node.IsScalar() || !YAML::convert<bool>::decode(node, v))
      problem(node, path, "is true or false");
  }
  void problem(const YAML::Node& node, const std::string& path, const std::string& what) {
    problems.push_back({Severity::error,
                        {std::string(file_), node.Mark().line + 1, node.Mark().column + 1},
                        fmt::format("{} {}", path.empty() ? "the file" : "'" + path + "'", what),
                        ""});
  }

 private:
  std::string_view file_;
};

void check_values(CalibrationReader& reader, const YAML::Node& root, const Document& c) {
  for (const Correction& x : c.corrections) {
    const ParameterValue& v = x.calibrated;
    if (!(v.low <= v.value && v.value <= v.high) || v.low < 0)
      reader.problem(root, x.parameter, "needs 0 <= low <= value <= high");
  }
  for (const OwnRow& r : c.own_runs) {
    const bool measured = r.step_seconds > 0 && r.modelled_seconds > 0 && r.samples > 0;
    if (!measured || r.noise < 0 || r.accelerators < 1 || r.device_share < 0 || r.device_share > 1)
      reader.problem(root, "own_runs: " + r.id,
                     "needs seconds, samples and accelerators above 0, a standard error of 0 or "
                     "more and a device_share of 0..1");
  }
  const std::size_t n = c.corrections.size();
  if (c.covariance.size() != n * n)
    reader.problem(
        root, "covariance_of_logs",
        fmt::format("has {} numbers, {} corrections have {}", c.covariance.size(), n, n * n));
}

}  // namespace

std::string to_yaml(const Calibration& calibration) {
  Document document{calibration};
  YamlWriter out(YamlQuotes::for_everyone);
  emit(out, document);
  return "# Calibration of reckon's catalog by measurements: reckon simulate --calibration FILE "
         "lays "
         "it over.\n"
         "# value: median; low, high: 5th and 95th percentile. SI units; logarithms are "
         "natural.\n" +
         out.done();
}

Expected<Calibration> parse_calibration(std::string_view file, std::string_view text) {
  CalibrationReader reader(file);
  if (text.size() > kLargestCalibration)
    return tl::unexpected(
        Diagnostics{{Severity::error,
                     {std::string(file), 0, 0},
                     fmt::format("the file has {} bytes", text.size()),
                     fmt::format("a calibration has at most {} MiB", kLargestCalibration >> 20U)}});
  Document document;
  try {
    const YAML::Node root = YAML::Load(std::string(text));
    if (const YAML::Node version = root.IsMap() ? root["schema_version"] : YAML::Node();
        version && version.IsScalar() && version.Scalar() != std::to_string(kCalibrationVersion)) {
      reader.problem(
          version, "schema_version",
          fmt::format("is {}; this reckon reads {}", version.Scalar(), kCalibrationVersion));
      return tl::unexpected(std::move(reader.problems));
    }
    if (root.IsMap() && root["command"] && !root["corrections"]) {
      reader.problems.push_back({Severity::error,
                                 {std::string(file), 1, 1},
                                 "is the JSON that a command of reckon printed, no calibration",
                                 "a calibration is what `reckon calibrate RUN --out FILE` writes"});
      return tl::unexpected(std::move(reader.problems));
    }
    reader.read(root, "", document);
    if (reader.problems.empty()) check_values(reader, root, document);
  } catch (const YAML::Exception& error) {
    reader.problems.push_back({Severity::error,
                               {std::string(file), error.mark.line + 1, error.mark.column + 1},
                               fmt::format("not YAML: {}", error.msg),
                               ""});
  }
  if (!reader.problems.empty()) return tl::unexpected(std::move(reader.problems));
  Calibration calibration = std::move(document);
  calibration.name = file;
  return calibration;
}

}  // namespace reckon
