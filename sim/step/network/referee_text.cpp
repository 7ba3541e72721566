#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <stdexcept>

#include "sim/step/network/referee.h"

namespace reckon {
namespace {

constexpr std::string_view kQuestion = "reckon-network-question-1";
constexpr std::string_view kAnswer = "reckon-network-answer-1";

/// Words separated by white space.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  void expect(std::string_view word) {
    if (next() != word)
      throw std::runtime_error(fmt::format("the network referee's text lacks '{}'", word));
  }
  template <class Number>
  Number number() {
    const std::string_view word = next();
    Number value{};
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc{} || end != word.data() + word.size())
      throw std::runtime_error(
          fmt::format("the network referee's text has '{}' in place of a number", word));
    return value;
  }
  double amount() {  // finite and not negative: what Network and ActivityGraph take for granted
    const double value = number<double>();
    if (!std::isfinite(value) || value < 0)
      throw std::runtime_error(
          fmt::format("the network referee's text has {} for an amount", value));
    return value;
  }
  std::uint32_t below(std::size_t limit) {
    const auto value = number<std::uint32_t>();
    if (value >= limit)
      throw std::runtime_error(
          fmt::format("the network referee's text has index {} of {}", value, limit));
    return value;
  }

 private:
  std::string_view next() {
    constexpr std::string_view kSpace = " \n\r\t";
    text_.remove_prefix(std::min(text_.find_first_not_of(kSpace), text_.size()));
    const std::string_view word = text_.substr(0, text_.find_first_of(kSpace));
    text_.remove_prefix(word.size());
    return word;
  }
  std::string_view text_;
};

}  // namespace

std::string write_question(const Network& network, const ActivityGraph& graph) {
  fmt::memory_buffer text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "{}\nlinks {}\n", kQuestion, network.links().size());
  for (const BytesPerSecond link : network.links()) fmt::format_to(out, "{}\n", link.v);
  fmt::format_to(out, "paths {}\n", network.path_count());
  for (std::size_t p = 0; p < network.path_count(); ++p) {
    const auto path = network.path(PathId(p));
    fmt::format_to(out, "{}", path.size());
    for (const LinkId l : path) fmt::format_to(out, " {}", index(l));
    fmt::format_to(out, "\n");
  }
  fmt::format_to(out, "activities {}\n", graph.activities().size());
  for (std::size_t a = 0; a < graph.activities().size(); ++a) {
    const Activity& activity = graph.activities()[a];
    const auto after = graph.waits_for(ActivityId(a));
    fmt::format_to(out, "{} {} {} {} {} {}", activity.delay.count(), activity.size.v,
                   index(activity.path), activity.cap.v, activity.multiplicity, after.size());
    for (const ActivityId b : after) fmt::format_to(out, " {}", index(b));
    fmt::format_to(out, "\n");
  }
  fmt::format_to(out, "end\n");
  return to_string(text);
}

NetworkQuestion read_question(std::string_view text) {
  NetworkQuestion question;
  Reader in(text);
  in.expect(kQuestion);
  in.expect("links");
  const auto link_count = in.number<std::uint32_t>();
  for (std::uint32_t l = 0; l < link_count; ++l)
    question.network.add_link(BytesPerSecond{in.amount()});
  in.expect("paths");
  const auto path_count = in.number<std::uint32_t>();
  for (std::uint32_t p = 0; p < path_count; ++p) {
    std::vector<LinkId> path;
    for (auto n = in.number<std::uint32_t>(); n > 0; --n)
      path.push_back(LinkId{in.below(link_count)});
    question.network.add_path(path);
  }
  in.expect("activities");
  const auto activity_count = in.number<std::uint32_t>();
  for (std::uint32_t a = 0; a < activity_count; ++a) {
    Activity activity;
    activity.delay = Seconds{in.amount()};
    activity.size = Bytes{in.amount()};
    activity.path = PathId{activity.size.v > 0 ? in.below(path_count) : in.number<std::uint32_t>()};
    activity.cap = BytesPerSecond{in.amount()};
    activity.multiplicity = in.number<std::uint32_t>();
    std::vector<ActivityId> after;
    for (auto n = in.number<std::uint32_t>(); n > 0; --n) after.push_back(ActivityId{in.below(a)});
    question.graph.add(activity, after);
  }
  in.expect("end");
  return question;
}

std::string write_answer(std::span<const Seconds> finish) {
  fmt::memory_buffer text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "{}\nfinish {}\n", kAnswer, finish.size());
  for (const Seconds f : finish) fmt::format_to(out, "{:.17g}\n", f.count());
  fmt::format_to(out, "end\n");
  return to_string(text);
}

std::vector<Seconds> read_answer(std::string_view text) {
  std::vector<Seconds> finish;
  Reader in(text);
  in.expect(kAnswer);
  in.expect("finish");
  for (auto n = in.number<std::uint32_t>(); n > 0; --n) finish.push_back(Seconds{in.amount()});
  in.expect("end");
  return finish;
}

}  // namespace reckon
