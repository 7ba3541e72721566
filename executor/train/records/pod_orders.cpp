#include "executor/train/records/pod_orders.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

#include "sim/base/text/printable.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

constexpr std::string_view kWaitsBehind = "reckon-worker: waits for an order; start left: ";
constexpr std::string_view kTakesPart = "reckon-worker: takes part in start ";
constexpr std::string_view kEndOfOrder = "end";

std::vector<std::string> words_of_order(std::string_view text) {
  std::istringstream in{std::string(text)};
  return {std::istream_iterator<std::string>(in), {}};
}

PodOrder no_order(std::string_view text) {
  constexpr std::size_t kLongest = 100;
  return {.problem =
              fmt::format("'{}' is no order: \"START RANK RANKS HOST:PORT {}\" is, as reckon "
                          "run writes it into the pod's annotation {}",
                          printable(text.substr(0, kLongest)), kEndOfOrder, kStartAnnotation)};
}

}  // namespace

std::optional<std::filesystem::path> orders_file() {
  const char* file = std::getenv("RECKON_ORDERS_FILE");
  return file != nullptr && *file != '\0' ? std::optional<std::filesystem::path>(file)
                                          : std::nullopt;
}

std::string order_text(const TrainOrder& order) {
  return fmt::format("{} {} {} {} {}", order.attempt, order.rank, order.workers, text(order.master),
                     kEndOfOrder);
}

PodOrder parse_order(std::string_view text) {
  constexpr std::int64_t kMostRanks = 1'000'000;
  const std::vector<std::string> words = words_of_order(text);
  if (words.empty()) return {};
  const auto start = parse_integer(words[0]);
  if (!start || *start < 0) return no_order(text);
  if (words.size() == 1) return {.order = TrainOrder{.attempt = *start}, .own_part = true};
  constexpr std::size_t kWords = 5;
  if (words.size() != kWords || words.back() != kEndOfOrder) return no_order(text);
  const auto rank = parse_integer(words[1]), ranks = parse_integer(words[2]);
  const auto master = parse_host_port(words[3]);
  const bool good = rank && ranks && *rank >= 0 && *rank < *ranks && *ranks <= kMostRanks &&
                    master && !master->host.empty() && master->port > 0;
  if (!good) return no_order(text);
  return {.order = TrainOrder{
              .attempt = *start, .rank = int(*rank), .workers = int(*ranks), .master = *master}};
}

PodOrder read_order(const std::filesystem::path& file) {
  std::ifstream in(file);
  return parse_order(std::string{std::istreambuf_iterator<char>(in), {}});
}

TrainOrder order_of_rank(TrainOrder of_pod, const RankOfPod& rank) {
  of_pod.rank = of_pod.rank * rank.ranks + rank.number;
  of_pod.workers *= rank.ranks;
  return of_pod;
}

TrainOrder order_of_pod(TrainOrder of_rank, int ranks) {
  of_rank.rank /= ranks;
  of_rank.workers /= ranks;
  return of_rank;
}

std::string waiting_line(std::int64_t behind) {
  return fmt::format("{}{}\n", kWaitsBehind, behind < 0 ? "none" : std::to_string(behind));
}

std::optional<std::int64_t> parse_waiting_line(std::string_view line) {
  if (!line.starts_with(kWaitsBehind)) return std::nullopt;
  line.remove_prefix(kWaitsBehind.size());
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line == "none") return -1;
  const auto number = parse_integer(std::string(line));
  return number && *number >= 0 ? std::optional<std::int64_t>(*number) : std::nullopt;
}

std::string part_line(const TrainOrder& order) {
  return fmt::format("{}{} as rank {} of {}\n", kTakesPart, order.attempt, order.rank,
                     order.workers);
}

std::optional<TrainOrder> parse_part_line(std::string_view line) {
  if (!line.starts_with(kTakesPart)) return std::nullopt;
  const std::vector<std::string> words = words_of_order(line.substr(kTakesPart.size()));
  constexpr std::size_t kWords = 6;  // "4 as rank 2 of 8"
  if (words.size() != kWords) return std::nullopt;
  const auto start = parse_integer(words[0]), rank = parse_integer(words[3]),
             ranks = parse_integer(words[5]);
  if (!start || !rank || !ranks || *start < 0 || *rank < 0 || *rank >= *ranks) return std::nullopt;
  TrainOrder order{.attempt = *start, .rank = int(*rank), .workers = int(*ranks)};
  const std::string same = part_line(order);
  return line.substr(0, same.size() - 1) == std::string_view(same).substr(0, same.size() - 1)
             ? std::optional(order)
             : std::nullopt;
}

}  // namespace reckon
