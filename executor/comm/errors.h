#pragma once
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace reckon {

/// Exit code of a worker whose peers are lost: start the job again from its checkpoint.
inline constexpr int kExitLostPeer = 76;

/// A peer is lost, silent past the deadline, or says what it must not. `peers`: the ranks at fault,
/// empty where that is not known. The communicator that threw it is of no further use.
class CommError : public std::runtime_error {
 public:
  explicit CommError(const std::string& what, std::vector<int> peers = {})
      : std::runtime_error(what), peers_(std::move(peers)) {}
  const std::vector<int>& peers() const { return peers_; }

 private:
  std::vector<int> peers_;
};

/// A rank was started otherwise than rank 0, in what all ranks must have the same. The others wait
/// for it.
struct SettingsDiffer : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace reckon
