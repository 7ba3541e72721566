#include "chaos/faults.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <span>

#include "chaos/own_namespaces.h"
#include "support/listening.h"

namespace reckon::test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

std::size_t pick(RandomStream& luck, std::size_t count) {
  return std::min(count - 1, std::size_t(luck.uniform() * double(count)));
}

/// 0: there is none now.
pid_t victim(const Job& job, RandomStream& luck) {
  const double where = luck.uniform();  // drawn in any case: the draws behind it stay the same
  const std::vector<pid_t> all = job.processes();
  return all.empty() ? 0 : all[std::min(all.size() - 1, std::size_t(where * double(all.size())))];
}

/// Until it is gone, and its connections with it.
class Killed : public Fault {
 public:
  Killed(FaultTarget& target, RandomStream& luck) {
    const pid_t id = victim(target.job, luck);
    if (id == 0) return;
    end_ = Socket{int(::syscall(SYS_pidfd_open, id, 0))};
    ::kill(id, SIGKILL);
  }
  ~Killed() override {
    constexpr Seconds kPatience{5};
    if (end_) (void)wait_readable(end_, Deadline::after(kPatience));
  }

 private:
  Socket end_;  // pidfd: readable at the end of its last thread
};

class Stopped : public Fault {
 public:
  Stopped(FaultTarget& target, RandomStream& luck) : id_(victim(target.job, luck)) {
    if (id_ > 0) ::kill(id_, SIGSTOP);
  }
  ~Stopped() override {
    if (id_ > 0) ::kill(id_, SIGCONT);
  }

 private:
  pid_t id_;
};

/// It runs a fifth of the time.
class Slowed : public Fault {
 public:
  Slowed(FaultTarget& target, RandomStream& luck) : id_(victim(target.job, luck)) {}
  ~Slowed() override {
    if (id_ > 0) ::kill(id_, SIGCONT);
  }
  void tick() override {
    constexpr std::chrono::milliseconds kPeriod{50}, kRuns{10};
    const bool runs = (Clock::now() - begin_) % kPeriod < kRuns;
    if (id_ > 0) ::kill(id_, runs ? SIGCONT : SIGSTOP);
  }

 private:
  pid_t id_;
  Clock::time_point begin_ = Clock::now();
};

class FullDisk : public Fault {
 public:
  FullDisk(FaultTarget& target, RandomStream&) : filler_(target.job.disk() / "filler") {
    std::ofstream file(filler_, std::ios::binary);
    for (std::size_t part = 1 << 20; part > 0; part /= 16) {
      const std::string zeros(part, '\0');
      while (file.write(zeros.data(), std::streamsize(part)).flush()) {
      }
      file.clear();
    }
  }
  ~FullDisk() override { fs::remove(filler_); }

 private:
  fs::path filler_;
};

/// Packets are lost; connections stay.
class SilentNetwork : public Fault {
 public:
  SilentNetwork() { set_loopback(false); }
  ~SilentNetwork() override { set_loopback(true); }
};

/// All connections to one listener end at once.
class CutConnections : public Fault {
 public:
  CutConnections(FaultTarget& target, RandomStream& luck) {
    const auto ports = listeners_of(target.job.processes());
    if (ports.empty()) return;
    const std::string port = std::to_string(ports[pick(luck, ports.size())]);
    (void)!std::system(("ss -K -t sport = :" + port + " >/dev/null 2>&1").c_str());
  }
};

/// Connections of strangers, which stay open to the end.
class Strangers : public Fault {
 protected:
  /// One more, to each listener; says `text`. False: one was turned away.
  bool visit(const FaultTarget& target, const std::string& text) {
    constexpr Seconds kPatience{0.05};
    bool let_in = true;
    for (const std::uint16_t port : listeners_of(target.job.processes())) {
      try {
        connections_.push_back(connect_to({"127.0.0.1", port}, Deadline::after(kPatience)));
        send_all(connections_.back(), std::as_bytes(std::span(text)), Deadline::after(kPatience));
      } catch (const SocketError&) {
        let_in = false;
      }
    }
    return let_in;
  }

 private:
  std::vector<Socket> connections_;
};

class Garbage : public Strangers {
 public:
  Garbage(FaultTarget& target, RandomStream& luck) {
    std::string noise(1 + pick(luck, 4096), '\0');
    for (char& c : noise) c = char(luck());
    constexpr const char* kBegins[] = {"", "RCKN", "GET / HTTP/1.1\r\nContent-Length: ",
                                       "POST /v1/models/mlp_mnist:predict HTTP/1.1\r\n"};
    visit(target, kBegins[pick(luck, std::size(kBegins))] + noise);
  }
};

class SilentStrangers : public Strangers {
 public:
  SilentStrangers(FaultTarget& target, RandomStream& luck) {
    for (std::size_t left = 1 + pick(luck, 100); left > 0 && visit(target, ""); --left) {
    }
  }
};

/// What members of the job said before, said again.
class Replay : public Strangers {
 public:
  Replay(FaultTarget& target, RandomStream& luck) {
    target.tap.listen();
    const auto said = target.tap.said();
    for (int times = 0; times < 3 && !said.empty(); ++times)
      visit(target, said[pick(luck, said.size())]);
  }
};

template <class Kind>
std::unique_ptr<Fault> made(FaultTarget& target, RandomStream& luck) {
  if constexpr (std::is_constructible_v<Kind, FaultTarget&, RandomStream&>)
    return std::make_unique<Kind>(target, luck);
  else
    return std::make_unique<Kind>();
}

}  // namespace

std::vector<FaultKind> fault_kinds() {
  const OwnNamespaces& own = enter_own_namespaces();
  const bool has_ss = std::system("command -v ss >/dev/null 2>&1") == 0;
  const std::string no_cut =
      !own.no_network.empty() ? own.no_network : (has_ss ? "" : "there is no ss (iproute2)");
  const std::string no_tap = !own.no_network.empty() ? own.no_network
                             : WireTap()             ? ""
                                                     : "no packet socket may be opened";
  return {{"kill", Harm::process, Seconds{0}, "", made<Killed>},
          {"stop", Harm::process, Seconds{4}, "", made<Stopped>},
          {"slow", Harm::process, Seconds{3}, "", made<Slowed>},
          {"full disk", Harm::disk, Seconds{3}, own.no_mounts, made<FullDisk>},
          {"silent network", Harm::network, Seconds{3}, own.no_network, made<SilentNetwork>},
          {"cut connections", Harm::network, Seconds{0}, no_cut, made<CutConnections>},
          {"garbage", Harm::strangers, Seconds{2}, "", made<Garbage>},
          {"silent strangers", Harm::strangers, Seconds{3}, "", made<SilentStrangers>},
          {"replay", Harm::strangers, Seconds{2}, no_tap, made<Replay>}};
}

}  // namespace reckon::test
