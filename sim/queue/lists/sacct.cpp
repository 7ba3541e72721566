#include "sim/queue/lists/sacct.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "sim/base/text/printable.h"
#include "sim/queue/lists/job_lists.h"
#include "sim/queue/lists/timestamp.h"
#include "sim/queue/lists/trace_csv.h"

namespace reckon {
namespace {

constexpr std::int64_t kMostSacctGpus = 1'000'000;
constexpr std::int64_t kMostMinutes = 52'560'000;  // a hundred years

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

/// "2-00:00:00", "08:00:00", "30:00", in seconds: what sacct prints of a limit.
std::optional<std::int64_t> parse_limit(std::string_view text) {
  std::int64_t days = 0, sum = 0;
  if (const auto dash = text.find('-'); dash != std::string_view::npos) {
    const auto count = whole_number(text.substr(0, dash));
    if (!count || *count > kMostMinutes) return std::nullopt;
    days = *count;
    text.remove_prefix(dash + 1);
  }
  int parts = 0;
  while (true) {
    const auto colon = text.find(':');
    const auto part = whole_number(text.substr(0, colon));
    if (!part || *part > kMostMinutes || ++parts > 3) return std::nullopt;
    sum = sum * 60 + *part;
    if (colon == std::string_view::npos) break;
    text.remove_prefix(colon + 1);
  }
  if (parts < 2) return std::nullopt;
  return days * 86400 + sum;
}

/// GPUs of "billing=64,cpu=64,gres/gpu:a100=8,gres/gpu=8,mem=500G,node=1". 0: none; nullopt: a
/// count that is none.
std::optional<std::int64_t> gpus_of(std::string_view tres) {
  std::int64_t all = 0, of_types = 0;
  while (!tres.empty()) {
    const auto comma = std::min(tres.find(','), tres.size());
    const std::string_view entry = tres.substr(0, comma);
    tres.remove_prefix(std::min(comma + 1, tres.size()));
    const auto equals = std::min(entry.find('='), entry.size());
    const std::string_view name = entry.substr(0, equals);
    const bool of_a_type = name.starts_with("gres/gpu:");
    if (name != "gres/gpu" && !of_a_type) continue;
    const auto count = whole_number(entry.substr(std::min(equals + 1, entry.size())));
    if (!count || *count > kMostSacctGpus) return std::nullopt;
    (of_a_type ? of_types : all) += *count;
  }
  return all > 0 ? all : of_types;
}

class SacctReader {
 public:
  SacctReader(const std::string& file, std::string_view bytes)
      : file_(file), rows_(file, bytes, kColumns, kOptional, problems_, separator_of(bytes)) {}

  Expected<JobList> read() {
    while (rows_.next()) row();
    if (problems_.empty() && list_.jobs.empty())
      problems_.push_back({Severity::error,
                           {file_, 0, 0},
                           "no job of the list had GPUs, started and ended",
                           "sacct --parsable2 --allusers --starttime=DATE "
                           "--format=JobID,User,Account,Partition,QOS,Submit,Start,End,AllocTRES,"
                           "ReqTRES,Timelimit"});
    const auto left_out = [&](int rows, const char* what) {
      if (rows > 0) list_.left_out.emplace_back(rows, what);
    };
    left_out(steps_, "steps of jobs");
    left_out(without_gpu_, "without gres/gpu");
    left_out(not_run_, "that never started");
    left_out(running_, "that still run");
    return finished_list(std::move(problems_), file_, std::move(list_), submits_);
  }

 private:
  enum {
    id,
    submit,
    start,
    end,
    allocated,
    requested,
    limit,
    limit_raw,
    user,
    account,
    partition,
    qos
  };
  static constexpr std::array<std::string_view, 4> kColumns{"JobID", "Submit", "Start", "End"};
  static constexpr std::array<std::string_view, 8> kOptional{
      "AllocTRES", "ReqTRES", "Timelimit", "TimelimitRaw", "User", "Account", "Partition", "QOS"};

  static char separator_of(std::string_view bytes) {
    const std::string_view head = bytes.substr(0, bytes.find_first_of("\r\n"));
    return head.find('|') == std::string_view::npos ? ',' : '|';
  }

  void row() {
    if (rows_.text(id).find('.') != std::string_view::npos) return void(++steps_);
    const std::string_view tres =
        rows_.text(allocated).empty() ? rows_.text(requested) : rows_.text(allocated);
    const auto gpus = gpus_of(tres);
    if (!gpus)
      return rows_.error(rows_.text(allocated).empty() ? requested : allocated,
                         fmt::format("'{}' has no count of gres/gpu", printable(tres)),
                         "example: cpu=64,gres/gpu=8,node=1");
    if (*gpus == 0) return void(++without_gpu_);
    if (is_no_time(rows_.text(start))) return void(++not_run_);
    if (is_no_time(rows_.text(end))) return void(++running_);
    const auto submitted = time(submit), started = time(start), ended = time(end);
    if (!submitted || !started || !ended) return;
    if (*ended < *started)
      return rows_.error(end, "it ended before it started", "what does the row say of Start?");
    const auto most = limit_of_row();
    if (!most) return;
    list_.jobs.push_back(recorded_job({}, std::chrono::seconds(*ended - *started),
                                      static_cast<int>(*gpus), *most, rows_.line()));
    list_.jobs.back().owner = {list_.names.users.number(rows_.text(user)),
                               list_.names.teams.number(rows_.text(account)),
                               list_.names.queues.number(rows_.text(partition)),
                               list_.names.qos.number(rows_.text(qos)), 0};
    submits_.push_back(*submitted);
  }

  static bool is_no_time(std::string_view text) {
    return text.empty() || text == "Unknown" || text == "None";
  }

  std::optional<std::int64_t> time(std::size_t column) {
    const auto value = parse_timestamp(rows_.text(column), 'T');
    if (!value)
      rows_.error(column,
                  fmt::format("'{}' is no date with its time", printable(rows_.text(column))),
                  "example: 2024-05-01T07:01:55, as without SLURM_TIME_FORMAT");
    return value;
  }

  /// nullopt: reported.
  std::optional<std::optional<SimDuration>> limit_of_row() {
    using Limit = std::optional<SimDuration>;
    const auto unlimited = [](std::string_view text) {
      return text.empty() || text == "UNLIMITED" || text == "Partition_Limit";
    };
    if (!unlimited(rows_.text(limit_raw))) {
      const auto minutes = rows_.whole(limit_raw, 0, kMostMinutes);
      if (!minutes) return std::nullopt;
      return Limit(std::chrono::minutes(*minutes));
    }
    const std::string_view text = rows_.text(limit);
    if (unlimited(text)) return Limit();
    const auto seconds = parse_limit(text);
    if (!seconds) {
      rows_.error(limit, fmt::format("'{}' is no time limit", printable(text)),
                  "example: 2-00:00:00");
      return std::nullopt;
    }
    return Limit(std::chrono::seconds(*seconds));
  }

  std::string file_;
  Diagnostics problems_;
  TraceCsv rows_;
  JobList list_;
  std::vector<std::int64_t> submits_;
  int steps_ = 0, without_gpu_ = 0, not_run_ = 0, running_ = 0;
};

}  // namespace

Expected<JobList> read_sacct(const std::string& file, std::string_view bytes) {
  return SacctReader(file, bytes).read();
}

}  // namespace reckon
