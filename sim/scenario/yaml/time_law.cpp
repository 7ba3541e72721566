#include <fmt/format.h>

#include "sim/scenario/yaml/fields.h"

// How long something takes: a time, a list, or a law.
namespace reckon {
namespace {

constexpr std::string_view kTimeLaws =
    "2h, [10min, 2h, 2h], !exponential {mean: 2h} or !lognormal {median: 1h, p95: 20h}";

const Fields<ExponentialTime>& exponential_time_fields() {
  static const Fields<ExponentialTime> table{required(number_field(
      "mean", &ExponentialTime::mean, duration_above_zero(), "Mean length of a job.", "2h"))};
  return table;
}

const Fields<LognormalTime>& lognormal_time_fields() {
  using L = LognormalTime;
  static const Fields<L> table{required(number_field("median", &L::median, duration_above_zero(),
                                                     "Half of the jobs are shorter.", "1h")),
                               required(number_field("p95", &L::p95, duration_above_zero(),
                                                     "One job in twenty is longer.", "20h"))};
  return table;
}

}  // namespace

Form time_law_form() {
  Form form = choice(kTimeLaws);
  form.item = Form::Kind::duration;
  form.or_list = true;
  form.tagged = {{"!exponential", &infos_of<exponential_time_fields>},
                 {"!lognormal", &infos_of<lognormal_time_fields>}};
  return form;
}

std::optional<TimeLaw> read_time_law(Reader& reader, const YamlNode& node) {
  if (node.tag == "!exponential" || node.tag == "!lognormal") {
    YamlNode untagged = node;
    untagged.tag.clear();
    if (node.tag == "!exponential") {
      ExponentialTime exponential;
      if (read_fields(reader, untagged, exponential_time_fields(), exponential)) return exponential;
      return std::nullopt;
    }
    LognormalTime lognormal;
    if (!read_fields(reader, untagged, lognormal_time_fields(), lognormal)) return std::nullopt;
    if (lognormal.median.count() > 0 && lognormal.p95 < lognormal.median)
      reader.error("p95 is below the median", "example: !lognormal {median: 1h, p95: 20h}");
    return lognormal;
  }
  if (node.kind == YamlNode::Kind::list && node.tag.empty()) {
    std::vector<Seconds> times;
    reader.each(node, [&](const YamlNode& item) {
      if (const auto time = reader.number(item, duration_above_zero()))
        times.push_back(Seconds{*time});
    });
    if (node.entries.empty()) reader.error("the list of durations is empty");
    return times;
  }
  if (node.kind == YamlNode::Kind::scalar && node.tag.empty()) {
    if (const auto time = reader.number(node, duration_above_zero())) return Seconds{*time};
    return std::nullopt;
  }
  reader.error(fmt::format("{} must be a duration or a distribution, not {}", reader.subject(),
                           describe(node)),
               std::string(kTimeLaws));
  return std::nullopt;
}

}  // namespace reckon
