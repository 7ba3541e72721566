#include "executor/train/records/shared_output.h"

#include <fmt/format.h>

#include <fstream>
#include <optional>
#include <span>
#include <system_error>
#include <thread>
#include <vector>

#include "executor/comm/crypto.h"
#include "executor/comm/errors.h"
#include "executor/comm/socket.h"
#include "executor/train/checkpoint/durable_file.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMarkPrefix = ".seen-by-all-";

/// Rank 0's file, as long as the others look for it.
class SharedMark {
 public:
  explicit SharedMark(fs::path file) : file_(std::move(file)) {
    std::ofstream out(file_);
    out << file_.filename().string() << '\n';
    out.close();
    if (!out) throw FileError(fmt::format("{} cannot be written", file_.string()));
  }
  ~SharedMark() {
    std::error_code ignored;
    fs::remove(file_, ignored);
  }
  SharedMark(const SharedMark&) = delete;
  SharedMark& operator=(const SharedMark&) = delete;

 private:
  fs::path file_;
};

/// Those of starts that were killed meanwhile.
void remove_old_marks(const fs::path& directory) {
  std::error_code error;
  std::vector<fs::path> old;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error))
    if (at->path().filename().string().starts_with(kMarkPrefix)) old.push_back(at->path());
  for (const fs::path& file : old) fs::remove(file, error);
}

/// Nobody has looked for this name before, so no cache of NFS knows that it is not there. Later
/// looks list the directory, which asks the server anew.
bool appears(const fs::path& file, Seconds patience) {
  const Deadline until = Deadline::after(patience);
  while (true) {
    if (std::ifstream(file).good()) return true;
    std::error_code error;
    for (fs::directory_iterator at(file.parent_path(), error), end; !error && at != end;
         at.increment(error))
      if (at->path().filename() == file.filename()) return true;
    if (until.passed()) return false;
    constexpr std::chrono::milliseconds kBetweenLooks{100};
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

}  // namespace

void require_shared_output(Communicator& ranks, const fs::path& directory,
                           const std::function<std::string(int rank)>& host_of, Seconds patience) {
  if (ranks.size() == 1) return;
  Nonce random = random_nonce();
  const auto named = [&] {
    std::string name = kMarkPrefix;
    for (std::size_t k = 0; k < 8; ++k) name += fmt::format("{:02x}", unsigned(random[k]));
    return directory / name;
  };
  std::optional<SharedMark> mark;
  if (ranks.rank() == 0) {
    create_directories_durably(directory);
    remove_old_marks(directory);
    mark.emplace(named());  // before the others know the name
  }
  ranks.broadcast(random, 0);
  std::vector<std::int64_t> blind(static_cast<std::size_t>(ranks.size()));
  if (ranks.rank() > 0 && !appears(named(), patience))
    blind[static_cast<std::size_t>(ranks.rank())] = 1;
  ranks.all_reduce(std::span<std::int64_t>(blind));
  for (int rank = 0; rank < ranks.size(); ++rank)
    if (blind[static_cast<std::size_t>(rank)] != 0)
      throw SettingsDiffer(
          fmt::format("rank {} on {} does not see rank 0's --out ({}): it has to be storage that "
                      "all machines share",
                      rank, host_of(rank), directory.string()));
}

}  // namespace reckon
