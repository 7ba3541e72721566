#ifdef RECKON_WITH_GLOO
#include "executor/comm/gloo/gloo_mesh.h"

#include <fmt/format.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <functional>
#include <vector>

#include "executor/comm/crypto.h"
#include "executor/comm/rank_parts.h"
#include "executor/comm/wire.h"

namespace reckon {
namespace {

using gloo::rendezvous::Context;

std::chrono::milliseconds milliseconds(Seconds s) {
  return std::chrono::ceil<std::chrono::milliseconds>(s);
}

/// Gloo's rendezvous over ours. Its keys are ranks' numbers, so each mesh has a prefix.
class MembershipStore final : public gloo::rendezvous::Store {
 public:
  MembershipStore(Membership& membership, std::string prefix, Seconds timeout)
      : membership_(membership), prefix_(std::move(prefix)), timeout_(timeout) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    membership_.set(prefix_ + key, std::as_bytes(std::span(data)));
  }
  std::vector<char> get(const std::string& key) override {
    asked_ = key;
    const auto bytes = membership_.get(prefix_ + key, Deadline::after(timeout_));
    const auto* first = reinterpret_cast<const char*>(bytes.data());
    return {first, first + bytes.size()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }
  /// The rank of the mesh whose address was asked for last, as Gloo writes it: the one that it
  /// connects to. "": none.
  const std::string& asked() const { return asked_; }

 private:
  Membership& membership_;
  std::string prefix_, asked_;
  Seconds timeout_;
};

enum class MeshAgreement : std::uint8_t { again, connected, never };

/// One try of all ranks to connect, told apart from all others by its name.
class MeshAttempt {
 public:
  MeshAttempt(Membership& membership, std::span<const int> ranks, std::string name, Seconds timeout,
              std::shared_ptr<GlooSends> sends)
      : sends_(std::move(sends)),
        membership_(membership),
        ranks_(ranks),
        me_(rank_in(ranks, membership.rank())),
        name_(std::move(name)),
        timeout_(timeout) {}

  /// Null: not all pairs of ranks are proved, as all ranks agree. `patience`: with one peer;
  /// `last`: this rank would not try again.
  std::shared_ptr<Context> run(Seconds patience, const std::function<bool()>& last) {
    membership_.set(key("nonce", membership_.rank()), nonce_);
    for (int r = 0; r < size(); ++r)  // then nobody has to be waited for any more
      nonces_.push_back(membership_.get(key("nonce", member(r)), Deadline::after(timeout_)));
    std::shared_ptr<Context> context = connected(patience);
    const bool proved = context != nullptr && prove_to_all(*context, patience);
    agreed_ = agree(proved, last);
    if (agreed_ == MeshAgreement::connected) return context;
    return nullptr;
  }
  /// All ranks agree that it is of no use.
  bool given_up() const { return agreed_ == MeshAgreement::never; }
  bool met_strangers() const { return met_strangers_; }
  /// Of the last run, on this rank; empty: it was another rank.
  const std::string& failure() const { return failure_; }

 private:
  std::shared_ptr<Context> connected(Seconds patience) {
    MembershipStore store(membership_, name_ + "/", patience);
    try {
      gloo::transport::tcp::attr attributes;
      attributes.hostname = membership_.members()[std::size_t(membership_.rank())].address.host;
      auto device = with_sends(gloo::transport::tcp::CreateDevice(attributes), sends_);
      auto context = std::make_shared<Context>(me_, size());
      context->setTimeout(milliseconds(patience));
      context->connectFullMesh(store, device);
      return context;
    } catch (const CommError& error) {
      if (!error.peers().empty()) throw;
      failure_ = between(store.asked()) + error.what();
    } catch (const std::exception& error) {
      failure_ = between(store.asked()) + error.what();
    }
    return nullptr;
  }

  std::string place_of(int r) const {
    return fmt::format("rank {} at {}", member(r),
                       membership_.members()[std::size_t(member(r))].address.host);
  }
  /// "from rank 0 at 10.0.0.1 to rank 1 at 10.0.0.2: ".
  std::string between(const std::string& asked) const {
    int r = -1;
    std::from_chars(asked.data(), asked.data() + asked.size(), r);
    return fmt::format("from {}{}: ", place_of(me_),
                       r >= 0 && r < size() && r != me_ ? " to " + place_of(r) : "");
  }

  int size() const { return int(ranks_.size()); }
  /// The member that is rank `r` of the mesh.
  int member(int r) const { return ranks_[std::size_t(r)]; }
  std::string key(const char* what, int member) const {
    return fmt::format("{}/{}/{}", name_, what, member);
  }

  /// The member `from` has received `nonce` of `to` by the rendezvous, where members alone are.
  Digest proof(int from, int to, std::span<const std::byte> nonce) const {
    FieldWriter fields;
    fields.text("gloo").text(membership_.options().job).text(name_);
    fields.number(membership_.attempt()).number(from).number(to);
    fields.text({reinterpret_cast<const char*>(nonce.data()), nonce.size()});
    return hmac_sha256(membership_.options().secret.key(), fields.bytes());
  }

  bool prove_to_all(Context& context, Seconds patience) {
    constexpr std::uint64_t kSlot = 0xF3ull << 56;  // none of Gloo's collectives, none of ours
    const auto count = ranks_.size();
    std::vector<Digest> sent(count), received(count);
    for (int r = 0; r < size(); ++r)
      if (r != me_) sent[std::size_t(r)] = proof(member(me_), member(r), nonces_[std::size_t(r)]);
    try {
      const auto out = context.createUnboundBuffer(sent.data(), sent.size() * sizeof(Digest));
      const auto in = context.createUnboundBuffer(received.data(), sent.size() * sizeof(Digest));
      for (int r = 0; r < size(); ++r) {
        if (r == me_) continue;
        in->recv(r, kSlot, std::size_t(r) * sizeof(Digest), sizeof(Digest));
        out->send(r, kSlot, std::size_t(r) * sizeof(Digest), sizeof(Digest));
      }
      const auto until = std::chrono::steady_clock::now() + milliseconds(patience);
      for (int r = 1; r < size(); ++r)
        if (!in->waitRecv(until) || !out->waitSend(until)) {
          failure_ = between("") + "a rank did not prove itself in time";
          return false;
        }
    } catch (const std::exception& error) {
      failure_ = between("") + error.what();
      return false;
    }
    for (int r = 0; r < size(); ++r)
      if (r != me_ &&
          !same_bytes(received[std::size_t(r)], proof(member(r), member(me_), nonce_))) {
        met_strangers_ = true;
        failure_ = fmt::format("at the port for rank {} is somebody who does not know the secret",
                               member(r));
        return false;
      }
    return true;
  }

  /// Whether all ranks say yes: each tells the first, which tells all, and whether to try again.
  MeshAgreement agree(bool yes, const std::function<bool()>& last) {
    using Agreed = MeshAgreement;
    const auto say = [](MeshAgreement a) { return std::array{std::byte(a)}; };
    const auto hear = [&](const std::string& key) {
      const auto bytes = membership_.get(key, Deadline::after(timeout_));
      return bytes.size() == 1 && bytes[0] <= std::byte(Agreed::never) ? Agreed(bytes[0])
                                                                       : Agreed::again;
    };
    const std::string all = name_ + "/all";
    membership_.set(key("proved", membership_.rank()),
                    say(yes ? Agreed::connected : Agreed::again));
    if (me_ == 0) {
      for (int r = 1; r < size(); ++r)
        yes = hear(key("proved", member(r))) == Agreed::connected && yes;
      membership_.set(all, say(yes ? Agreed::connected : last() ? Agreed::never : Agreed::again));
    }
    return hear(all);
  }

  std::shared_ptr<GlooSends> sends_;
  Membership& membership_;
  const std::span<const int> ranks_;
  const int me_;  // of them
  const std::string name_;
  const Seconds timeout_;
  const Nonce nonce_ = random_nonce();
  std::vector<std::vector<std::byte>> nonces_;  // of all
  std::string failure_;
  bool met_strangers_ = false;
  MeshAgreement agreed_ = MeshAgreement::again;
};

}  // namespace

std::shared_ptr<Context> connect_gloo_mesh(Membership& membership, std::span<const int> ranks,
                                           const std::string& name, Seconds timeout,
                                           const std::shared_ptr<GlooSends>& sends) {
  constexpr int kMostAttempts = 50;
  constexpr Seconds kFirstPatience{1}, kLongestPatience{10}, kLeastTime{10};
  const Seconds whole = std::max(membership.options().deadline, kLeastTime);
  const Deadline deadline = Deadline::after(whole);
  std::string why;
  bool strangers = false;
  for (int k = 0; k < kMostAttempts; ++k) {
    // A peer on a busy machine may need longer than one that a stranger stands in front of.
    const Seconds patience = std::min({timeout, kLongestPatience, kFirstPatience * double(k + 1)});
    MeshAttempt attempt(membership, ranks, fmt::format("{}.{}", name, k), timeout, sends);
    const auto last = [&] { return k + 1 == kMostAttempts || deadline.passed(); };
    if (auto context = attempt.run(patience, last)) {
      context->setTimeout(milliseconds(timeout));
      return context;
    }
    if (!attempt.failure().empty()) why = attempt.failure();
    strangers = strangers || attempt.met_strangers();
    if (k == 1 && !why.empty() && membership.options().warn)
      membership.options().warn(fmt::format("no connection {}; trying for another {:.0f} s", why,
                                            deadline.left().count()));
    if (attempt.given_up()) break;
  }
  throw CommError(
      fmt::format("for {:.0f} s not all ranks could connect to each other{}{}: {}", whole.count(),
                  why.empty() ? "" : ", ", why,
                  strangers ? "do strangers reach the ports of this job (docs/security.md)?"
                            : "do the machines reach each other at these addresses, or does a "
                              "firewall keep them apart? (--address)"));
}

}  // namespace reckon
#endif
