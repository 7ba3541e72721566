#include "executor/kubernetes/lease.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <ctime>
#include <random>

#include "executor/kubernetes/json_at.h"
#include "executor/kubernetes/run_state.h"
#include "executor/train/records/run_directory.h"
#include "sim/base/unit_text.h"

namespace reckon::kubernetes {
namespace {

/// Goes on while the machine sleeps, which the steady clock does not.
Seconds lease_now() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return Seconds{double(now.tv_sec) + 1e-9 * double(now.tv_nsec)};
}

/// [Kubernetes API conventions, MicroTime]: six digits, no fewer.
std::string micro_time_now() {
  std::string text = RunClock::starting_now().text();  // three
  text.insert(text.size() - 1, "000");
  return text;
}

Json lease_object(const std::string& run, const LeaseRecord& record) {
  Json lease = {{"apiVersion", "coordination.k8s.io/v1"},
                {"kind", "Lease"},
                {"metadata", {{"name", lease_object_of(run)}, {"labels", labels_of_run(run)}}},
                {"spec",
                 {{"leaseDurationSeconds", std::llround(record.duration.count())},
                  {"leaseTransitions", record.transitions},
                  {"acquireTime", record.acquired},
                  {"renewTime", record.renewed}}}};
  if (!record.version.empty()) lease["metadata"]["resourceVersion"] = record.version;
  if (!record.holder.empty()) lease["spec"]["holderIdentity"] = record.holder;
  return lease;
}

}  // namespace

std::string lease_object_of(const std::string& run) { return run + "-launcher"; }

std::optional<LeaseRecord> lease_record(const Json& lease) {
  if (!lease.is_object() || !lease.contains("/metadata/name"_json_pointer)) return std::nullopt;
  LeaseRecord record;
  record.holder = text_at(lease, "/spec/holderIdentity");
  record.acquired = text_at(lease, "/spec/acquireTime");
  record.renewed = text_at(lease, "/spec/renewTime");
  record.version = text_at(lease, "/metadata/resourceVersion");
  const auto number = [&](const char* pointer, std::int64_t otherwise) {
    const Json::json_pointer at(pointer);
    return lease.contains(at) && lease.at(at).is_number_integer() ? lease.at(at).get<std::int64_t>()
                                                                  : otherwise;
  };
  constexpr std::int64_t kDefault = 15;  // seconds
  record.duration = Seconds{double(number("/spec/leaseDurationSeconds", kDefault))};
  record.transitions = number("/spec/leaseTransitions", 0);
  return record;
}

std::string own_lease_identity() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {"unknown"};
  std::random_device random;
  return fmt::format("{}_{}_{:08x}{:08x}", host.data(), ::getpid(), random(), random());
}

std::string launcher_text(const std::string& identity) {
  const std::size_t last = identity.rfind('_');
  const std::size_t before =
      last == std::string::npos || last == 0 ? std::string::npos : identity.rfind('_', last - 1);
  if (before == std::string::npos) return fmt::format("launcher {}", identity);
  return fmt::format("launcher on {} (process {})", identity.substr(0, before),
                     identity.substr(before + 1, last - before - 1));
}

LauncherLease::LauncherLease(const Kubectl& kubectl, std::string run, bool fresh, LeaseTerms terms)
    : kubectl_(kubectl),
      run_(std::move(run)),
      identity_(own_lease_identity()),
      terms_(terms),
      rule_(identity_, fresh, terms) {}

LauncherLease::~LauncherLease() {
  end_thread();
  if (!may_act() || forbidden_) return;  // it runs out by itself
  try {
    give_back();
  } catch (const std::exception&) {
    // Likewise.
  }
}

void LauncherLease::give_back() {
  constexpr Seconds kLimit{5};
  auto request = rule_.release(lease_now());
  if (!request || ask(*request, kLimit).kind != LeaseRule::Answer::Kind::conflict) return;
  // A renewal was written whose answer did not come.
  const LeaseRule::Answer now = ask({}, kLimit);
  if (now.kind != LeaseRule::Answer::Kind::done || now.record.holder != identity_) return;
  request->record.version = now.record.version;
  ask(*request, kLimit);
}

LeaseRule::Answer LauncherLease::ask(const LeaseRule::Request& request, Seconds limit) {
  using Answer = LeaseRule::Answer;
  using Kind = LeaseRule::Request::Kind;
  Words words{"get", "leases.coordination.k8s.io", lease_object_of(run_), "--output=json"};
  std::string input;
  if (request.kind != Kind::read) {
    words = {request.kind == Kind::create ? "create" : "replace", "--filename", "-",
             "--validate=false", "--output=json"};
    LeaseRecord record = request.record;
    record.renewed = micro_time_now();
    if (acquired_.empty()) acquired_ = record.renewed;
    record.acquired = acquired_;
    input = lease_object(run_, record).dump();
  }
  const KubectlResult result = kubectl_.attempt(words, input, limit);
  if (result.good()) {
    const auto record = lease_record(Json::parse(result.out, nullptr, false));
    if (record) return {Answer::Kind::done, *record};
    trouble_ = "the cluster's answer about the launcher's lease is none";
    return {};
  }
  const KubectlFailure failure = failure_of(result.err);
  if (failure == KubectlFailure::missing) return {Answer::Kind::missing, {}};
  if (failure == KubectlFailure::conflict) return {Answer::Kind::conflict, {}};
  trouble_ = result.err;
  if (passes(failure)) return {};
  throw KubectlError(
      failure, fmt::format("kubectl {} of the launcher's lease: {}", words.front(), result.err));
}

LauncherLease::State LauncherLease::look() {
  if (forbidden_) return State::forbidden;
  const auto request = rule_.next(lease_now());
  if (!request) return State::waiting;
  trouble_.clear();
  try {
    const LeaseRule::Answer answer = ask(*request, Seconds{10});
    const std::lock_guard lock(mutex_);
    rule_.answer(*request, answer, lease_now());
  } catch (const KubectlError& error) {
    if (error.failure() != KubectlFailure::forbidden) throw;
    trouble_ = error.what();
    forbidden_ = true;
    return State::forbidden;
  }
  if (!rule_.held()) return State::waiting;
  thread_ = std::thread([this] { renew(); });
  return State::held;
}

LauncherLease::State LauncherLease::wait(const std::function<bool()>& goes_on) {
  for (;;) {
    const State state = look();
    if (state != State::waiting || !goes_on()) return state;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

void LauncherLease::renew() {
  constexpr std::chrono::milliseconds kTick{200};
  std::unique_lock lock(mutex_);
  while (!ends_ && !rule_.lost()) {
    if (const auto request = rule_.next(lease_now())) {
      lock.unlock();
      LeaseRule::Answer answer;
      try {
        answer = ask(*request, terms_.acts / 2);
      } catch (const std::exception&) {
        // Whatever it is: it is not renewed, and asked for again.
      }
      lock.lock();
      rule_.answer(*request, answer, lease_now());
      const bool look = looks_for_stop_ && rule_.may_act(lease_now());
      if (look && !ends_) {
        lock.unlock();
        look_at_phase();
        lock.lock();
      }
    }
    wakes_.wait_for(lock, kTick, [this] { return ends_; });
  }
}

void LauncherLease::look_at_phase() {
  try {
    const KubectlResult phase = kubectl_.attempt(phase_question(run_), {}, Seconds{5});
    const bool asked = phase.good() && (phase.out == to_text(RunPhase::stopping) ||
                                        phase.out == to_text(RunPhase::stopped));
    const std::lock_guard lock(mutex_);
    stop_asked_ = stop_asked_ || asked;
  } catch (const std::exception&) {
    // It is looked at again behind the next renewal.
  }
}

std::string LauncherLease::holder() const {
  const std::lock_guard lock(mutex_);
  return rule_.seen() && rule_.seen()->holder != identity_ ? rule_.seen()->holder : "";
}

bool LauncherLease::holder_lives() const {
  const std::lock_guard lock(mutex_);
  return rule_.holder_lives();
}

std::string LauncherLease::holder_text() const {
  const std::string identity = holder();
  if (identity.empty()) return "";
  const std::lock_guard lock(mutex_);
  return fmt::format("{}, which renewed its lease at {}", launcher_text(identity),
                     rule_.seen()->renewed);
}

bool LauncherLease::may_act() const {
  const std::lock_guard lock(mutex_);
  return forbidden_ || rule_.may_act(lease_now());
}

Kubectl LauncherLease::guarded() const {
  return kubectl_.guarded([this] { return may_act(); });
}

void LauncherLease::look_for_stop() {
  const std::lock_guard lock(mutex_);
  looks_for_stop_ = true;
}

bool LauncherLease::stop_asked() const {
  const std::lock_guard lock(mutex_);
  return stop_asked_;
}

std::string LauncherLease::news() {
  const std::lock_guard lock(mutex_);
  if (forbidden_) return "";
  if (rule_.lost()) throw LeaseLost(rule_.seen() ? rule_.seen()->holder : "");
  const bool lapsed = !rule_.may_act(lease_now());
  if (std::exchange(lapsed_, lapsed) == lapsed) return "";
  if (lapsed)
    return fmt::format(
        "the launcher's lease could not be renewed for {}: nothing is changed in the cluster "
        "until it is; the pods go on",
        format_duration(terms_.acts));
  return "the launcher's lease is renewed: it acts again";
}

void LauncherLease::forget() {
  end_thread();
  const std::lock_guard lock(mutex_);
  (void)rule_.release(lease_now());
}

void LauncherLease::end_thread() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wakes_.notify_all();
  if (thread_.joinable()) thread_.join();
}

}  // namespace reckon::kubernetes
