#pragma once
#include <filesystem>
#include <string>

// A network and a view of mounts that only this process and its children have: what a test does to
// them reaches nobody else on the machine.
namespace reckon::test {

struct OwnNamespaces {
  std::string no_network, no_mounts;  // why there is none; "": there is
};
/// Enters them at the first call, before this process has a second thread. Root may; so may others
/// where the kernel gives them user namespaces.
const OwnNamespaces& enter_own_namespaces();

/// Takes the loopback down, with every packet on its way, or up again. Of an own network only.
void set_loopback(bool up);

/// A file system of `bytes` in memory at `place`, until the end. Needs mounts of our own.
class SmallDisk {
 public:
  SmallDisk(std::filesystem::path place, std::size_t bytes);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

 private:
  std::filesystem::path place_;
};

}  // namespace reckon::test
