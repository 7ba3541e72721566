#pragma once
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

// What faults are done to, and what they may excuse.
namespace reckon::test {

/// Something is gone or wrong that must not be; the text says what.
struct Lost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What a fault keeps from working while it lasts.
enum class Harm { process, disk, network, strangers };
inline constexpr std::size_t kHarms = 4;

/// How many faults of each kind have begun and are not over. From any thread.
class FaultCount {
 public:
  struct Moment {
    std::array<int, kHarms> begun{}, active{};
  };
  void begin(Harm h) {
    ++active_[std::size_t(h)];
    ++begun_[std::size_t(h)];
  }
  void end(Harm h) { --active_[std::size_t(h)]; }
  Moment now() const {
    Moment m;
    for (std::size_t h = 0; h < kHarms; ++h) {
      m.active[h] = active_[h];
      m.begun[h] = begun_[h];
    }
    return m;
  }
  /// Was there such a fault at some time since?
  bool since(const Moment& before, Harm h) const {
    return before.active[std::size_t(h)] > 0 ||
           begun_[std::size_t(h)] > before.begun[std::size_t(h)];
  }

 private:
  std::array<std::atomic<int>, kHarms> begun_{}, active_{};
};

/// A job that must lose nothing.
class Job {
 public:
  virtual ~Job() = default;
  virtual std::string name() const = 0;
  /// All its processes now, the one that watches the others first; may be empty between two starts.
  virtual std::vector<pid_t> processes() const = 0;
  /// Where it writes.
  virtual std::filesystem::path disk() const = 0;
  /// Called all the time: starts again what has ended, and looks at what is there. Throws Lost.
  virtual void tick() = 0;
  /// No more faults will come.
  virtual void finish() {}
  virtual bool over() const = 0;
  /// At its end: throws Lost where anything is missing.
  virtual void check() = 0;
  /// How often its processes were started; after check().
  virtual int starts() const = 0;
  /// "12 starts, 3,000 steps".
  virtual std::string summary() const = 0;
  /// The end of what it said of its processes; after check().
  virtual std::string said() const { return ""; }
};

}  // namespace reckon::test
