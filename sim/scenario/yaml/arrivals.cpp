#include <fmt/format.h>

#include <numeric>

#include "sim/base/unit_text.h"
#include "sim/scenario/yaml/fields.h"
#include "sim/scenario/yaml/pace_fields.h"

// `arrivals:`: jobs of many users, drawn at random.
namespace reckon {
namespace {

constexpr double kMostArrivalsPerHour = 1e6;
constexpr double kMostGpusOfClass = 1e6;
constexpr double kMostUsers = 100'000;
constexpr double kMostTrials = 100'000;
constexpr double kMostShare = 1e9;
constexpr std::size_t kHoursOfADay = 24, kHoursOfAWeek = 168;

void read_gpus(Reader& reader, const YamlNode& node, ArrivalClassSpec& job) {
  const Form gpus = whole(1, kMostGpusOfClass);
  if (node.kind == YamlNode::Kind::map) {
    reader.each_entry(node, [&](const std::string& key, const YamlNode& value) {
      const auto count = parse_integer(key);
      if (!count || *count < 1 || double(*count) > kMostGpusOfClass)
        reader.error(fmt::format("'{}' is no number of GPUs", shortened(key)),
                     "GPUs of a job and their share: {1: 60%, 8: 40%}");
      else if (const auto share = reader.number(value, Form{Form::Kind::fraction, 0, kMostShare}))
        job.gpus[static_cast<int>(*count)] = *share;
    });
  } else if (node.kind == YamlNode::Kind::list) {
    reader.each(node, [&](const YamlNode& item) {
      if (const auto count = reader.number(item, gpus)) job.gpus[static_cast<int>(*count)] += 1;
    });
  } else if (const auto count = reader.number(node, gpus)) {
    job.gpus[static_cast<int>(*count)] = 1;
  }
  double sum = 0;
  for (const auto& [count, share] : job.gpus) sum += share;
  if (!(sum > 0)) reader.error("no number of GPUs has a share", "example: gpus: {1: 60%, 8: 40%}");
}

void read_teams(Reader& reader, const YamlNode& node, ArrivalClassSpec& job) {
  double sum = 0;
  reader.each_entry(node, [&](const std::string& key, const YamlNode& value) {
    const auto share = reader.number(value, Form{Form::Kind::fraction, 0, kMostShare});
    if (share) sum += job.teams[key] = *share;
  });
  if (!(sum > 0)) reader.error("no team has a share", "example: teams: {vision: 3, language: 1}");
}

const Fields<TrialsSpec>& trials_fields() {
  using T = TrialsSpec;
  static const Fields<T> table{
      required(number_field("count", &T::count, whole(1, kMostTrials),
                            "Trials of a search, submitted together.", "64")),
      word_field("stop", &T::stop,
                 "asha: at each rung the best one in eta goes on; median: a trial stops below the "
                 "median of those before it. Default: none.",
                 "asha"),
      number_field("eta", &T::eta, whole(2, 100), "Default: 3.", "4"),
      number_field("least", &T::least, Form{Form::Kind::fraction, 1e-6, 1},
                   "Of a full run, before a trial may be stopped; default: 1/27.", "5%"),
      number_field("noise", &T::noise, Form{Form::Kind::number, 0, 100},
                   "Spread of a first result around the final one, in standard deviations of the "
                   "final ones; it shrinks with the square root of the run. Default: 0.2.",
                   "0.5"),
  };
  return table;
}

const Fields<ArrivalClassSpec>& arrival_class_fields() {
  using C = ArrivalClassSpec;
  Form gpus = choice("a number, a list, or a map of numbers to their shares");
  gpus.item = Form::Kind::whole;
  gpus.low = 1, gpus.high = kMostGpusOfClass;
  gpus.or_list = true;
  gpus.or_map = Form::Kind::fraction;
  static const Fields<C> table = with_owner<C>({
      required(name_field("name", &C::name, "Unique name; it decides what is drawn.", "small")),
      required(number_field("jobs_per_hour", &C::jobs_per_hour,
                            above_zero(Form::Kind::number, kMostArrivalsPerHour),
                            "Jobs submitted, on average over the week.", "12")),
      required(field<C>("gpus", gpus, read_gpus, "GPUs of a job, all at once.",
                        "{1: 60%, 8: 30%, 64: 10%}")),
      field<C>(
          "duration", time_law_form(),
          [](Reader& r, const YamlNode& n, C& c) {
            if (auto law = read_time_law(r, n)) c.duration = std::move(*law);
          },
          "How long a job runs; or give its `job`.", "!lognormal {median: 1h, p95: 20h}"),
      text_field("job", &C::job,
                 "Scenario of one training, relative to this file: its length on each pool and "
                 "number of leaves is the step model's, and its own cluster does not count.",
                 "bert.yaml"),
      pace_field<C>(),
      across_leaves_field<C>(),
      pod_field<C>(),
      number_field("limit", &C::limit, Form{Form::Kind::number, 1, 1000},
                   "Time limit that a job asks for, in times of its length; default: none.", "2"),
      field<C>("teams", Form{.kind = Form::Kind::map, .item = Form::Kind::fraction}, read_teams,
               "Whose jobs they are, and the share of each (accounts of Slurm).",
               "{vision: 3, language: 1}"),
      number_field("users", &C::users, whole(1, kMostUsers), "Users of each team; default: 1.",
                   "5"),
      block_field<trials_fields>("trials", &C::trials, {},
                                 "A job is a search over hyper-parameters: so many trials, some "
                                 "of them stopped early. `duration` is a full trial's.",
                                 "{count: 64, stop: asha}"),
  });
  return table;
}

/// Its length comes from one place.
void check_class(Reader& reader, const YamlNode& item) {
  const auto* training = item.find("job");
  if (training == nullptr && !item.has("duration") && !reader.misspelt("duration") &&
      !reader.misspelt("job"))
    reader.error(fmt::format("{} needs 'duration' or 'job'", reader.subject()),
                 "example: duration: 2h, or job: bert.yaml");
  if (training == nullptr) return;
  for (const std::string_view key : {"duration", "pace", "across_leaves", "resource"})
    if (const auto* beside = item.find(key))
      reader.error(beside->key_at, fmt::format("'{}' cannot stand beside 'job'", key),
                   "the step model says how long a training takes, and where");
}

void read_classes(Reader& reader, const YamlNode& node, ArrivalsSpec& arrivals) {
  std::set<std::string> names;
  reader.each(node, [&](const YamlNode& item) {
    ArrivalClassSpec job;
    if (!read_fields(reader, item, arrival_class_fields(), job)) return;
    if (!job.name.empty() && !names.insert(job.name).second)
      reader.error(item.find("name")->value.at,
                   fmt::format("a second class is named '{}'", job.name),
                   "names of classes are unique");
    check_class(reader, item);
    if (!job.required_topology.empty() && !job.preferred_topology.empty())
      reader.error(item.find("podset-preferred-topology")->key_at,
                   "a class has a required and a preferred topology", "leave one of them out");
    arrivals.classes.push_back(std::move(job));
  });
  if (node.kind == YamlNode::Kind::list && node.entries.empty()) reader.error("classes is empty");
}

void read_hours(Reader& reader, const YamlNode& node, ArrivalsSpec& arrivals) {
  reader.each(node, [&](const YamlNode& item) {
    if (const auto rate = reader.number(item, Form{Form::Kind::number, 0, kMostShare}))
      arrivals.hours.push_back(*rate);
  });
  if (node.kind != YamlNode::Kind::list) return;
  if (node.entries.size() != kHoursOfADay && node.entries.size() != kHoursOfAWeek)
    reader.error(fmt::format("{} has {} numbers", reader.subject(), node.entries.size()),
                 "24 by the hour of the day, or 168 by that of the week from Monday 00:00, in UTC");
  else if (std::accumulate(arrivals.hours.begin(), arrivals.hours.end(), 0.0) <= 0)
    reader.error("nothing is submitted at any hour");
}

}  // namespace

const Fields<ArrivalsSpec>& arrivals_fields() {
  using A = ArrivalsSpec;
  Form classes{Form::Kind::list}, hours{Form::Kind::list};
  classes.fields = &infos_of<arrival_class_fields>;
  hours.item = Form::Kind::number;
  static const Fields<A> table{
      required(number_field("period", &A::period, above_zero(Form::Kind::duration, kLatestSubmit),
                            "In which jobs are submitted; all of them run to their end.", "14d")),
      number_field("warm_up", &A::warm_up, Form{Form::Kind::duration, 0, kLatestSubmit},
                   "Jobs submitted before it are not measured, as the cluster starts empty; "
                   "default: 0s.",
                   "2d"),
      field<A>("hours", hours, read_hours,
               "Rate by hour in UTC, relative: 24 numbers of a day, or 168 of a week from Monday "
               "on. Default: the same at all hours.",
               "[1, 1, 1, 1, 1, 1, 2, 4, 8, 9, 9, 8, 7, 8, 9, 9, 8, 6, 4, 3, 2, 2, 1, 1]"),
      text_field("profile", &A::profile,
                 "Recorded jobs, relative to this file: the rate by hour of the week is theirs.",
                 "sacct.txt"),
      word_field("profile_format", &A::profile_format, "Whose layout the profile has.", "slurm"),
      required(field<A>("classes", classes, read_classes, "Kinds of jobs.",
                        "[{name: small, jobs_per_hour: 12, gpus: 1, duration: 2h}]")),
  };
  return table;
}

void check_arrivals(Reader& reader, const YamlNode& node, const ArrivalsSpec& arrivals) {
  const auto* warm_up = node.find("warm_up");
  if (warm_up != nullptr && arrivals.period.count() > 0 && arrivals.warm_up >= arrivals.period)
    reader.error(warm_up->value.at, "the warm-up takes the whole period: no job is measured",
                 "a shorter warm_up, or a longer period");
  const auto* profile = node.find("profile");
  if (profile != nullptr && node.has("hours"))
    reader.error(profile->key_at, "profile and hours both say the rate by hour",
                 "leave one of them out");
  if ((profile != nullptr) != node.has("profile_format"))
    reader.error("profile and profile_format need each other",
                 "example: profile: sacct.txt, profile_format: slurm");
}

}  // namespace reckon
