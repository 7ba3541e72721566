#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "sim/base/quantity.h"

// Who of several launchers may act on a run: a rule over a record that the cluster holds, and which
// each of them changes only as long as it is what it read (its version). No clock of two machines
// is compared: each measures by its own, which may run differently by a factor below
// LeaseTerms::duration / LeaseTerms::acts [as client-go's package leaderelection does].
namespace reckon::kubernetes {

struct LeaseTerms {
  Seconds duration{15};  // whoever has seen a record unchanged for so long may take it
  Seconds acts{10};      // its holder acts for so long from the moment it asked for its renewal
  Seconds renews{5};     // and asks again after so long
  Seconds retries{2};    // an answer that did not come, and a look at another's record
};

/// What the cluster says.
struct LeaseRecord {
  std::string holder;             // "": nobody
  Seconds duration{15};           // as its holder said
  std::string acquired, renewed;  // the holder's times of day: nobody's rule goes by them
  std::int64_t transitions = 0;   // how often the holder changed
  std::string version;            // of the object
};

/// Moments are those of one clock that never goes back and goes on while the machine sleeps.
class LeaseRule {
 public:
  struct Request {
    enum class Kind { read, create, replace } kind = Kind::read;
    LeaseRecord record;  // to be written; `version` is the one to be replaced
    Seconds asked{};     // before it was sent
  };
  struct Answer {
    enum class Kind {
      done,      // what was read, or is written now, is `record`
      missing,   // there is no such object
      conflict,  // somebody else changed or made it: nothing was written
      none       // none came: it may have been written, or may be yet
    } kind = Kind::none;
    LeaseRecord record;
  };

  /// `fresh`: nobody can hold a record that is missing, since what it is about is being made now.
  /// Else it is waited for as long as if it had been there.
  LeaseRule(std::string identity, bool fresh, LeaseTerms terms = {});

  /// What to ask the cluster now; nullopt: nothing yet.
  std::optional<Request> next(Seconds now) const;
  void answer(const Request& request, const Answer& answer, Seconds now);
  /// It gives the lease up: from here on it does not act. What to write; nullopt: it has none.
  std::optional<Request> release(Seconds now);

  bool may_act(Seconds now) const { return held_ && now < acts_until_; }
  Seconds acts_until() const { return acts_until_; }
  /// It has had the lease, and nobody else since, as far as is known.
  bool held() const { return held_; }
  /// Somebody else has had it since: for good.
  bool lost() const { return lost_; }
  /// What was read or written last; nullopt: nothing, or it is missing.
  const std::optional<LeaseRecord>& seen() const { return seen_; }
  /// Since when it has not changed.
  Seconds seen_at() const { return seen_at_; }
  /// The holder was seen to renew it.
  bool holder_lives() const { return renewals_seen_ > 0; }

 private:
  bool is_free(Seconds now) const;
  LeaseRecord mine(const LeaseRecord& before) const;
  void see(const std::optional<LeaseRecord>& record, Seconds now);

  std::string identity_;
  bool fresh_;
  LeaseTerms terms_;
  bool looked_ = false;  // the cluster has answered once
  bool known_ = false;   // seen_ is what it has, as far as is known
  std::optional<LeaseRecord> seen_;
  Seconds seen_at_{}, next_{};
  int renewals_seen_ = 0;
  bool held_ = false, lost_ = false;
  Seconds acts_until_{};
};

}  // namespace reckon::kubernetes
