#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/launch/gang.h"
#include "executor/launch/progress_reader.h"
#include "executor/train/records/run_directory.h"
#include "sim/measurement/measurements.h"
#include "sim/scenario/artifact/artifact.h"
#include "sim/scenario/plan.h"

// A job whose program is not ours: what it prints of its progress becomes the records that
// reckon-worker writes itself.
namespace reckon {

/// The job speaks through the first rank, by number, that tells of two steps in an attempt; until
/// there is one through the first that told of one. The steps of the others are the same and left
/// out. Its steps are numbered as it numbers them: "step 12" is taken to mean that 12 are done.
///
/// A line that is K steps behind the one before stands for K steps, each as long as the program
/// says, else a Kth of the time between the lines; where that is shorter than any step, the lines
/// came at once, and the next one that leaves time says how long they took. How long the steps
/// before the first line of an attempt took is not known before the second one comes, so until then
/// no records are made: the attempt is taken to have begun as many steps before its first line as
/// lie between the two (but not below 0). A line that says where the program goes on, or tells the
/// newest checkpoint of an earlier attempt, is where it began.
///
/// What is no step of the job is told from steps by what comes behind it: lines that count up from
/// a lower number put a first line right that was none, and a bar whose length is not that of the
/// job counts once it has moved from its beginning, if nothing surer is told.
///
/// A save counts once in an attempt, whoever tells of it, and not behind a later one.
class ForeignProgram {
 public:
  using Records = std::vector<MeasurementRecord>;
  ForeignProgram(const Plan& plan, ProgressReader reader, RunClock clock, PlanDigests digests = {})
      : plan_(plan), reader_(std::move(reader)), clock_(clock), digests_(std::move(digests)) {}

  /// Its processes are started.
  void begin(std::int64_t attempt, Seconds at);
  /// They only run from here on: images were pulled before. Before the first line alone.
  void started(Seconds at);
  /// A line of a rank's log, printed `at`; the records that follow from it.
  Records line(int rank, Seconds at, std::string_view text);
  /// The same of a page of its metrics.
  Records page(int rank, Seconds at, std::string_view text);
  /// The attempt is over: what was held back.
  Records end();

  /// As the program told last; 0: nothing yet.
  std::int64_t steps_done() const { return last_ ? last_->step : 0; }
  /// It has told of a step in this attempt, not only of where it goes on.
  bool spoke() const { return last_ && !last_->start; }
  const std::optional<PrometheusPage>& prometheus() const { return reader_.prometheus(); }

 private:
  struct Told {
    std::int64_t step = 0;  // done
    Seconds at{};
    std::optional<Seconds> seconds;
    std::optional<double> loss;  // as the program prints it
    bool start = false;          // nothing was done here: the attempt goes on from it
  };
  /// A rank's first step in the attempt.
  struct Voice {
    Told first, last;
    int told = 0;  // how often it went on from there, and the first
  };
  void save(Records& records, Seconds at, std::int64_t step);
  bool is_of_job(int rank, const Told& told, const LogProgress& progress);
  bool speaks(int rank, const Told& told);
  bool puts_right(const Told& told);
  void advance(Records& records, const Told& told);
  Records see(int rank, Seconds at, const LogProgress& progress);
  void add_steps(Records& records, std::int64_t from, const Told& to, Seconds each) const;
  bool is_step(std::int64_t number) const;
  void open(Records& records, std::int64_t from, Seconds each);

  const Plan& plan_;
  ProgressReader reader_;
  RunClock clock_;
  PlanDigests digests_;
  std::int64_t attempt_ = 0;
  Seconds began_{};
  std::map<int, Voice> voices_;
  std::map<std::pair<int, std::int64_t>, Told> bars_;  // by rank and length: where they began
  bool sure_ = false;                                  // steps were told that are no such bar's
  std::optional<int> speaker_;
  std::optional<Told> last_;    // the first of the attempt is held back while !opened_
  std::optional<Told> far_;     // came too early behind it
  std::optional<Voice> lower_;  // counts up below it
  std::int64_t saved_ = -1, saved_before_ = -1;  // the newest, in this attempt and by its begin
  bool opened_ = false;                          // the attempt's RunRecord is made
  std::vector<MeasurementRecord> held_;          // saves before that
};

/// An interruption of a program whose checkpoints nobody else knows: what it cost is known when the
/// program goes on, by where it does.
class OpenInterruption {
 public:
  /// `done` steps were done by then, of which one took `step`. Where an earlier one is open still,
  /// nothing was done since: then this one cost nothing, and comes back as it is.
  std::optional<InterruptionRecord> open(InterruptionRecord record, std::int64_t done,
                                         Seconds step);
  /// The program goes on behind `first_step` steps.
  std::optional<InterruptionRecord> settle(std::int64_t first_step);
  /// It does not go on.
  std::optional<InterruptionRecord> give_up();

 private:
  std::optional<InterruptionRecord> record_;
  std::int64_t done_ = 0;
  Seconds step_{};
};

/// An attempt that failed by itself before its first step, so many times in a row, would go on
/// doing so: its end is then made one for good.
class FruitlessStarts {
 public:
  void judge(GangEnd& end, bool spoke);
  /// One that another launcher watched.
  void count(bool fruitless) { count_ = fruitless ? count_ + 1 : 0; }

 private:
  int count_ = 0;
};

}  // namespace reckon
