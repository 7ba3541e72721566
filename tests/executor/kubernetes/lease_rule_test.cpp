#include "executor/kubernetes/lease_rule.h"

#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/random.h"

using namespace reckon;
using namespace reckon::kubernetes;
using Kind = LeaseRule::Request::Kind;
using Answered = LeaseRule::Answer::Kind;

namespace {

/// What the API server does with one Lease, by its version.
class LeaseServer {
 public:
  LeaseRule::Answer serve(const LeaseRule::Request& request) {
    if (request.kind == Kind::read)
      return record_ ? LeaseRule::Answer{Answered::done, *record_}
                     : LeaseRule::Answer{Answered::missing, {}};
    if (request.kind == Kind::create && record_) return {Answered::conflict, {}};
    if (request.kind == Kind::replace && !record_) return {Answered::missing, {}};
    if (request.kind == Kind::replace && record_->version != request.record.version)
      return {Answered::conflict, {}};
    record_ = request.record;
    record_->version = std::to_string(++versions_);
    return {Answered::done, *record_};
  }
  void lose() { record_.reset(); }
  const std::optional<LeaseRecord>& record() const { return record_; }

 private:
  std::optional<LeaseRecord> record_;
  int versions_ = 0;
};

/// A launcher whose requests are answered at once.
struct PromptLauncher {
  PromptLauncher(LeaseServer& s, const std::string& name, bool fresh = false)
      : server(s), rule(name, fresh) {}
  /// What it asks at a moment, until it asks nothing more.
  void at(double now) {
    for (int k = 0; k < 8; ++k) {
      auto request = rule.next(Seconds{now});
      if (!request) return;
      request->record.renewed = std::to_string(now);
      rule.answer(*request, server.serve(*request), Seconds{now});
    }
  }
  bool acts(double now) const { return rule.may_act(Seconds{now}); }
  LeaseServer& server;
  LeaseRule rule;
};

}  // namespace

TEST_CASE("the first launcher of a new run has its lease at once, and renews it every 5 s") {
  LeaseServer server;
  PromptLauncher first(server, "a", true);
  CHECK(!first.acts(0));
  first.at(0);
  CHECK(first.acts(0));
  first.at(4.9);
  CHECK(server.record()->version == "1");
  first.at(5);
  CHECK(server.record()->version == "2");
  CHECK(first.acts(14.9));  // 10 s from the last renewal
  CHECK(!first.acts(15.1));
}

TEST_CASE("a renewal counts from when it was asked for, however late its answer comes") {
  LeaseServer server;
  PromptLauncher first(server, "a", true);
  first.at(0);
  const auto renewal = first.rule.next(Seconds{5});
  REQUIRE(renewal);
  const LeaseRule::Answer answer = server.serve(*renewal);
  first.rule.answer(*renewal, answer, Seconds{9});
  CHECK(first.acts(14.9));
  CHECK(!first.acts(15.1));
}

TEST_CASE("a launcher of a run that is there waits as long as a lease lasts where none is seen") {
  LeaseServer server;
  PromptLauncher later(server, "b");
  for (double now = 0; now < 15; now += 1) later.at(now);
  CHECK(!later.acts(14));
  for (double now = 15; now < 18; now += 1) later.at(now);
  CHECK(later.acts(17));
}

TEST_CASE("a second launcher takes over when the first is not seen to renew for a whole lease") {
  LeaseServer server;
  PromptLauncher first(server, "a", true), second(server, "b");
  first.at(0);
  for (double now = 0; now < 30; now += 1) {
    first.at(now);
    second.at(now);
    CHECK(first.acts(now));
    CHECK(!second.acts(now));
  }
  CHECK(second.rule.holder_lives());
  // The first asked for its last renewal at 25 s and dies; it acts until 35 s.
  double taken = 0;
  for (double now = 30; taken == 0 && now < 60; now += 0.5) {
    second.at(now);
    if (second.acts(now)) taken = now;
  }
  CHECK(taken >= 40);
  CHECK(taken <= 43);
  CHECK(server.record()->transitions == 2);
  // The first wakes up: it finds out, and does not act.
  CHECK(!first.acts(taken));
  first.at(taken);
  CHECK(first.rule.lost());
  first.at(taken + 100);
  CHECK(!first.acts(taken + 100));
}

TEST_CASE("a lease that is given back is taken at the next look") {
  LeaseServer server;
  PromptLauncher first(server, "a", true), second(server, "b");
  first.at(0);
  second.at(1);
  const auto request = first.rule.release(Seconds{2});
  CHECK(!first.acts(2));  // before it is written
  REQUIRE(request);
  CHECK(server.serve(*request).kind == Answered::done);
  second.at(3);
  CHECK(second.acts(3));
}

TEST_CASE("a holder that nobody could answer acts again when the record is still its own") {
  LeaseServer server;
  PromptLauncher first(server, "a", true);
  first.at(0);
  const auto renewal = first.rule.next(Seconds{5});
  REQUIRE(renewal);
  server.serve(*renewal);  // written, and its answer lost
  first.rule.answer(*renewal, {}, Seconds{11});
  CHECK(!first.acts(11));
  CHECK(!first.rule.lost());
  first.at(13);  // a conflict with its own, a look, and a renewal
  CHECK(first.acts(13));
  CHECK(server.record()->transitions == 1);
}

TEST_CASE("a holder whose record somebody deletes makes it again while it acts, no later") {
  LeaseServer server;
  PromptLauncher first(server, "a", true), late(server, "c", true);
  first.at(0);
  server.lose();
  first.at(5);
  CHECK(first.acts(14));
  server.lose();
  first.at(20);
  CHECK(!first.acts(20));
  for (double now = 20; now < 34; now += 1) first.at(now);
  CHECK(!server.record());
  for (double now = 34; now < 37; now += 1) first.at(now);
  CHECK(first.acts(36));
}

namespace {

/// Launchers with clocks of their own, a network that delays and loses, and one server.
class LeaseWorld {
 public:
  struct Result {
    int overlaps = 0, holders = 0, renewals = 0;  // moments at which two acted; who got to act
  };
  LeaseWorld(std::uint64_t seed, int launchers, LeaseTerms terms, double drift)
      : random_(seed, 0, Purpose("lease world"), 0), terms_(terms), drift_(drift) {
    for (int k = 0; k < launchers; ++k) start(k == 0);
  }

  Result run(double until) {
    while (!events_.empty() && events_.begin()->first < until) {
      auto [at, event] = std::move(*events_.begin());
      events_.erase(events_.begin());
      now_ = at;
      event();
      look();
    }
    return result_;
  }

 private:
  struct Launcher {
    explicit Launcher(LeaseRule r) : rule(std::move(r)) {}
    LeaseRule rule;
    double rate = 1, offset = 0, paused_until = 0;
    bool alive = true, acted = false;
    Seconds clock(double now) const { return Seconds{offset + rate * now}; }
  };

  void at(double when, std::function<void()> event) { events_.emplace(when, std::move(event)); }
  double up_to(double most) { return most * random_.uniform(); }
  bool chance(double share) { return random_.uniform() < share; }

  void start(bool fresh) {
    auto launcher = std::make_shared<Launcher>(
        LeaseRule("launcher " + std::to_string(all_.size()), fresh, terms_));
    launcher->rate = 1 - drift_ + up_to(2 * drift_);
    launcher->offset = up_to(1e6);
    all_.push_back(launcher);
    at(now_ + up_to(1), [this, launcher] { step(launcher); });
    // It is killed some time, and another takes its place.
    at(now_ + 20 + up_to(200), [this, launcher] {
      if (!std::exchange(launcher->alive, false)) return;
      start(false);
    });
  }

  /// As the driver does: one request at a time, and the next look when it is answered.
  void step(const std::shared_ptr<Launcher>& launcher) {
    if (!launcher->alive) return;
    if (launcher->rule.lost()) {  // it stands by anew, as another
      launcher->alive = false;
      return start(false);
    }
    if (chance(0.01)) launcher->paused_until = now_ + up_to(60);  // its machine sleeps
    if (now_ < launcher->paused_until)
      return at(launcher->paused_until, [this, launcher] { step(launcher); });
    auto request = launcher->rule.next(launcher->clock(now_));
    if (!request) return at(now_ + 0.2, [this, launcher] { step(launcher); });
    request->record.renewed = std::to_string(++renewals_);
    send(launcher, *request);
  }

  void send(const std::shared_ptr<Launcher>& launcher, const LeaseRule::Request& request) {
    const double there = now_ + (chance(0.1) ? up_to(40) : up_to(0.3));
    const double back = there + (chance(0.1) ? up_to(40) : up_to(0.3));
    const double given_up = now_ + 5;
    const bool lost = chance(0.05), answer_lost = chance(0.05);
    if (!lost)
      at(there, [this, launcher, request, back, given_up, answer_lost] {
        const LeaseRule::Answer answer = server_.serve(request);
        if (!answer_lost && back < given_up)
          at(back, [=, this] { hear(launcher, request, answer); });
      });
    if (lost || answer_lost || back >= given_up)
      at(given_up, [=, this] { hear(launcher, request, {}); });
  }

  void hear(const std::shared_ptr<Launcher>& launcher, const LeaseRule::Request& request,
            const LeaseRule::Answer& answer) {
    if (now_ < launcher->paused_until)
      return at(launcher->paused_until, [=, this] { hear(launcher, request, answer); });
    launcher->rule.answer(request, answer, launcher->clock(now_));
    step(launcher);
  }

  /// A launcher begins to act only with an answer, so that two that act are seen at an event.
  void look() {
    int acting = 0;
    for (const auto& launcher : all_) {
      if (!launcher->alive || !launcher->rule.may_act(launcher->clock(now_))) continue;
      ++acting;
      if (!std::exchange(launcher->acted, true)) ++result_.holders;
    }
    result_.overlaps += acting > 1 ? 1 : 0;
    result_.renewals = renewals_;
  }

  RandomStream random_;
  LeaseTerms terms_;
  double drift_, now_ = 0;
  LeaseServer server_;
  std::vector<std::shared_ptr<Launcher>> all_;
  std::multimap<double, std::function<void()>> events_;
  int renewals_ = 0;
  Result result_;
};

int overlaps_in(int worlds, int launchers, LeaseTerms terms, double drift) {
  int overlaps = 0;
  for (int seed = 0; seed < worlds; ++seed) {
    const auto result = LeaseWorld(std::uint64_t(seed), launchers, terms, drift).run(2000);
    overlaps += result.overlaps;
    INFO("seed " << seed << ", " << launchers << " launchers");
    CHECK(result.holders >= 3);  // the lease goes from one to the next
  }
  return overlaps;
}

}  // namespace

TEST_CASE("two and three launchers never act at one moment, whatever is late, lost or asleep") {
  // Clocks run differently by 0.8 to 1.2, a factor of 1.5 at most: 15 s over 10 s.
  CHECK(overlaps_in(150, 2, {}, 0.2) == 0);
  CHECK(overlaps_in(150, 3, {}, 0.2) == 0);
}

TEST_CASE("a holder that acted as long as its lease lasts would act beside the next one") {
  // So the test above sees it where two act.
  CHECK(overlaps_in(100, 3, {.acts = Seconds{15}}, 0.2) > 0);
}
