#include "executor/launch/line_reader.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace reckon {

bool LineReader::read_from(int descriptor, const std::function<void(std::string_view)>& on_line) {
  std::array<char, 65536> part{};
  constexpr int kReads = 16;  // more than a pipe holds
  for (int k = 0; k < kReads; ++k) {
    const ssize_t n = ::read(descriptor, part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    if (n == 0) {
      if (!rest_.empty()) on_line(std::exchange(rest_, {}));
      return false;
    }
    rest_.append(part.data(), std::size_t(n));
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = rest_.find_first_of("\r\n", begin)) != std::string::npos;
         begin = end + 1)
      if (end > begin) on_line(std::string_view(rest_).substr(begin, end - begin));
    rest_.erase(0, begin);
    if (rest_.size() > longest_) on_line(std::exchange(rest_, {}));
  }
  return true;
}

}  // namespace reckon
