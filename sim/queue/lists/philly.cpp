#include <fmt/format.h>

#include <algorithm>

#include "sim/base/text/printable.h"
#include "sim/queue/lists/job_lists.h"
#include "sim/queue/lists/json_items.h"
#include "sim/queue/lists/philly_csv.h"
#include "sim/queue/lists/timestamp.h"

namespace reckon {
namespace {

constexpr std::size_t kMostPhillyMistakes = 20;

class PhillyLog {
 public:
  explicit PhillyLog(const std::string& file) : file_(file) {}

  Expected<JobList> read(std::string_view bytes) {
    each_json_item(file_, bytes, "", problems_,
                   [&](const nlohmann::json& job, int line) { read_job(job, line); });
    if (not_run_ > 0) list_.left_out.emplace_back(not_run_, "that never ran on a GPU");
    return finished_list(std::move(problems_), file_, std::move(list_), submits_);
  }

 private:
  void mistake(int line, std::string what) {
    if (problems_.size() >= kMostPhillyMistakes) return;
    problems_.push_back({Severity::error,
                         {file_, line, 0},
                         std::move(what),
                         "its form: {\"submitted_time\": \"2017-10-09 07:01:55\", \"user\": \"a\", "
                         "\"vc\": \"b\", \"attempts\": [...]}"});
  }

  static std::string text_of(const nlohmann::json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
  }

  /// GPUs of an attempt: over all machines of its detail.
  static int gpus_of_attempt(const nlohmann::json& attempt) {
    int gpus = 0;
    const auto detail = attempt.find("detail");
    if (detail == attempt.end() || !detail->is_array()) return 0;
    for (const auto& machine : *detail)
      if (machine.is_object() && machine.contains("gpus") && machine["gpus"].is_array())
        gpus += static_cast<int>(machine["gpus"].size());
    return gpus;
  }

  void read_job(const nlohmann::json& job, int line) {
    const auto attempts = job.find("attempts");
    if (attempts == job.end() || !attempts->is_array())
      return mistake(line, "the job has no list of attempts");
    const auto submit = parse_timestamp(text_of(job, "submitted_time"));
    if (!submit)
      return mistake(line, fmt::format("submitted_time is '{}', but must be a date with its time",
                                       printable(text_of(job, "submitted_time"))));
    std::int64_t seconds = 0;
    int gpus = 0;
    for (const auto& attempt : *attempts) {
      if (!attempt.is_object()) return mistake(line, "an attempt of the job is no object");
      const auto start = parse_timestamp(text_of(attempt, "start_time"));
      const auto end = parse_timestamp(text_of(attempt, "end_time"));
      if (gpus == 0) gpus = gpus_of_attempt(attempt);
      if (!start || !end) continue;  // "None": it was killed while it waited, or still runs
      if (*end < *start) return mistake(line, "an attempt of the job ends before it starts");
      seconds += *end - *start;
    }
    if (gpus == 0 || seconds == 0) return void(++not_run_);
    list_.jobs.push_back(recorded_job({}, std::chrono::seconds(seconds), gpus, {}, line));
    list_.jobs.back().owner.user = list_.names.users.number(text_of(job, "user"));
    list_.jobs.back().owner.team = list_.names.teams.number(text_of(job, "vc"));
    submits_.push_back(*submit);
  }

  std::string file_;
  Diagnostics problems_;
  JobList list_;
  std::vector<std::int64_t> submits_;
  int not_run_ = 0;
};

}  // namespace

Expected<JobList> read_philly(const std::string& file, std::string_view bytes) {
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  const bool json = first != std::string_view::npos && bytes[first] == '[';
  return json ? PhillyLog(file).read(bytes) : read_philly_csv(file, bytes);
}

}  // namespace reckon
